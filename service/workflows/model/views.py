"""Frozen rows that reading returns, named as on the wire. Rho values are exact decimal strings, units integers."""

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Literal, TypeVar
from uuid import UUID

from service.query.schema import Schema
from service.workflows.model.ledger_entry import Kind
from service.workflows.model.pieces import Outcome

Role = Literal["curator", "analyst", "individual", "auditor"]
PromiseOf = Literal["largest_limit", "dataset_budget"]
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The holder of an API key. `dataset` bounds what it may touch; `individual` is whose own budgets it sees."""

    id: UUID
    role: Role
    name: str
    dataset: str | None
    individual: str | None
    allowance_units: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalRow:
    """A principal as the curator lists it; never its key."""

    id: UUID
    role: Role
    name: str
    dataset: str | None
    individual: str | None
    allowance_rho: str | None
    created_at: datetime
    revoked_at: datetime | None
    organisation: str | None = None
    purpose: str | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalystRow:
    """An analyst of one dataset: the bound on the sum of its worst cases there, and that sum so far."""

    id: UUID
    name: str
    organisation: str | None
    purpose: str | None
    allowance_rho: str | None
    worst_case_spent_rho: str
    expires_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """The analyst behind a query, as individuals are shown it: as stated by the curator now, and without a name."""

    organisation: str | None
    purpose: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[Row]):
    """One page of a listing; `next` is the cursor of the following page, None at the end."""

    items: tuple[Row, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """The stated (epsilon, delta); both None when the curator stated rho."""

    epsilon: str | None
    delta: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicDataset:
    """The public facts of a dataset: nothing here is read off the data.

    `version` counts its registration and the extensions since; an archived dataset answers no new query.
    """

    name: str
    guarantee: Guarantee
    budget_rho: str
    budget_units: int
    mu: float
    limit_floor_rho: str
    capacity: int
    rule: str
    epoch: int
    tables: Schema
    version: int
    archived: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetCounts:
    """The numbers of people and rows, for curators alone."""

    sequence: int
    individuals: int
    rows: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetView:
    """A dataset: the public part, and the counts that only its curators see."""

    public: PublicDataset
    counts: DatasetCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadReport:
    """The effect of an upload: rows stored and dropped, and individuals that joined.

    Per column, of all rows sent: how many values were clipped, out of domain, or NULL. After a dry run, the effect that
    the upload would have, and `stored` is false.
    """

    rows: int
    individuals: int
    clipped: dict[str, int]
    out_of_domain: dict[str, int]
    nulls: dict[str, int]
    rows_dropped: int = 0
    stored: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
    """One individual's account, for curators; burns are in neither number of queries."""

    key: str
    budget_rho: str
    spent_rho: str
    remaining_rho: str
    spent_units: int
    budget_units: int
    paused: bool
    queries_charged: int
    queries_left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareBin:
    """How many individuals have a remaining share in [low, high), the last bin closed."""

    low: float
    high: float
    individuals: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LastQuery:
    """The last query, and how many individuals have less left than the most that it may charge.

    It is an upper bound of those whom another query like it would leave out: many are charged less, or nothing.
    """

    sequence: int
    words: str
    worst_case_rho: str
    cannot_afford: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSummary:
    """The dataset's budgets at one ledger sequence, for curators.

    `worst_case_ended_after` is the number of entries after which accounting by worst cases would have had to end: their
    sum exceeds the dataset's budget at the next one. None while it does not.
    """

    sequence: int
    individuals: int
    exhausted: int
    paused: int
    remaining_share_histogram: tuple[ShareBin, ...]
    quantiles: dict[str, float]
    last_query: LastQuery | None
    worst_case_ended_after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActRow:
    """An act of a curator or an individual, for curators; `sequence` is the ledger's when it was done.

    `individual` is the key of the individual it concerns while that is present: None for the erased, and for an
    erasure.
    """

    number: int
    act: str
    sequence: int
    at: datetime
    individual: str | None
    detail: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """One entry of the ledger; `charged` and `left_out` count individuals and are for curators.

    A `burn` has no analyst, noise or answer; its `query` says why every individual was charged. From format 2 on,
    `previous_hash`, the entry's public fields and `private_digest` give `hash`.
    """

    sequence: int
    query_id: UUID
    analyst: str
    query: dict[str, object]
    words: str
    sigma: float
    grid: float
    dimension: int
    worst_case_rho: str
    charged: int
    left_out: int
    asked_at: datetime
    epoch: int
    kind: Kind
    format: int
    mechanism: str
    analyst_id: UUID
    query_sha256: str
    query_hash: str
    grid_log2: int
    worst_case_units: str
    worst_case_total_units: str
    values_sha256: str
    private_digest: str | None
    previous_hash: str | None
    hash: str | None
    is_checkable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MyBudget:
    """An individual's own account: the promise, what is spent of the limit of now, and a bound on the loss so far.

    The promise is of the largest limit ever in force, at `delta`: lowering a limit does not change what was promised
    about answers that have left. `promise_of` is `dataset_budget` where the own largest limit is not known, of which
    the dataset's budget is an upper bound. `promise_epsilon` is for a record that is blanked,
    `promise_epsilon_replace_one` for one that is replaced by any other. `epsilon_so_far_time_uniform` has bounded the
    privacy loss of a record that is blanked at every moment until now, but with probability `delta`; it is null where
    it is not below the promise. `queries_charged` and `queries_left_out` count the queries that charged the
    individual and those that left it out, of all that were ever asked; no other touched it. Burns are in neither.
    """

    dataset: str
    budget_rho: str
    spent_rho: str
    remaining_rho: str
    share_spent: float
    promise_rho: str
    promise_epsilon: float
    promise_epsilon_replace_one: float
    promise_of: PromiseOf
    epsilon_so_far_time_uniform: float | None
    delta: str
    paused: bool
    queries_charged: int
    queries_left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The cost of one query to an individual; `charged_rho` is None where it is no longer kept."""

    query_id: UUID
    dataset: str
    sequence: int
    asked: dict[str, object]
    words: str
    at: datetime
    charged_rho: str | None
    outcome: Outcome | Literal["no_longer_kept"]
    kind: Kind
    asker: Asker | None = None
