"""A transaction in memory: it works on a draft of the dataset, and leaving it without commit undoes everything."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.query.coding import coding_of
from service.store.memory.kept import Kept, Person, Rows
from service.workflows.ledger import LedgerEntry
from service.workflows.ports import StoreUnavailable
from service.workflows.records import Address, AnswerRecord, Asked, Codes, Head, Individuals, Known, StoredPage

_UNITS_MAX = 2**62


class MemoryTransaction:
    """The port's Transaction on a draft."""

    def __init__(self, store: Kept, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()) -> None:
        """Draft the dataset as it stands."""
        self._store = store
        self._dataset_id = dataset_id
        self._draft = store.kept[dataset_id].draft()
        self._lock = lock
        self._asked = asked

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
                entry.query_hash: entry
                for entry in draft.entries
                if entry.kind == "query" and entry.query_hash in hashes and entry.epoch == draft.head.epoch
            },
            worst_cases={principal: draft.worst_cases.get(principal, 0) for principal, _ in addresses},
        )

    def entries(self, *, after: int, limit: int | None = None) -> Iterator[LedgerEntry]:
        yield from self._draft.entries[after:][:limit]

    def entries_before(self, *, before: int, limit: int) -> list[LedgerEntry]:
        return [entry for entry in reversed(self._draft.entries) if entry.seq < before][:limit]

    def burns(self) -> list[LedgerEntry]:
        return [entry for entry in self._draft.entries if entry.kind == "burn"]

    def hashes(self, seqs: Sequence[int]) -> dict[int, bytes]:
        entries = self._draft.entries
        return {seq: entries[seq - 1].hash for seq in seqs if 1 <= seq <= len(entries)}

    def pages(self) -> Iterator[StoredPage]:
        yield from (self._draft.pages[number] for number in sorted(self._draft.pages))

    def individuals(self) -> Individuals:
        people = self._draft.people
        return Individuals(
            slots=np.array(list(people), dtype=np.int64),
            limits=np.array([person.limit_units for person in people.values()], dtype=np.int64),
            present=np.array([person.key is not None for person in people.values()], dtype=np.bool_),
        )

    def records(self, table: str) -> tuple[NDArray[np.int64], Codes]:
        columns = self._draft.record.schema.tables[table].columns
        parts = self._draft.records.get(table, ())
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

    def keys_of(self, *, after_slot: int, limit: int) -> list[tuple[int, str]]:
        rows = sorted((slot, person.key) for slot, person in self._draft.people.items() if person.key is not None)
        return [(slot, key) for slot, key in rows if slot > after_slot][:limit]

    def append(
        self, entries: Sequence[LedgerEntry], answers: Sequence[AnswerRecord], worst_cases: Mapping[UUID, int]
    ) -> None:
        draft = self._draft
        draft.entries += tuple(entries)
        for answer in answers:
            if (answer.principal_id, answer.key) in draft.answers:
                raise StoreUnavailable("a reply under this key exists")
            draft.answers[answer.principal_id, answer.key] = answer
        for principal, units in worst_cases.items():
            draft.worst_cases[principal] = min(draft.worst_cases.get(principal, 0) + units, _UNITS_MAX)
        if entries:
            last = entries[-1]
            draft.head = replace(draft.head, seq=last.seq, hash=last.hash, worst_case_units=last.worst_case_total_units)

    def add_individuals(self, slots: NDArray[np.int64], keys: Sequence[str], limits: NDArray[np.int64]) -> None:
        for slot, key, limit in zip(slots.tolist(), keys, limits.tolist(), strict=True):
            self._draft.people[slot] = Person(limit_units=limit, key=key)

    def add_records(self, table: str, slots: NDArray[np.int64], codes: Codes) -> None:
        self._draft.records[table] = (*self._draft.records.get(table, ()), (slots, codes))

    def erase(self, slot: int, tombstone: bytes) -> None:
        for table, parts in self._draft.records.items():
            self._draft.records[table] = tuple(_without(slot, *part) for part in parts)
        person = self._draft.people[slot]
        person.key, person.tombstone = None, tombstone

    def set_limit(self, slot: int, limit_units: int) -> None:
        person = self._draft.people[slot]
        person.limit_units = min(person.limit_units, limit_units)

    def journal(
        self, act: str, detail: Mapping[str, object], *, slots: int | None = None, epoch: int | None = None
    ) -> None:
        head = self._draft.head
        self._draft.journal += ((act, dict(detail)),)
        self._draft.head = replace(
            head,
            data_version=head.data_version + 1,
            slots=head.slots if slots is None else slots,
            epoch=head.epoch if epoch is None else epoch,
        )

    def fence_off(self, fence: int, joining_units: int) -> None:
        self._draft.head = replace(self._draft.head, fence=fence, joining_units=joining_units)

    def commit(self) -> None:
        if not self._lock:
            raise StoreUnavailable("a snapshot cannot be committed")
        self._store.keep(self._dataset_id, self._draft)


def _without(slot: int, slots: NDArray[np.int64], codes: Codes) -> Rows:
    keep = slots != slot
    return slots[keep], {name: values[keep] for name, values in codes.items()}
