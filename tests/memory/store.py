"""Everything that the in-memory store keeps, and the doors to a dataset's transaction and proposal.

Twins of the tables of principals, sign-ins and summaries, in one process's memory.
"""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from service.ledger.model.errors import NameTaken
from service.ledger.model.ledger_entry import LedgerEntry, PublicEntry
from service.ledger.model.parameters import KeptParameters
from service.ledger.model.rows import (
    EVERY_PRINCIPAL,
    NO_KEY,
    AnswerRecord,
    Asked,
    Checkpoint,
    DatasetRecord,
    Head,
    Known,
    OwnAnswer,
    PrincipalFilter,
    PrincipalRecord,
    ReleasePlace,
    ReleaseRecord,
)
from service.ledger.ports.store import BudgetAlarm, HeadMoved, NotEmpty, SignIn, StoreUnavailable, SummaryPoint
from tests.memory.snapshot import public_part
from tests.memory.tables import Dataset, Kept, first_of
from tests.memory.transaction import MemoryTransaction

Appended = tuple[Sequence[LedgerEntry], Sequence[AnswerRecord], Mapping[UUID, int], Sequence[KeptParameters]]


class MemoryPrincipals:
    """The port's PrincipalTable, on the records that a store keeps."""

    def __init__(self, kept: Kept, sign_ins: "MemorySignIns | None" = None) -> None:
        self._kept, self._sign_ins = kept, sign_ins or MemorySignIns()

    def add(self, records: Sequence[PrincipalRecord]) -> None:
        self._kept.principal_records.update((record.id, record) for record in records)

    def find(self, principal_id: UUID) -> PrincipalRecord | None:
        return self._kept.principal_records.get(principal_id)

    def some(self, principal_ids: Collection[UUID]) -> list[PrincipalRecord]:
        return [record for record in self._kept.principal_records.values() if record.id in set(principal_ids)]

    def recognised(self, principal_ids: Collection[UUID]) -> list[PrincipalRecord]:
        return self.some(principal_ids)

    def listed(
        self, *, after: UUID | None, limit: int, only: PrincipalFilter = EVERY_PRINCIPAL, last: UUID | None = None
    ) -> list[PrincipalRecord]:
        admitted = [each for each in self._kept.principal_records.values() if _admits(only, each)]
        rows = sorted(admitted, key=lambda record: record.id)
        rows = [record for record in rows if last is None or record.id <= last]
        return [record for record in rows if after is None or record.id > after][:limit]

    def reach(self, *, after: UUID | None, limit: int) -> UUID | None:
        ids = [record.id for record in self.listed(after=after, limit=limit)]
        return ids[-1] if len(ids) == limit else None

    def analysts_of(self, dataset: str) -> list[PrincipalRecord]:
        records = self._kept.principal_records.values()
        found = [record for record in records if record.role == "analyst" and record.dataset in {None, dataset}]
        return sorted(found, key=lambda record: (record.name, record.id))

    def change(self, record: PrincipalRecord) -> bool:
        before = self.find(record.id)
        if before is None or before.revoked_at is not None:
            return False
        fixed = {name: getattr(before, name) for name in ("role", "dataset", "individual", "created_at", "revoked_at")}
        self._kept.principal_records[record.id] = replace(record, **fixed)
        return True

    def rebind(self, record: PrincipalRecord) -> bool:
        before = self.find(record.id)
        if before is None or before.revoked_at is not None or before.key_hash != NO_KEY:
            return False
        if before.binding == record.binding:
            return False
        self._kept.principal_records[record.id] = replace(record, created_at=before.created_at)
        self._sign_ins.end_all(record.id)
        return True

    def revoke(self, principal_id: UUID, at: datetime) -> bool:
        record = self.find(principal_id)
        if record is None or record.revoked_at is not None:
            return False
        self._kept.principal_records[principal_id] = replace(record, revoked_at=at)
        return True


class MemorySignIns:
    """The port's SignInTable."""

    def __init__(self) -> None:
        self.kept: dict[bytes, SignIn] = {}

    def add(self, sign_in: SignIn, *, now: datetime) -> None:
        self.kept = {each.token_hash: each for each in self.kept.values() if each.expires_at > now}
        self.kept[sign_in.token_hash] = sign_in

    def some(self, token_hashes: Collection[bytes]) -> list[SignIn]:
        return [self.kept[each] for each in token_hashes if each in self.kept]

    def extend(self, token_hashes: Collection[bytes], expires_at: datetime) -> None:
        for each in self.some(token_hashes):
            self.kept[each.token_hash] = replace(each, expires_at=expires_at)

    def end(self, token_hash: bytes) -> None:
        self.kept.pop(token_hash, None)

    def end_all(self, principal_id: UUID) -> None:
        """Forget all sign-ins of a principal."""
        self.kept = {name: each for name, each in self.kept.items() if each.principal_id != principal_id}


class MemorySummaries:
    """The port's SummaryTable."""

    def __init__(self) -> None:
        self._points: dict[int, dict[int, SummaryPoint]] = {}
        self._alarms: dict[int, BudgetAlarm] = {}

    def add_point(self, dataset_id: int, point: SummaryPoint) -> None:
        self._points.setdefault(dataset_id, {}).setdefault(point.seq, point)

    def points(self, dataset_id: int) -> list[SummaryPoint]:
        return sorted(self._points.get(dataset_id, {}).values(), key=lambda point: point.seq)

    def forget(self, dataset_id: int) -> None:
        """Drop everything of a dataset that is deleted."""
        self._points.pop(dataset_id, None)
        self._alarms.pop(dataset_id, None)

    def drop_points(self, dataset_id: int, seqs: Sequence[int]) -> None:
        for seq in seqs:
            self._points.get(dataset_id, {}).pop(seq, None)

    def alarm(self, dataset_id: int) -> BudgetAlarm | None:
        return self._alarms.get(dataset_id)

    def set_alarm(self, dataset_id: int, alarm: BudgetAlarm | None) -> None:
        self._alarms.pop(dataset_id, None)
        if alarm is not None:
            self._alarms[dataset_id] = alarm


class MemoryConditionalAppend:
    """The port's ConditionalAppend: nothing is drafted before it is committed."""

    def __init__(self, store: "MemoryStore", dataset_id: int, head: Head, *, asked: Sequence[Asked]) -> None:
        self._store, self._dataset_id, self._assumed, self._asked = store, dataset_id, head, asked
        self._appended: Appended = (), (), {}, ()
        self.head, self.known = head, Known(answers={}, reusable={}, worst_cases={})

    def append(
        self,
        entries: Sequence[LedgerEntry],
        answers: Sequence[AnswerRecord],
        worst_cases: Mapping[UUID, int],
        parameters: Sequence[KeptParameters] = (),
    ) -> None:
        self._appended = entries, answers, worst_cases, parameters
        last = entries[-1]
        self.head = replace(self.head, seq=last.seq, hash=last.hash, worst_case_units=last.worst_case_total_units)

    def commit(self) -> None:
        with self._store.transaction(self._dataset_id, lock=True, asked=self._asked) as transaction:
            self.commit_in(transaction)

    def commit_in(self, transaction: MemoryTransaction) -> None:
        """Append and commit in a locked transaction that has just begun. Raises HeadMoved."""
        head, assumed, known = transaction.head, self._assumed, transaction.known
        is_same = (head.seq, head.hash, head.fence) == (assumed.seq, assumed.hash, assumed.fence)
        is_same = is_same and (head.epoch, head.data_version) == (assumed.epoch, assumed.data_version)
        _, answers, _, _ = self._appended
        is_taken = any((answer.principal_id, answer.key) in transaction.answered for answer in answers)
        if not is_same or known.answers or known.reusable or is_taken:
            raise HeadMoved
        transaction.append(*self._appended)
        transaction.commit()


class MemoryStore(Kept):
    """The port's Store in one process's memory."""

    def __init__(self) -> None:
        super().__init__()
        self.sign_ins, self.summaries = MemorySignIns(), MemorySummaries()
        self.principals = MemoryPrincipals(self, self.sign_ins)
        self._locks: dict[int, threading.Lock] = {}
        self._act_locks: dict[int, threading.Lock] = {}

    @contextmanager
    def transaction(self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()) -> Iterator[MemoryTransaction]:
        with self._locks[dataset_id] if lock else nullcontext():
            yield MemoryTransaction(self, dataset_id, lock=lock, asked=asked)

    @contextmanager
    def long_act(self, dataset_id: int) -> Iterator[MemoryTransaction]:
        lock = self._locks[dataset_id]
        with self._act_locks[dataset_id]:
            transaction = MemoryTransaction(self, dataset_id, lock=False, wait_for_lock=lock.acquire)
            try:
                yield transaction
            finally:
                if transaction.is_locked:
                    lock.release()

    @contextmanager
    def conditional_append(
        self, dataset_id: int, head: Head, *, asked: Sequence[Asked]
    ) -> Iterator[MemoryConditionalAppend]:
        yield MemoryConditionalAppend(self, dataset_id, head, asked=asked)

    def add_dataset(self, record: DatasetRecord) -> DatasetRecord:
        with self._lock:
            if self.dataset(record.name) is not None:
                raise NameTaken
            registered = replace(record, id=len(self.kept) + sum(self.deleted.values()) + 1)
            head = Head(
                seq=0,
                hash=record.genesis,
                epoch=1,
                fence=1,
                data_version=0,
                slots=0,
                worst_case_units=0,
                checkpoint_seq=0,
                journal_hash=record.genesis,
            )
            self._locks[registered.id], self._act_locks[registered.id] = threading.Lock(), threading.Lock()
            self.kept[registered.id] = Dataset(record=registered, head=head)
            return registered

    def dataset(self, name: str) -> DatasetRecord | None:
        return next((kept.record for kept in self.kept.values() if kept.record.name == name), None)

    def deletions(self, name: str) -> int:
        return self.deleted.get(name, 0)

    def delete_dataset(self, dataset_id: int) -> None:
        with self._act_locks[dataset_id], self._locks[dataset_id], self._lock:
            kept = self.kept[dataset_id]
            if kept.entries or kept.answers or kept.head.fence > 1:
                raise NotEmpty
            name = kept.record.name
            del self.kept[dataset_id]
            self.summaries.forget(dataset_id)
            self.deleted[name] = self.deleted.get(name, 0) + 1
            for record in [each for each in self.principal_records.values() if each.dataset == name]:
                del self.principal_records[record.id]

    def datasets(self) -> list[DatasetRecord]:
        return sorted((kept.record for kept in self.kept.values()), key=lambda record: record.name)

    def datasets_after(self, name: str | None, *, limit: int) -> list[DatasetRecord]:
        return [record for record in self.datasets() if record.name > (name or "")][:limit]

    def head(self, dataset_id: int) -> Head:
        if dataset_id not in self.kept:
            raise StoreUnavailable("the dataset is deleted")
        return self.kept[dataset_id].head

    def finish_checkpoint(self, dataset_id: int, checkpoint: Checkpoint) -> bool:
        with self._locks[dataset_id]:
            return self.move_checkpoint(dataset_id, checkpoint)

    def row_counts(self, dataset_id: int) -> tuple[int, dict[str, int]]:
        kept = self.kept[dataset_id]
        rows = {name: sum(s.size for s, _ in kept.records.get(name, ())) for name in kept.record.schema.tables}
        return sum(person.key is not None for person in kept.people.values()), rows

    def answer_of(self, principal_id: UUID, query_id: UUID) -> OwnAnswer | None:
        found = [
            OwnAnswer(dataset=kept.record.name, answer=answer)
            for kept, answer, _ in self._answers(principal_id)
            if answer.query_id == query_id
        ]
        return min(found, key=lambda own: (own.answer.at, own.answer.key)) if found else None

    def releases_of(
        self, principal_id: UUID, *, before: ReleasePlace | None, limit: int, bytes_max: int
    ) -> list[ReleaseRecord]:
        rows = sorted((_listed(*row) for row in self._answers(principal_id)), key=lambda row: row.place, reverse=True)
        later = [row for row in rows if before is None or row.place < before][:limit]
        return first_of(later, [len(row.canonical) for row in later], bytes_max=bytes_max)

    def worst_cases_of(self, principal_id: UUID) -> dict[str, int]:
        return {
            kept.record.name: kept.worst_cases[principal_id]
            for kept in self.kept.values()
            if principal_id in kept.worst_cases
        }

    def worst_cases_in(self, dataset_id: int) -> dict[UUID, int]:
        return dict(self.kept[dataset_id].worst_cases)

    def problems(self) -> list[str]:
        return []

    def _answers(self, principal_id: UUID) -> Iterator[tuple[Dataset, AnswerRecord, PublicEntry]]:
        for kept in self.kept.values():
            for answer in kept.answers.values():
                if answer.principal_id == principal_id:
                    yield kept, kept.whole(answer), public_part(kept.entries[answer.seq - 1])


def _listed(kept: Dataset, answer: AnswerRecord, entry: PublicEntry) -> ReleaseRecord:
    return ReleaseRecord(
        dataset=kept.record.name,
        place=ReleasePlace(at=answer.at, dataset_id=kept.record.id, seq=answer.seq, key=answer.key),
        query_id=entry.query_id,
        epoch=entry.epoch,
        canonical=answer.asked_form or entry.canonical,
        mechanism=entry.mechanism,
        sigma=entry.sigma,
        sigmas=entry.sigmas,
        dimension=entry.dimension,
        worst_case_units=entry.worst_case_units,
    )


def _admits(only: PrincipalFilter, record: PrincipalRecord) -> bool:
    """Tell whether a principal is listed."""
    facts = (record.name, record.role, record.dataset, record.individual, record.organisation)
    text = " ".join(fact for fact in facts if fact is not None).lower()
    is_of = only.role in {None, record.role} and only.dataset in {None, record.dataset}
    return is_of and all(word.lower() in text for word in only.words)
