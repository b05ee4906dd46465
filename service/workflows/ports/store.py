"""The port of the store, and the errors that a store may raise.

The values that go in and out are in `service.workflows.model.rows`. Adapters live in `service.store`; each has an
in-memory twin that passes the same contract suite (tests/contracts).
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol
from uuid import UUID

from service.workflows.model.listing_rows import ReleasePlace, ReleaseRecord
from service.workflows.model.rows import Asked, Checkpoint, DatasetRecord, Head, OwnAnswer
from service.workflows.ports.principals import PrincipalTable
from service.workflows.ports.sign_ins import SignInTable
from service.workflows.ports.summaries import SummaryTable
from service.workflows.ports.transaction import ConditionalAppend, LongAct, Transaction


class StoreUnavailable(Exception):
    """The store did not answer, or answered with a fault; nothing of this transaction is durable."""


class CommitUnclear(Exception):
    """COMMIT was sent and no clear reply came: the transaction may be durable. Read before you do anything."""


class CommitRejected(Exception):
    """The store refuses the transaction, and would refuse it again: nothing of the transaction is durable.

    `code` says why, in the store's own codes, for the log. It names no value.
    """

    def __init__(self, code: str) -> None:
        """Keep the code alone: the store's message may quote a row."""
        super().__init__(code)
        self.code = code


class NotEmpty(Exception):
    """The dataset has a ledger, and is not deleted."""


class HeadMoved(Exception):
    """The head is not the assumed one: nothing of the conditional append is durable. Read before you try again."""


class Store(Protocol):
    """Everything durable."""

    @property
    def principals(self) -> PrincipalTable:
        """The principals."""

    @property
    def sign_ins(self) -> SignInTable:
        """The sign-ins of browsers."""

    @property
    def summaries(self) -> SummaryTable:
        """Points in time of the budget summaries, and alarms."""

    def conditional_append(
        self, dataset_id: int, head: Head, *, asked: Sequence[Asked]
    ) -> AbstractContextManager[ConditionalAppend]:
        """A conditional append of new queries on top of `head`."""

    def transaction(
        self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()
    ) -> AbstractContextManager[Transaction]:
        """One dataset's transaction: locked for writing, or a snapshot. `asked` is what `known` will be about."""

    def long_act(self, dataset_id: int) -> AbstractContextManager[LongAct]:
        """A transaction for an upload or an erasure; waits for the one before."""

    def add_dataset(self, record: DatasetRecord) -> DatasetRecord:
        """Register; the returned record has its id. Raises NameTaken."""

    def dataset(self, name: str) -> DatasetRecord | None:
        """One registration by name."""

    def deletions(self, name: str) -> int:
        """How many datasets of this name were deleted."""

    def delete_dataset(self, dataset_id: int) -> None:
        """Delete a dataset whose ledger is empty, with everything of it, and count the deletion.

        Principals that are bound to it go with it. Raises NotEmpty where an entry or an answer is stored.
        """

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

    def answer_of(self, principal_id: UUID, query_id: UUID) -> OwnAnswer | None:
        """An analyst's own answer with this query's id, the oldest if there are several; charges are not read."""

    def releases_of(
        self, principal_id: UUID, *, before: ReleasePlace | None, limit: int, bytes_max: int
    ) -> list[ReleaseRecord]:
        """An analyst's own replies, the greatest place first; neither charges, nor values, nor replies are read.

        At most `limit`, and none that comes after `bytes_max` bytes of canonical queries.
        """

    def worst_cases_of(self, principal_id: UUID) -> dict[str, int]:
        """Worst-case units by dataset name for one analyst."""

    def worst_cases_in(self, dataset_id: int) -> dict[UUID, int]:
        """Worst-case units by analyst in one dataset."""

    def problems(self) -> list[str]:
        """Public codes of what keeps the store from serving; empty when ready."""
