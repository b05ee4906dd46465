"""The ports: what the workflows need from a store and from a witness, and how these may fail.

The values that go in and out are in `service.workflows.records`. Adapters live in `service.store`; each has an
in-memory twin that passes the same contract suite (tests/contracts).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.workflows.ledger import LedgerEntry
from service.workflows.records import (
    AnswerRecord,
    Asked,
    Checkpoint,
    Codes,
    DatasetRecord,
    Head,
    Individuals,
    Known,
    PrincipalRecord,
    StoredPage,
    WitnessRecord,
)


class StoreUnavailable(Exception):
    """The store did not answer, or answered with a fault; nothing of this transaction is durable."""


class CommitUnclear(Exception):
    """COMMIT was sent and no clear reply came: the transaction may be durable. Read before you do anything."""


class Outdated(Exception):
    """What a proposal assumed is not so: nothing of it is durable. Read before you try again."""


class WitnessUnavailable(Exception):
    """The witness could not be read, or what was to be written is not certain to be there after a power cut."""


class Transaction(Protocol):
    """One dataset at one instant. Locked transactions are serial; leaving without `commit` undoes everything."""

    @property
    def head(self) -> Head:
        """The head as read, and moved along by what this transaction writes."""

    @property
    def known(self) -> Known:
        """What is known about the questions that the transaction was opened for."""

    def entries(self, *, after: int, limit: int | None = None) -> Iterator[LedgerEntry]:
        """Entries with seq > `after`, in order, at most `limit`."""

    def entries_before(self, *, before: int, limit: int) -> list[LedgerEntry]:
        """Entries with seq < `before`, newest first."""

    def burns(self) -> list[LedgerEntry]:
        """Every entry of the kind `burn`, in order."""

    def hashes(self, seqs: Sequence[int]) -> dict[int, bytes]:
        """The hashes of the entries among `seqs`, by sequence."""

    def pages(self) -> Iterator[StoredPage]:
        """The stored pages by number; a missing one is all zero, at sequence 0."""

    def individuals(self) -> Individuals:
        """Every account of the dataset."""

    def records(self, table: str) -> tuple[NDArray[np.int64], Codes]:
        """(slots (n,), codes by column (n,)) of a table, in any order."""

    def slots_of(self, keys: Sequence[str]) -> NDArray[np.int64]:
        """The slot of each key, -1 where nobody present has it."""

    def slots_of_tombstones(self, tombstones: Sequence[bytes]) -> NDArray[np.int64]:
        """The slot of each erased individual by tombstone, -1 where unknown."""

    def has_tombstones(self) -> bool:
        """Whether anybody was ever erased."""

    def keys_of(self, *, after_slot: int, limit: int) -> list[tuple[int, str]]:
        """(slot, key) of people present with slot > `after_slot`, in slot order."""

    def append(
        self, entries: Sequence[LedgerEntry], answers: Sequence[AnswerRecord], worst_cases: Mapping[UUID, int]
    ) -> None:
        """Append entries and replies, add `worst_cases` units per analyst, and move the head (fenced).

        A store may send all of it with the commit; a head that has moved meanwhile then shows as CommitUnclear.
        """

    def add_individuals(self, slots: NDArray[np.int64], keys: Sequence[str], limits: NDArray[np.int64]) -> None:
        """New people in new slots; a slot that holds a tombstone is filled again and keeps what it has spent."""

    def add_records(self, table: str, slots: NDArray[np.int64], codes: Codes) -> None:
        """Rows of a table."""

    def erase(self, slot: int, tombstone: bytes) -> None:
        """Delete an individual's record and rows; the slot keeps its account under the tombstone."""

    def set_limit(self, slot: int, limit_units: int) -> None:
        """Lower one individual's limit."""

    def journal(
        self, act: str, detail: Mapping[str, object], *, slots: int | None = None, epoch: int | None = None
    ) -> None:
        """Chain a curator's or individual's act; moves `data_version`, and `slots` or `epoch` when given."""

    def fence_off(self, fence: int, joining_units: int) -> None:
        """Raise the fence, so that whoever read the head before appends no more, and `joining_units`."""

    def commit(self) -> None:
        """Make it durable. Raises CommitUnclear when no clear reply came."""


class Proposal(Protocol):
    """Entries for a dataset whose head is assumed to be known: no lock is held before they are sent.

    Committed in one journey, and only if the head's sequence, hash, fence, epoch and data version are still those, no
    key that was asked is taken, and no question that may be reused was answered in this epoch. A store may refuse to
    leave a key that was asked without a reply.
    """

    @property
    def head(self) -> Head:
        """The head as assumed, and moved along by `append`."""

    @property
    def known(self) -> Known:
        """Nothing: that nothing is known is what is assumed."""

    def append(
        self, entries: Sequence[LedgerEntry], answers: Sequence[AnswerRecord], worst_cases: Mapping[UUID, int]
    ) -> None:
        """As a transaction's; at least one entry."""

    def commit(self) -> None:
        """Make it durable. Raises Outdated when nothing was appended, CommitUnclear when no clear reply came."""


class Store(Protocol):
    """Everything durable."""

    def proposal(self, dataset_id: int, head: Head, *, asked: Sequence[Asked]) -> AbstractContextManager[Proposal]:
        """A proposal for questions that nobody has asked before, on top of `head`."""

    def transaction(
        self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()
    ) -> AbstractContextManager[Transaction]:
        """One dataset's transaction: locked for writing, or a snapshot. `asked` is what `known` will be about."""

    def add_dataset(self, record: DatasetRecord) -> DatasetRecord:
        """Register; the returned record has its id. Raises NameTaken."""

    def dataset(self, name: str) -> DatasetRecord | None:
        """One registration by name."""

    def datasets(self) -> list[DatasetRecord]:
        """Every registration, by name."""

    def head(self, dataset_id: int) -> Head:
        """The head row as last committed, without a lock."""

    def write_page(self, dataset_id: int, checkpoint: Checkpoint, page: int) -> None:
        """Keep one page of a checkpoint, durably and without the dataset's lock, unless it is kept as of later already.

        Nothing is kept when the ledger does not have the checkpoint's entry.
        """

    def finish_checkpoint(self, dataset_id: int, checkpoint: Checkpoint) -> bool:
        """Move `checkpoint_seq` forward to the checkpoint's, durably; False, and nothing, when that would not be true.

        That is: when it is not between `since` and `seq`, a page is not stored at `seq` or later, or the ledger does
        not have the checkpoint's entry.
        """

    def row_counts(self, dataset_id: int) -> tuple[int, dict[str, int]]:
        """(people present, rows by table)."""

    def add_principal(self, record: PrincipalRecord) -> None:
        """Keep a new principal."""

    def principal(self, principal_id: UUID) -> PrincipalRecord | None:
        """One principal, revoked or not."""

    def principals(self, *, after: UUID | None, limit: int) -> list[PrincipalRecord]:
        """The principals in order of id."""

    def revoke_principal(self, principal_id: UUID, at: datetime) -> bool:
        """Revoke; False when unknown or revoked before."""

    def answer_of(self, principal_id: UUID, query_id: UUID) -> tuple[DatasetRecord, AnswerRecord, LedgerEntry] | None:
        """An analyst's own reply that shows this query."""

    def answers_of(
        self, principal_id: UUID, *, before: tuple[datetime, UUID] | None, limit: int
    ) -> list[tuple[DatasetRecord, AnswerRecord, LedgerEntry]]:
        """An analyst's own replies, newest first."""

    def worst_cases_of(self, principal_id: UUID) -> dict[str, int]:
        """Worst-case units by dataset name for one analyst."""

    def problems(self) -> list[str]:
        """Public codes of what keeps the store from serving; empty when ready."""


class Witness(Protocol):
    """What remembers, outside the database, how far each dataset had come. `dataset` is its `witness_name`."""

    def history(self, dataset: str) -> list[WitnessRecord]:
        """The records still held, in order of position; empty when nothing is known, which never means zero.

        Raises WitnessUnavailable.
        """

    def write(self, dataset: str, record: WitnessRecord) -> WitnessRecord | None:
        """Keep a record, durably, unless one as far or farther is held. Returns the farthest held before.

        Raises WitnessUnavailable.
        """
