"""The ports of everything durable: the store, its tables beside the ledgers, leases, and the errors that they raise.

The values that go in and out are in `service.ledger.model.rows`. Adapters live in `service.store`; each has an
in-memory twin that passes the same contract suite (tests/contracts).
"""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Protocol
from uuid import UUID

from service.ledger.model.errors import NotFound
from service.ledger.model.rows import (
    EVERY_PRINCIPAL,
    Asked,
    Checkpoint,
    DatasetRecord,
    Head,
    Lease,
    OwnAnswer,
    PrincipalFilter,
    PrincipalRecord,
    ReleasePlace,
    ReleaseRecord,
    ReplicaAddress,
)
from service.ledger.ports.transaction import ConditionalAppend, LongAct, Transaction
from service.query.schema import doc


class PrincipalTable(Protocol):
    """The principals, durable."""

    def add(self, records: Sequence[PrincipalRecord]) -> None:
        """Keep new principals, all or none."""

    def find(self, principal_id: UUID) -> PrincipalRecord | None:
        """One principal, revoked or not."""

    def some(self, principal_ids: Collection[UUID]) -> list[PrincipalRecord]:
        """Those of these principals that are known, in no order."""

    def recognised(self, principal_ids: Collection[UUID]) -> list[PrincipalRecord]:
        """The principals, for the look-up of keys, which waits for nothing else that reads."""

    def listed(
        self, *, after: UUID | None, limit: int, only: PrincipalFilter = EVERY_PRINCIPAL, last: UUID | None = None
    ) -> list[PrincipalRecord]:
        """The principals that `only` admits, in order of id, of those up to `last`."""

    def reach(self, *, after: UUID | None, limit: int) -> UUID | None:
        """The id of the principal at the place `limit` after `after`; None where there are fewer."""

    def analysts_of(self, dataset: str) -> list[PrincipalRecord]:
        """The analysts that may ask a dataset, revoked ones too, by name."""

    def change(self, record: PrincipalRecord) -> bool:
        """Replace what may change of a principal: all but id, role, dataset and individual.

        False, and nothing, when it is unknown or revoked.
        """

    def rebind(self, record: PrincipalRecord) -> bool:
        """Replace everything of a principal but id and age, and end its sign-ins, in one transaction.

        False, and nothing, when it is unknown or revoked, has a key, or has that binding already.
        """

    def revoke(self, principal_id: UUID, at: datetime) -> bool:
        """Revoke; False when unknown or revoked before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """One sign-in: the keyed hash of its cookie, its principal, and the key hash that the principal then had."""

    token_hash: bytes = field(repr=False)
    principal_id: UUID
    key_hash: bytes = field(repr=False)
    began_at: datetime
    expires_at: datetime


class SignInTable(Protocol):
    """The sign-ins, durable: browsers that hold a cookie instead of an API key."""

    def add(self, sign_in: SignIn, *, now: datetime) -> None:
        """Keep a new sign-in, and drop those that have expired by `now`."""

    def some(self, token_hashes: Collection[bytes]) -> list[SignIn]:
        """Those of these sign-ins that are kept, expired or not, in no order; waits for nothing else that reads."""

    def extend(self, token_hashes: Collection[bytes], expires_at: datetime) -> None:
        """Let sign-ins last until `expires_at`; without effect on those that have ended. It waits as little."""

    def end(self, token_hash: bytes) -> None:
        """Forget a sign-in; without effect on one that has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPoint:
    """The budgets at one sequence of the ledger."""

    seq: Annotated[int, doc("The ledger's sequence.")]
    at: Annotated[datetime, doc("When the point was kept.")]
    individuals: Annotated[int, doc("How many individuals the dataset had.")]
    exhausted: Annotated[int, doc("How many individuals have nothing left.")]
    paused: Annotated[int, doc("How many individuals had paused.")]
    cannot_afford: Annotated[
        int | None, doc("How many could not pay for another typical query; null where there was none.")
    ]
    quantiles: Annotated[Sequence[float], doc("The remaining share at each of the quantiles of the history.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetAlarm:
    """Rings once, at `rang_seq`, when at least `share` of the people cannot pay for another typical query."""

    share: float
    rang_seq: int | None = None


class SummaryTable(Protocol):
    """Points and alarms by dataset, durable."""

    def add_point(self, dataset_id: int, point: SummaryPoint) -> None:
        """Keep a point, unless there is one of its sequence."""

    def points(self, dataset_id: int) -> list[SummaryPoint]:
        """All points, by sequence."""

    def drop_points(self, dataset_id: int, seqs: Sequence[int]) -> None:
        """Forget the points of these sequences."""

    def alarm(self, dataset_id: int) -> BudgetAlarm | None:
        """The alarm that is set."""

    def set_alarm(self, dataset_id: int, alarm: BudgetAlarm | None) -> None:
        """Set, replace or remove the alarm."""


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
        """The number of deleted datasets of this name."""

    def delete_dataset(self, dataset_id: int) -> None:
        """Delete a dataset whose ledger is empty, with everything of it, and count the deletion.

        Principals that are bound to it go with it. Raises NotEmpty where an entry or an answer is stored.
        """

    def datasets(self) -> list[DatasetRecord]:
        """Every registration, by name."""

    def datasets_after(self, name: str | None, *, limit: int) -> list[DatasetRecord]:
        """The first registrations whose names come after this one by their characters."""

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
        """An analyst's own releases, the greatest place first; neither charges, nor values, nor answers are read.

        At most `limit`, and none that comes after `bytes_max` bytes of canonical queries.
        """

    def worst_cases_of(self, principal_id: UUID) -> dict[str, int]:
        """Worst-case units by dataset name for one analyst."""

    def worst_cases_in(self, dataset_id: int) -> dict[UUID, int]:
        """Worst-case units by analyst in one dataset."""

    def problems(self) -> list[str]:
        """Public codes of what keeps the store from serving; empty when ready."""


class Leases(Protocol):
    """The leases by which processes work on datasets. Time is the store's clock; every method raises StoreUnavailable.

    A lease decides only which process works. The charges are right with any number of them, by lock and fence.
    """

    def claim(self, dataset_id: int, replica: ReplicaAddress, *, lease_s: float) -> Lease:
        """Take the dataset for `lease_s` if it is free, expired or the replica's own. Returns the lease in force."""

    def renew(self, replica: ReplicaAddress, *, lease_s: float) -> list[Lease]:
        """Prolong every lease that is the replica's. Returns all leases in force, those of other replicas too."""

    def release(self, replica: ReplicaAddress) -> None:
        """End every lease of the replica's."""


def registered(store: Store, name: str) -> DatasetRecord:
    """The registration of a dataset. Raises NotFound."""
    record = store.dataset(name)
    if record is None:
        raise NotFound
    return record
