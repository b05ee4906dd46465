"""The in-memory twin of the Postgres store: the same port, the same contract suite, nothing durable.

A locked transaction works on a draft of the dataset and `commit` puts the draft in its place, so that leaving without
commit undoes everything.
"""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.query.coding import coding_of
from service.workflows.errors import NameTaken
from service.workflows.ledger import LedgerEntry
from service.workflows.ports import (
    Address,
    AnswerRecord,
    Asked,
    Checkpoint,
    Codes,
    DatasetRecord,
    Head,
    Individuals,
    Known,
    Outdated,
    PrincipalRecord,
    StoredPage,
    StoreUnavailable,
)

_UNITS_MAX = 2**62
Rows = tuple[NDArray[np.int64], Codes]


@dataclass(slots=True)
class _Person:
    limit_units: int
    key: str | None = None
    tombstone: bytes | None = None


@dataclass(slots=True)
class _Dataset:
    """Everything of one dataset; drafts share the values, which nobody changes in place."""

    record: DatasetRecord
    head: Head
    entries: tuple[LedgerEntry, ...] = ()
    answers: dict[Address, AnswerRecord] = field(default_factory=dict)
    worst_cases: dict[UUID, int] = field(default_factory=dict)
    people: dict[int, _Person] = field(default_factory=dict)
    records: dict[str, tuple[Rows, ...]] = field(default_factory=dict)
    pages: Mapping[int, StoredPage] = field(default_factory=dict)
    journal: tuple[tuple[str, Mapping[str, object]], ...] = ()

    def draft(self) -> "_Dataset":
        """A copy to write on."""
        return replace(
            self,
            answers=dict(self.answers),
            worst_cases=dict(self.worst_cases),
            people={slot: replace(person) for slot, person in self.people.items()},
            records=dict(self.records),
        )

    def has_come_to(self, checkpoint: Checkpoint) -> bool:
        """Whether the ledger has the checkpoint's entry."""
        seq = checkpoint.seq
        return 0 < seq <= len(self.entries) and self.entries[seq - 1].hash == checkpoint.hash


class MemoryTransaction:
    """The port's Transaction on a draft."""

    def __init__(self, store: "MemoryStore", dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()) -> None:
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
            self._draft.people[slot] = _Person(limit_units=limit, key=key)

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


class MemoryProposal:
    """The port's Proposal: nothing is drafted before it is committed."""

    def __init__(self, store: "MemoryStore", dataset_id: int, head: Head, *, asked: Sequence[Asked]) -> None:
        """Assume the head."""
        self._store, self._dataset_id, self._assumed, self._asked = store, dataset_id, head, asked
        self._appended: tuple[Sequence[LedgerEntry], Sequence[AnswerRecord], Mapping[UUID, int]] = (), (), {}
        self.head, self.known = head, Known(answers={}, reusable={}, worst_cases={})

    def append(
        self, entries: Sequence[LedgerEntry], answers: Sequence[AnswerRecord], worst_cases: Mapping[UUID, int]
    ) -> None:
        self._appended = entries, answers, worst_cases
        last = entries[-1]
        self.head = replace(self.head, seq=last.seq, hash=last.hash, worst_case_units=last.worst_case_total_units)

    def commit(self) -> None:
        with self._store.transaction(self._dataset_id, lock=True, asked=self._asked) as transaction:
            self.commit_in(transaction)

    def commit_in(self, transaction: MemoryTransaction) -> None:
        """Append and commit in a locked transaction that has just begun. Raises Outdated."""
        head, assumed, known = transaction.head, self._assumed, transaction.known
        is_same = (head.seq, head.hash, head.fence) == (assumed.seq, assumed.hash, assumed.fence)
        is_same = is_same and (head.epoch, head.data_version) == (assumed.epoch, assumed.data_version)
        _, answers, _ = self._appended
        is_taken = any((answer.principal_id, answer.key) in transaction.answered for answer in answers)
        if not is_same or known.answers or known.reusable or is_taken:
            raise Outdated
        transaction.append(*self._appended)
        transaction.commit()


class MemoryStore:
    """The port's Store in one process's memory."""

    def __init__(self) -> None:
        """Start empty."""
        self.kept: dict[int, _Dataset] = {}
        self._locks: dict[int, threading.Lock] = {}
        self._principals: dict[UUID, PrincipalRecord] = {}
        self._door = threading.Lock()

    @contextmanager
    def transaction(self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()) -> Iterator[MemoryTransaction]:
        with self._locks[dataset_id] if lock else nullcontext():
            yield MemoryTransaction(self, dataset_id, lock=lock, asked=asked)

    @contextmanager
    def proposal(self, dataset_id: int, head: Head, *, asked: Sequence[Asked]) -> Iterator[MemoryProposal]:
        yield MemoryProposal(self, dataset_id, head, asked=asked)

    def add_dataset(self, record: DatasetRecord) -> DatasetRecord:
        with self._door:
            if self.dataset(record.name) is not None:
                raise NameTaken
            registered = replace(record, id=len(self.kept) + 1)
            head = Head(
                seq=0,
                hash=record.genesis,
                epoch=1,
                fence=1,
                data_version=0,
                slots=0,
                worst_case_units=0,
                checkpoint_seq=0,
            )
            self._locks[registered.id] = threading.Lock()
            self.kept[registered.id] = _Dataset(record=registered, head=head)
            return registered

    def dataset(self, name: str) -> DatasetRecord | None:
        return next((kept.record for kept in self.kept.values() if kept.record.name == name), None)

    def datasets(self) -> list[DatasetRecord]:
        return sorted((kept.record for kept in self.kept.values()), key=lambda record: record.name)

    def head(self, dataset_id: int) -> Head:
        return self.kept[dataset_id].head

    def keep(self, dataset_id: int, draft: _Dataset) -> None:
        """Put a draft in the place of what it was drafted from, whose pages may have been written meanwhile."""
        with self._door:
            self.kept[dataset_id] = replace(draft, pages=self.kept[dataset_id].pages)

    def write_page(self, dataset_id: int, checkpoint: Checkpoint, page: int) -> None:
        with self._door:
            kept = self.kept[dataset_id]
            held = kept.pages.get(page)
            if kept.has_come_to(checkpoint) and (held is None or held.seq < checkpoint.seq):
                spent = checkpoint.pages[page].copy()
                stored = StoredPage(number=page, seq=checkpoint.seq, spent=spent)
                self.kept[dataset_id] = replace(kept, pages={**kept.pages, page: stored})

    def finish_checkpoint(self, dataset_id: int, checkpoint: Checkpoint) -> bool:
        with self._locks[dataset_id]:
            return self.move_checkpoint(dataset_id, checkpoint)

    def move_checkpoint(self, dataset_id: int, checkpoint: Checkpoint) -> bool:
        """As `finish_checkpoint`, for whoever has the dataset's lock."""
        with self._door:
            kept = self.kept[dataset_id]
            stored = [kept.pages[page].seq if page in kept.pages else 0 for page in checkpoint.pages]
            is_between = checkpoint.since <= kept.head.checkpoint_seq < checkpoint.seq
            if not is_between or min(stored, default=checkpoint.seq) < checkpoint.seq:
                return False
            if not kept.has_come_to(checkpoint):
                return False
            self.kept[dataset_id] = replace(kept, head=replace(kept.head, checkpoint_seq=checkpoint.seq))
            return True

    def row_counts(self, dataset_id: int) -> tuple[int, dict[str, int]]:
        kept = self.kept[dataset_id]
        rows = {name: sum(s.size for s, _ in kept.records.get(name, ())) for name in kept.record.schema.tables}
        return sum(person.key is not None for person in kept.people.values()), rows

    def add_principal(self, record: PrincipalRecord) -> None:
        self._principals[record.id] = record

    def principal(self, principal_id: UUID) -> PrincipalRecord | None:
        return self._principals.get(principal_id)

    def principals(self, *, after: UUID | None, limit: int) -> list[PrincipalRecord]:
        rows = sorted(self._principals.values(), key=lambda record: record.id)
        return [record for record in rows if after is None or record.id > after][:limit]

    def revoke_principal(self, principal_id: UUID, at: datetime) -> bool:
        record = self._principals.get(principal_id)
        if record is None or record.revoked_at is not None:
            return False
        self._principals[principal_id] = replace(record, revoked_at=at)
        return True

    def answer_of(self, principal_id: UUID, query_id: UUID) -> tuple[DatasetRecord, AnswerRecord, LedgerEntry] | None:
        found = [row for row in self._replies(principal_id) if row[1].query_id == query_id]
        return min(found, key=lambda row: (row[1].at, row[1].key)) if found else None

    def answers_of(
        self, principal_id: UUID, *, before: tuple[datetime, UUID] | None, limit: int
    ) -> list[tuple[DatasetRecord, AnswerRecord, LedgerEntry]]:
        rows = sorted(self._replies(principal_id), key=lambda row: (row[1].at, row[1].query_id), reverse=True)
        return [row for row in rows if before is None or (row[1].at, row[1].query_id) < before][:limit]

    def worst_cases_of(self, principal_id: UUID) -> dict[str, int]:
        return {
            kept.record.name: kept.worst_cases[principal_id]
            for kept in self.kept.values()
            if principal_id in kept.worst_cases
        }

    def problems(self) -> list[str]:
        return []

    def _replies(self, principal_id: UUID) -> Iterator[tuple[DatasetRecord, AnswerRecord, LedgerEntry]]:
        for kept in self.kept.values():
            for answer in kept.answers.values():
                if answer.principal_id == principal_id:
                    yield kept.record, answer, kept.entries[answer.seq - 1]


def _without(slot: int, slots: NDArray[np.int64], codes: Codes) -> Rows:
    keep = slots != slot
    return slots[keep], {name: values[keep] for name, values in codes.items()}
