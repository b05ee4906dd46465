"""A transaction in memory: it works on a draft of the dataset, and leaving it without commit undoes everything."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.core.charge import CHARGE_UNITS_MAX
from service.ledger.model.amendments import Rewritten
from service.ledger.model.journal import JournalAct, UploadRecord
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.parameters import KeptParameters
from service.ledger.model.rows import AnswerRecord, Asked, ColumnCodes, DatasetRecord, StoredPage
from service.ledger.ports.store import CommitRejected, StoreUnavailable
from service.query.keys import Key
from service.query.schema import Schema
from tests.memory.snapshot import MemorySnapshot
from tests.memory.tables import Dataset, Kept

CHECK_VIOLATION, UNIQUE_VIOLATION = "23514", "23505"
"""The codes that Postgres gives for the same."""


class MemoryTransaction(MemorySnapshot):
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
        if dataset_id not in store.kept:
            raise StoreUnavailable("the dataset is deleted")
        super().__init__(store.kept[dataset_id].draft(), asked=asked)
        self._store = store
        self._dataset_id = dataset_id
        self._lock = lock
        self._wait_for_lock = wait_for_lock
        self._writes: list[Callable[[Dataset], None]] = []
        self._erased: list[str | None] = []  # keys
        self._rejection: str | None = None

    @property
    def is_locked(self) -> bool:
        """Tell whether the dataset is locked."""
        return self._lock

    def append(
        self,
        entries: Sequence[LedgerEntry],
        answers: Sequence[AnswerRecord],
        worst_cases: Mapping[UUID, int],
        parameters: Sequence[KeptParameters] = (),
    ) -> None:
        draft = self._draft
        for kept in parameters:
            draft.parameters.setdefault((kept.principal_id, kept.sha256), kept)
        draft.entries += tuple(entries)
        if any(len(entry.values) != 8 * entry.dimension for entry in entries):
            self._rejection = CHECK_VIOLATION
        for answer in answers:
            if (answer.principal_id, answer.key) in draft.answers:
                self._rejection = UNIQUE_VIOLATION
            draft.keep_answer(answer)
        for principal, units in worst_cases.items():
            draft.worst_cases[principal] = min(draft.worst_cases.get(principal, 0) + units, CHARGE_UNITS_MAX)
        if entries:
            last = entries[-1]
            draft.head = replace(draft.head, seq=last.seq, hash=last.hash, worst_case_units=last.worst_case_total_units)

    def add_individuals(
        self,
        slots: NDArray[np.int64],
        keys: Sequence[Key],
        limits: NDArray[np.int64],
        plain_forms: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        accounts = list(zip(slots.tolist(), keys, limits.tolist(), strict=True))
        self._write(lambda draft: draft.add_people(accounts, plain_forms))

    def add_records(self, table: str, slots: NDArray[np.int64], codes: ColumnCodes) -> None:
        self._write(lambda draft: draft.add_records(table, slots, codes))

    def keep_upload(self, upload: UploadRecord) -> None:
        self._write(lambda draft: draft.uploads.__setitem__(upload.address, upload))

    def delete_records(self, slot: int, *, table: str | None = None) -> None:
        self._write(lambda draft: draft.delete_records(slot, table))

    def delete_all_records(self) -> None:
        self._write(lambda draft: draft.records.clear())

    def extend_tables(self, schema: Schema) -> None:
        self._write(lambda draft: draft.extend_tables(schema))

    def set_registration(self, record: DatasetRecord) -> None:
        self._draft.set_registration(record)

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
