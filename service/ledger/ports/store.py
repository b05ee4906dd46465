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
        """The principals among these ids that are known, in no order."""

    def recognised(self, principal_ids: Collection[UUID]) -> list[PrincipalRecord]:
        """The principals with these ids, for the look-up of keys; it waits for no other reads."""

    def listed(
        self, *, after: UUID | None, limit: int, only: PrincipalFilter = EVERY_PRINCIPAL, last: UUID | None = None
    ) -> list[PrincipalRecord]:
        """The first `limit` principals that `only` admits, by id, with ids after `after` and up to `last`."""

    def reach(self, *, after: UUID | None, limit: int) -> UUID | None:
        """The id of the principal at the place `limit` after the id `after`; None if there are fewer."""

    def analysts_of(self, dataset: str) -> list[PrincipalRecord]:
        """The analysts that may ask a dataset, revoked ones too, by name."""

    def change(self, record: PrincipalRecord) -> bool:
        """Replace what may change of a principal: all but id, role, dataset and individual.

        Returns False, and changes nothing, when the principal is unknown or revoked.
        """

    def rebind(self, record: PrincipalRecord) -> bool:
        """Replace everything of a principal but its id and its age, and end its sign-ins, in one transaction.

        Returns False, and changes nothing, when the principal is unknown or revoked, has a key, or has that binding
        already.
        """

    def revoke(self, principal_id: UUID, at: datetime) -> bool:
        """Revoke a principal. Returns False when it is unknown or was revoked before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """One sign-in: the keyed hash of its cookie, its principal, and the key hash that the principal had at the time."""

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
        """The stored sign-ins with these hashes, expired or not, in no order; it waits for no other reads."""

    def extend(self, token_hashes: Collection[bytes], expires_at: datetime) -> None:
        """Let sign-ins last until `expires_at`; without effect on ended ones. It waits for no other reads."""

    def end(self, token_hash: bytes) -> None:
        """Forget a sign-in; without effect if it has ended."""


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
        """Keep a point, unless there is already one of the same sequence."""

    def points(self, dataset_id: int) -> list[SummaryPoint]:
        """All points, by sequence."""

    def drop_points(self, dataset_id: int, seqs: Sequence[int]) -> None:
        """Forget the points of these sequences."""

    def alarm(self, dataset_id: int) -> BudgetAlarm | None:
        """The alarm that is set; None if there is none."""

    def set_alarm(self, dataset_id: int, alarm: BudgetAlarm | None) -> None:
        """Set, replace or remove the alarm."""


class StoreUnavailable(Exception):
    """The store did not answer, or answered with a fault; nothing of this transaction is durable."""


class CommitUnclear(Exception):
    """COMMIT was sent and no clear reply came: the transaction may be durable.

    The caller must read before it goes on.
    """


class CommitRejected(Exception):
    """The store refuses the transaction, and would refuse it again: nothing of the transaction is durable.

    `code` gives the reason in the store's own codes, for the log. The code contains no value.
    """

    def __init__(self, code: str) -> None:
        """Keep the code alone: the store's message may quote a row."""
        super().__init__(code)
        self.code = code


class NotEmpty(Exception):
    """The dataset has a ledger, so it is not deleted."""


class HeadMoved(Exception):
    """The head is not the assumed one: nothing of the conditional append is durable.

    The caller reads before it tries again.
    """


class Store(Protocol):
    """The port of everything durable."""

    @property
    def principals(self) -> PrincipalTable:
        """The principals."""

    @property
    def sign_ins(self) -> SignInTable:
        """The sign-ins of browsers."""

    @property
    def summaries(self) -> SummaryTable:
        """The points and alarms of the budget summaries."""

    def conditional_append(
        self, dataset_id: int, head: Head, *, asked: Sequence[Asked]
    ) -> AbstractContextManager[ConditionalAppend]:
        """A conditional append of new queries on top of `head`."""

    def transaction(
        self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()
    ) -> AbstractContextManager[Transaction]:
        """One dataset's transaction, locked for writing or a snapshot. Its `known` tells about the queries `asked`."""

    def long_act(self, dataset_id: int) -> AbstractContextManager[LongAct]:
        """A transaction for an upload or an erasure; it waits for the end of the one before."""

    def add_dataset(self, record: DatasetRecord) -> DatasetRecord:
        """Register a dataset. The returned record has the id. Raises NameTaken."""

    def dataset(self, name: str) -> DatasetRecord | None:
        """One registration by name."""

    def deletions(self, name: str) -> int:
        """The number of deleted datasets of this name."""

    def delete_dataset(self, dataset_id: int) -> None:
        """Delete a dataset whose ledger is empty, with everything that belongs to it, and count the deletion.

        Principals that are bound to the dataset are deleted too. Raises NotEmpty where an entry or an answer is stored.
        """

    def datasets(self) -> list[DatasetRecord]:
        """Every registration, by name."""

    def datasets_after(self, name: str | None, *, limit: int) -> list[DatasetRecord]:
        """The first `limit` registrations whose names come after `name`, in the order of the names' characters."""

    def head(self, dataset_id: int) -> Head:
        """The head as last committed, read without a lock."""

    def write_page(self, dataset_id: int, checkpoint: Checkpoint, page: int) -> None:
        """Keep one page of a checkpoint, durably and without the dataset's lock, unless a later one is kept already.

        Nothing is kept when the ledger does not have the checkpoint's entry.
        """

    def finish_checkpoint(self, dataset_id: int, checkpoint: Checkpoint) -> bool:
        """Move `checkpoint_seq` forward to the checkpoint's `seq`, durably, if that is sound.

        Returns False, and changes nothing, when `checkpoint_seq` is not between `since` and `seq`, a page is not stored
        at `seq` or later, or the ledger does not have the checkpoint's entry.
        """

    def row_counts(self, dataset_id: int) -> tuple[int, dict[str, int]]:
        """(people present, rows by table)."""

    def answer_of(self, principal_id: UUID, query_id: UUID) -> OwnAnswer | None:
        """The analyst's own answer with this query's id, the oldest if there are several. No charges are read."""

    def releases_of(
        self, principal_id: UUID, *, before: ReleasePlace | None, limit: int, bytes_max: int
    ) -> list[ReleaseRecord]:
        """An analyst's own releases, the greatest place first, without charges, values and answers.

        It returns at most `limit`, and none after the one that brings the canonical queries to `bytes_max` bytes.
        """

    def worst_cases_of(self, principal_id: UUID) -> dict[str, int]:
        """The sum of one analyst's worst cases in each dataset, in units, by the dataset's name."""

    def worst_cases_in(self, dataset_id: int) -> dict[UUID, int]:
        """The sum of each analyst's worst cases in one dataset, in units, by the analyst's id."""

    def problems(self) -> list[str]:
        """Public codes of what keeps the store from serving; empty if nothing does."""


class Leases(Protocol):
    """The leases by which processes work on datasets. Time is the store's clock. Every method raises StoreUnavailable.

    A lease decides only which process works on a dataset. Lock and fence keep the charges right with any number of
    processes.
    """

    def claim(self, dataset_id: int, replica: ReplicaAddress, *, lease_s: float) -> Lease:
        """Take the dataset for `lease_s` if nobody else has a lease on it. Returns the lease in force."""

    def renew(self, replica: ReplicaAddress, *, lease_s: float) -> list[Lease]:
        """Prolong every lease of this replica. Returns all leases in force, those of other replicas too."""

    def release(self, replica: ReplicaAddress) -> None:
        """End every lease of the replica's."""


def registered(store: Store, name: str) -> DatasetRecord:
    """The registration of a dataset. Raises NotFound."""
    record = store.dataset(name)
    if record is None:
        raise NotFound
    return record
