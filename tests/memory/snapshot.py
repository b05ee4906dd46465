"""The half of a transaction in memory that changes nothing."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.engine.pages import PageTotals
from service.ledger.model.amendments import Amendment, OwnPart
from service.ledger.model.journal import JournalAct, UploadRecord
from service.ledger.model.ledger_entry import EntryRecord, LedgerEntry, PublicEntry
from service.ledger.model.parameters import KeptParameters, bytes_kept
from service.ledger.model.pieces import WHOLE, number_for
from service.ledger.model.rows import (
    EVERY_ENTRY,
    ActRecord,
    Address,
    AnswerRecord,
    Asked,
    AskedErasure,
    ColumnCodes,
    DatasetRecord,
    EarlierRegistration,
    EntryFilter,
    Head,
    Known,
    OwnAccount,
    OwnCharge,
    SlotsInUse,
    StoredPage,
)
from service.query.columns import stored_codings
from service.query.division import PAGE_SLOTS
from service.query.keys import Key
from service.query.vector_columns import vectors_of
from tests.memory.tables import Dataset, chosen, first_of


class MemorySnapshot:
    """Reads a draft of one dataset."""

    def __init__(self, draft: Dataset, *, asked: Sequence[Asked]) -> None:
        """`asked` is what `known` will be about."""
        self._draft, self._asked = draft, asked

    @property
    def head(self) -> Head:
        return self._draft.head

    @property
    def answered(self) -> Collection[Address]:
        """Every key that has a reply."""
        return self._draft.answers

    @property
    def known(self) -> Known:
        draft = self._draft
        addresses = {asked.address for asked in self._asked}
        hashes = {asked.query_hash for asked in self._asked}
        return Known(
            answers={at: draft.whole(answer) for at, answer in draft.answers.items() if at in addresses},
            reusable={
                entry.query_hash: public_part(entry)
                for entry in draft.entries
                if entry.kind == "query" and entry.query_hash in hashes and entry.epoch == draft.head.epoch
            },
            worst_cases={principal: draft.worst_cases.get(principal, 0) for principal, _ in addresses},
        )

    def registration(self) -> DatasetRecord:
        return self._draft.record

    def earlier_registrations(self) -> list[EarlierRegistration]:
        return list(self._draft.earlier)

    def entries(self, *, after: int, limit: int | None = None) -> Iterator[LedgerEntry]:
        yield from self._draft.entries[after:][:limit]

    def entry_records(
        self, *, before: int, limit: int, bytes_max: int, only: EntryFilter = EVERY_ENTRY, first: int = 0
    ) -> list[EntryRecord]:
        listed = self._listed(before, limit, bytes_max, only, first)
        names = [each.name for each in fields(EntryRecord) if each.name != "values"]
        return [EntryRecord(**{name: getattr(entry, name) for name in names}) for entry in listed]

    def entries_reach(self, *, before: int, limit: int, bytes_max: int) -> int:
        return min((entry.seq for entry in self._listed(before, limit, bytes_max)), default=1)

    def entry_sizes(self, *, before: int, limit: int) -> list[tuple[int, int]]:
        earlier = [entry for entry in reversed(self._draft.entries) if entry.seq < before][:limit]
        return [(each.seq, _size(each)) for each in earlier]

    def own_charges(self, slot: int, *, before: int, limit: int, bytes_max: int) -> list[OwnCharge]:
        return [_own_charge(entry, slot) for entry in self._listed(before, limit, bytes_max)]

    def account_of(self, slot: int) -> OwnAccount:
        draft, person = self._draft, self._draft.people[slot]
        page, place = draft.pages.get(slot // PAGE_SLOTS), slot % PAGE_SLOTS
        totals = PageTotals.zero() if page is None else page.totals
        seq = max(draft.head.checkpoint_seq, 0 if page is None else page.seq)
        own = [(entry.kind, entry.quantities().own(slot, entry.law)) for entry in draft.entries[seq:]]
        outcomes = [part.outcome for kind, part in own if kind == "query"]
        return OwnAccount(
            limit=person.limit_units,
            spent=int(totals.spent[place]) + sum(part.units for _, part in own),
            paused=person.paused,
            queries_charged=int(totals.charged[place]) + outcomes.count("charged") + outcomes.count("shortened"),
            queries_left_out=int(totals.left_out[place]) + outcomes.count("left_out"),
        )

    def burns(self) -> list[LedgerEntry]:
        return [entry for entry in self._draft.entries if entry.kind == "burn"]

    def ticks(self) -> list[PublicEntry]:
        return [public_part(entry) for entry in self._draft.entries if entry.tick]

    def last_tick(self, *, up_to: int) -> int:
        return max((entry.tick for entry in self._draft.entries[:up_to]), default=0)

    def has_other_noise(self) -> bool:
        return any(not entry.mechanism.startswith("gaussian") for entry in self._draft.entries)

    def hashes(self, seqs: Sequence[int]) -> dict[int, bytes]:
        entries = self._draft.entries
        return {seq: entries[seq - 1].hash for seq in seqs if 1 <= seq <= len(entries)}

    def pages(self) -> Iterator[StoredPage]:
        yield from (self._draft.pages[number] for number in sorted(self._draft.pages))

    def answers(self) -> Iterator[AnswerRecord]:
        answers = map(self._draft.whole, self._draft.answers.values())
        yield from sorted(answers, key=lambda each: (each.seq, each.principal_id, each.key))

    def parameters_stored(self, principal_id: UUID, hashes: Sequence[str]) -> tuple[int, set[str]]:
        own = {sha256: kept for (owner, sha256), kept in self._draft.parameters.items() if owner == principal_id}
        return sum(bytes_kept(kept.numbers) for kept in own.values()), own.keys() & set(hashes)

    def parameters(self, principal_id: UUID, sha256: str) -> KeptParameters | None:
        return self._draft.parameters.get((principal_id, sha256))

    def worst_cases(self) -> dict[UUID, int]:
        return dict(self._draft.worst_cases)

    def acts(self, *, after: int) -> list[JournalAct]:
        return list(self._draft.journal[after:])

    def acts_of(self, *kinds: str) -> list[JournalAct]:
        return [each for each in self._draft.journal if each.act in kinds]

    def acts_on(self, slot: int, *kinds: str) -> list[JournalAct]:
        return [each for each in self._draft.journal if each.act in kinds and each.detail["slot"] == slot]

    def erasures_asked(self, *, after: int = 0, limit: int | None = None) -> list[AskedErasure]:
        asked = [each for each in self._draft.journal if each.act == "erasure_request" and each.number > after]
        return [
            AskedErasure(number=each.number, slot=each.detail["slot"], is_done=self._is_erased_after(each))
            for each in asked[:limit]
        ]

    def _is_erased_after(self, act: JournalAct) -> bool:
        later = self._draft.journal[act.number :]
        return any(each.act == "erase" and each.detail["slot"] == act.detail["slot"] for each in later)

    def act_records(self, *, before: int, limit: int, bytes_max: int) -> list[ActRecord]:
        earlier = [act for act in self._draft.act_records() if act.number < before][:limit]
        return first_of(earlier, [len((act.key or "").encode()) for act in earlier], bytes_max=bytes_max)

    def pruned_totals(self) -> Iterator[StoredPage]:
        yield from self._draft.pruned_totals

    def amendments(self) -> Iterator[Amendment]:
        yield from sorted(self._draft.amendments, key=lambda each: (each.seq, each.number, each.erasure))

    def own_parts(self, slot: int, *, after: int, to: int) -> Iterator[OwnPart]:
        for entry in self._draft.entries[after:to]:
            for piece in entry.pieces:
                if piece.number in {WHOLE, number_for(slot)}:
                    yield OwnPart(seq=entry.seq, salt=entry.salt, piece=piece)

    def individuals(self, *, of: NDArray[np.int64] | None = None) -> SlotsInUse:
        people = self._draft.people
        if of is not None:
            people = {slot: people[slot] for slot in of.tolist() if slot in people}
        return SlotsInUse(
            slots=np.array(list(people), dtype=np.int64),
            limits=np.array([person.limit_units for person in people.values()], dtype=np.int64),
            present=np.array([person.key is not None for person in people.values()], dtype=np.bool_),
            paused=np.array([person.paused for person in people.values()], dtype=np.bool_),
        )

    def records(self, table: str, *, of: NDArray[np.int64] | None = None) -> tuple[NDArray[np.int64], ColumnCodes]:
        schema = self._draft.record.schema
        parts = self._draft.records.get(table, ())
        if of is not None:
            parts = tuple(chosen(np.isin(slots, of), slots, codes) for slots, codes in parts)
        slots = np.concatenate([np.zeros(0, dtype=np.int64), *(slots for slots, _ in parts)])
        none: dict[str, NDArray[np.unsignedinteger]] = {
            name: np.zeros(0, dtype=coding.dtype) for name, coding in stored_codings(schema)[table].items()
        }
        none |= {name: coding.missing(0) for name, coding in vectors_of(schema.tables[table].columns).items()}
        return slots, {
            name: np.concatenate([empty, *(codes[name] for _, codes in parts)]) for name, empty in none.items()
        }

    def slots_of(self, keys: Sequence[Key]) -> NDArray[np.int64]:
        known = {person.key: slot for slot, person in self._draft.people.items() if person.key is not None}
        return np.array([known.get(key, -1) for key in keys], dtype=np.int64)

    def are_plain_forms(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        known = {person.plain_form for person in self._draft.people.values()}
        return np.array([text in known for text in texts], dtype=np.bool_)

    def slots_of_tombstones(self, tombstones: Sequence[bytes]) -> NDArray[np.int64]:
        known = {person.tombstone: slot for slot, person in self._draft.people.items() if person.tombstone is not None}
        return np.array([known.get(tombstone, -1) for tombstone in tombstones], dtype=np.int64)

    def upload_at(self, address: Address) -> UploadRecord | None:
        return self._draft.uploads.get(address)

    def has_tombstones(self) -> bool:
        return any(person.tombstone is not None for person in self._draft.people.values())

    def keys_of(self, *, after_slot: int, limit: int, bytes_max: int) -> list[tuple[int, Key]]:
        rows = sorted((slot, person.key) for slot, person in self._draft.people.items() if person.key is not None)
        later = [(slot, key) for slot, key in rows if slot > after_slot][:limit]
        return first_of(later, [len(key.encode()) for _, key in later], bytes_max=bytes_max)

    def _listed(
        self, before: int, limit: int, bytes_max: int, only: EntryFilter = EVERY_ENTRY, first: int = 0
    ) -> list[LedgerEntry]:
        earlier = [
            entry for entry in reversed(self._draft.entries) if first <= entry.seq < before and _admits(only, entry)
        ][:limit]
        return first_of(earlier, [len(entry.canonical) for entry in earlier], bytes_max=bytes_max)


def public_part(entry: LedgerEntry) -> PublicEntry:
    """The part of an entry that does not depend on charges."""
    return PublicEntry(**{each.name: getattr(entry, each.name) for each in fields(PublicEntry)})


def _admits(only: EntryFilter, entry: LedgerEntry) -> bool:
    """Tell whether an entry is listed."""
    text = entry.canonical.decode().lower()
    return only.analyst_id in {None, entry.analyst_id} and all(word.lower() in text for word in only.words)


def _size(entry: LedgerEntry) -> int:
    return sum(len(piece.content) for piece in entry.pieces) + len(entry.values)


def _own_charge(entry: LedgerEntry, slot: int) -> OwnCharge:
    return OwnCharge(
        seq=entry.seq,
        query_id=entry.query_id,
        analyst_id=entry.analyst_id,
        canonical=entry.canonical,
        asked_at=entry.asked_at,
        kind=entry.kind,
        part=None if entry.is_pruned else entry.quantities().own(slot, entry.law),
    )
