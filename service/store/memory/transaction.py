"""A transaction in memory: it works on a draft of the dataset, and leaving it without commit undoes everything."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.core.units import CHARGE_UNITS_MAX
from service.engine.pages import PAGE_SLOTS, PageTotals
from service.query.coding import coding_of
from service.store.memory.kept import Dataset, Kept, chosen, first_of
from service.workflows.amendments import Amendment, OwnPart, Rewritten
from service.workflows.encoded_charges import EncodedCharges
from service.workflows.journal import JournalAct
from service.workflows.ledger import LedgerEntry
from service.workflows.ports import CommitRejected, StoreUnavailable
from service.workflows.records import (
    ActRecord,
    Address,
    AnswerRecord,
    Asked,
    Codes,
    EntryRecord,
    Head,
    Individuals,
    Known,
    OwnAccount,
    OwnCharge,
    StoredPage,
)

_LISTED = tuple(each.name for each in fields(EntryRecord) if each.name != "follows_first")
CHECK_VIOLATION, UNIQUE_VIOLATION = "23514", "23505"
"""The codes that Postgres gives for the same."""


class MemoryTransaction:
    """The port's Transaction on a draft."""

    def __init__(
        self,
        store: Kept,
        dataset_id: int,
        *,
        lock: bool,
        asked: Sequence[Asked] = (),
        wait_for_lock: Callable[[], object] = lambda: None,
    ) -> None:
        """Draft the dataset as it stands. `wait_for_lock` is for a long act, which is locked later."""
        self._store = store
        self._dataset_id = dataset_id
        self._draft = store.kept[dataset_id].draft()
        self._lock = lock
        self._asked = asked
        self._wait_for_lock = wait_for_lock
        self._writes: list[Callable[[Dataset], None]] = []
        self._erased: list[str | None] = []  # keys
        self._rejection: str | None = None

    @property
    def is_locked(self) -> bool:
        """Whether the dataset is."""
        return self._lock

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
            answers={address: answer for address, answer in draft.answers.items() if address in addresses},
            reusable={
                entry.query_hash: entry.public()
                for entry in draft.entries
                if entry.kind == "query" and entry.query_hash in hashes and entry.epoch == draft.head.epoch
            },
            worst_cases={principal: draft.worst_cases.get(principal, 0) for principal, _ in addresses},
        )

    def entries(self, *, after: int, limit: int | None = None) -> Iterator[LedgerEntry]:
        yield from self._draft.entries[after:][:limit]

    def entry_records(self, *, before: int, limit: int, bytes_max: int) -> list[EntryRecord]:
        entries, listed = self._draft.entries, self._listed(before, limit, bytes_max)
        return [
            EntryRecord(
                **{name: getattr(entry, name) for name in _LISTED},
                follows_first=entry.seq > 1 and entries[entry.seq - 2].format == 1,
            )
            for entry in listed
        ]

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
        own = [(entry.kind, *entry.own(slot)) for entry in draft.entries[seq:]]
        outcomes = [outcome for kind, outcome, _ in own if kind == "query"]
        return OwnAccount(
            limit=person.limit_units,
            spent=int(totals.spent[place]) + sum(units for _, _, units in own),
            paused=person.paused,
            queries_charged=int(totals.charged[place]) + outcomes.count("charged"),
            queries_left_out=int(totals.left_out[place]) + outcomes.count("left_out"),
        )

    def burns(self) -> list[LedgerEntry]:
        return [entry for entry in self._draft.entries if entry.kind == "burn"]

    def hashes(self, seqs: Sequence[int]) -> dict[int, bytes]:
        entries = self._draft.entries
        return {seq: entries[seq - 1].hash for seq in seqs if 1 <= seq <= len(entries)}

    def pages(self) -> Iterator[StoredPage]:
        yield from (self._draft.pages[number] for number in sorted(self._draft.pages))

    def answers(self) -> Iterator[AnswerRecord]:
        yield from sorted(self._draft.answers.values(), key=lambda each: (each.seq, each.principal_id, each.key))

    def worst_cases(self) -> dict[UUID, int]:
        return dict(self._draft.worst_cases)

    def acts(self, *, after: int) -> list[JournalAct]:
        return list(self._draft.journal[after:])

    def acts_of(self, *kinds: str) -> list[JournalAct]:
        return [each for each in self._draft.journal if each.act in kinds]

    def acts_on(self, slot: int, *kinds: str) -> list[JournalAct]:
        return [each for each in self._draft.journal if each.act in kinds and each.detail["slot"] == slot]

    def act_records(self, *, before: int, limit: int, bytes_max: int) -> list[ActRecord]:
        earlier = [act for act in self._draft.act_records() if act.number < before][:limit]
        return first_of(earlier, [len((act.key or "").encode()) for act in earlier], bytes_max=bytes_max)

    def pruned_totals(self) -> Iterator[StoredPage]:
        yield from self._draft.pruned_totals

    def amendments(self) -> Iterator[Amendment]:
        yield from sorted(self._draft.amendments, key=lambda each: (each.seq, each.number, each.erasure))

    def own_parts(self, slot: int, *, after: int, to: int) -> Iterator[OwnPart]:
        for entry in self._draft.entries[after:to]:
            content = entry.charges or entry.piece_for(slot)
            if content is not None:
                digest = entry.charges_digest if isinstance(content, EncodedCharges) else content.bound_digest
                yield OwnPart(seq=entry.seq, salt=entry.salt, first_digest=digest, content=content)

    def individuals(self, *, of: NDArray[np.int64] | None = None) -> Individuals:
        people = self._draft.people
        if of is not None:
            people = {slot: people[slot] for slot in of.tolist() if slot in people}
        return Individuals(
            slots=np.array(list(people), dtype=np.int64),
            limits=np.array([person.limit_units for person in people.values()], dtype=np.int64),
            present=np.array([person.key is not None for person in people.values()], dtype=np.bool_),
            paused=np.array([person.paused for person in people.values()], dtype=np.bool_),
        )

    def records(self, table: str, *, of: NDArray[np.int64] | None = None) -> tuple[NDArray[np.int64], Codes]:
        columns = self._draft.record.schema.tables[table].columns
        parts = self._draft.records.get(table, ())
        if of is not None:
            parts = tuple(chosen(np.isin(slots, of), slots, codes) for slots, codes in parts)
        slots = np.concatenate([np.zeros(0, dtype=np.int64), *(slots for slots, _ in parts)])
        return slots, {
            name: np.concatenate([np.zeros(0, dtype=coding_of(column).dtype), *(codes[name] for _, codes in parts)])
            for name, column in columns.items()
            if column.type != "budget"
        }

    def slots_of(self, keys: Sequence[str]) -> NDArray[np.int64]:
        known = {person.key: slot for slot, person in self._draft.people.items() if person.key is not None}
        return np.array([known.get(key, -1) for key in keys], dtype=np.int64)

    def slots_of_tombstones(self, tombstones: Sequence[bytes]) -> NDArray[np.int64]:
        known = {person.tombstone: slot for slot, person in self._draft.people.items() if person.tombstone is not None}
        return np.array([known.get(tombstone, -1) for tombstone in tombstones], dtype=np.int64)

    def has_tombstones(self) -> bool:
        return any(person.tombstone is not None for person in self._draft.people.values())

    def keys_of(self, *, after_slot: int, limit: int, bytes_max: int) -> list[tuple[int, str]]:
        rows = sorted((slot, person.key) for slot, person in self._draft.people.items() if person.key is not None)
        later = [(slot, key) for slot, key in rows if slot > after_slot][:limit]
        return first_of(later, [len(key.encode()) for _, key in later], bytes_max=bytes_max)

    def append(
        self, entries: Sequence[LedgerEntry], answers: Sequence[AnswerRecord], worst_cases: Mapping[UUID, int]
    ) -> None:
        draft = self._draft
        draft.entries += tuple(entries)
        if any(len(entry.values) != 8 * entry.dimension for entry in entries):
            self._rejection = CHECK_VIOLATION
        for answer in answers:
            if (answer.principal_id, answer.key) in draft.answers:
                self._rejection = UNIQUE_VIOLATION
            draft.answers[answer.principal_id, answer.key] = answer
        for principal, units in worst_cases.items():
            draft.worst_cases[principal] = min(draft.worst_cases.get(principal, 0) + units, CHARGE_UNITS_MAX)
        if entries:
            last = entries[-1]
            draft.head = replace(draft.head, seq=last.seq, hash=last.hash, worst_case_units=last.worst_case_total_units)

    def add_individuals(self, slots: NDArray[np.int64], keys: Sequence[str], limits: NDArray[np.int64]) -> None:
        accounts = list(zip(slots.tolist(), keys, limits.tolist(), strict=True))
        self._write(lambda draft: draft.add_people(accounts))

    def add_records(self, table: str, slots: NDArray[np.int64], codes: Codes) -> None:
        self._write(lambda draft: draft.add_records(table, slots, codes))

    def delete_records(self, slot: int) -> None:
        self._write(lambda draft: draft.delete_records(slot))

    def erase(self, slot: int, tombstone: bytes) -> None:
        self._erased.append(self._draft.people[slot].key)
        self._write(lambda draft: draft.erase(slot, tombstone))

    def hasten(self) -> None:
        """Memory is as fast as a disk gets."""

    def lock(self) -> None:
        self._wait_for_lock()
        self._lock, self._draft = True, self._store.kept[self._dataset_id].draft()
        for write in self._writes:
            write(self._draft)

    def amend(self, parts: Sequence[Rewritten]) -> None:
        self._write(lambda draft: draft.amend(parts))

    def keep_totals(self, pages: Sequence[StoredPage]) -> None:
        self._write(lambda draft: setattr(draft, "pruned_totals", tuple(pages)))

    def prune(self, seq: int) -> None:
        self._draft.prune(seq)

    def drop_quantities(self, *, after: int, to: int) -> None:
        """They were, when it was pruned."""

    def set_limit(self, slot: int, limit_units: int) -> None:
        person = self._draft.people[slot]
        person.limit_units = min(person.limit_units, limit_units)

    def set_paused(self, slot: int, *, paused: bool) -> None:
        self._draft.people[slot].paused = paused

    def journal(
        self, act: str, detail: Mapping[str, object], *, slots: int | None = None, epoch: int | None = None
    ) -> None:
        head = self._draft.head
        following = JournalAct.following(
            head.journal_hash, number=len(self._draft.journal) + 1, at_seq=head.seq, act=act, detail=detail
        )
        self._draft.journal += (following,)
        self._draft.acted_at += (datetime.now(UTC),)
        self._draft.head = replace(
            head,
            data_version=head.data_version + 1,
            journal_hash=following.hash,
            slots=head.slots if slots is None else slots,
            epoch=head.epoch if epoch is None else epoch,
        )

    def fence_off(self, fence: int, joining_units: int) -> None:
        self._draft.head = replace(self._draft.head, fence=fence, joining_units=joining_units)

    def commit(self) -> None:
        if not self._lock:
            raise StoreUnavailable("a snapshot cannot be committed")
        if self._rejection is not None:
            raise CommitRejected(self._rejection)
        self._store.keep(self._dataset_id, self._draft)
        for key in self._erased:
            self._store.forget_principals(self._draft.record.name, key)

    def _write(self, write: Callable[[Dataset], None]) -> None:
        """Write on the draft, and on the one that takes its place when a long act is locked."""
        write(self._draft)
        self._writes.append(write)

    def _listed(self, before: int, limit: int, bytes_max: int) -> list[LedgerEntry]:
        earlier = [entry for entry in reversed(self._draft.entries) if entry.seq < before][:limit]
        return first_of(earlier, [len(entry.canonical) for entry in earlier], bytes_max=bytes_max)


def _size(entry: LedgerEntry) -> int:
    charges = b"" if entry.charges is None else entry.charges.slots + (entry.charges.charges or b"")
    return len(charges) + sum(len(piece.content) for piece in entry.pieces) + len(entry.values)


def _own_charge(entry: LedgerEntry, slot: int) -> OwnCharge:
    outcome, units = (None, None) if entry.is_pruned else entry.own(slot)
    return OwnCharge(
        seq=entry.seq,
        query_id=entry.query_id,
        canonical=entry.canonical,
        asked_at=entry.asked_at,
        kind=entry.kind,
        outcome=outcome,
        units=units,
    )
