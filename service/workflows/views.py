"""What reading returns: frozen rows named as on the wire. Rho values are exact decimal strings, units integers."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Literal, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.query.schema import Schema
from service.workflows.ledger import Kind

Role = Literal["curator", "analyst", "individual", "auditor"]
Outcome = Literal["charged", "left_out", "untouched"]
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks. `dataset` bounds what it may touch; `individual` is whose own budgets it sees."""

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
    """What anybody may know of a dataset: nothing here is read off the data."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetCounts:
    """For curators alone: how many people and rows there are."""

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
    """What an upload did; per column how many values were clipped, out of domain, or NULL."""

    rows: int
    individuals: int
    clipped: dict[str, int]
    out_of_domain: dict[str, int]
    nulls: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
    """One individual's account, for curators."""

    key: str
    budget_rho: str
    spent_rho: str
    remaining_rho: str
    spent_units: int
    budget_units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareBin:
    """How many individuals have a remaining share in [low, high), the last bin closed."""

    low: float
    high: float
    individuals: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSummary:
    """The dataset's budgets at one ledger sequence, for curators."""

    sequence: int
    individuals: int
    exhausted: int
    remaining_share_histogram: tuple[ShareBin, ...]
    quantiles: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """One entry of the ledger; `charged` and `left_out` count individuals and are for curators.

    A `burn` has no analyst, noise or answer; its `query` says why everybody was charged.
    """

    sequence: int
    query_id: UUID
    analyst: str
    query: dict[str, object]
    sigma: float
    grid: float
    dimension: int
    worst_case_rho: str
    charged: int
    left_out: int
    asked_at: datetime
    epoch: int
    previous_hash: str
    hash: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """A released answer: the bytes that were committed, and the integers they show (in grid steps)."""

    query_id: UUID
    sequence: int
    body: bytes
    values: Callable[[], NDArray[np.int64]]
    grid: float


class PendingAnswer(Future[StoredAnswer]):
    """The promise of an answer, and what is public of it beforehand: how many numbers it will have."""

    def __init__(self, dimension: int) -> None:
        """Promise an answer of `dimension` numbers."""
        super().__init__()
        self.dimension = dimension


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Everything public about a query; touches no record."""

    dimension: int
    grid: float
    sigma: float
    half_width_95: float
    l2_clip: float
    worst_case_rho: str
    allowance_left_rho: str | None
    coverage_certified: bool
    canonical: dict[str, object]
    query_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRow:
    """One of an analyst's own releases."""

    id: UUID
    dataset: str
    sequence: int
    query: dict[str, object]
    sigma: float
    dimension: int
    worst_case_rho: str
    released_at: datetime
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """An analyst's worst-case spending on one dataset; `allowance_rho` None means not limited."""

    dataset: str
    allowance_rho: str | None
    spent_rho: str
    left_rho: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MyBudget:
    """An individual's own account."""

    dataset: str
    budget_rho: str
    spent_rho: str
    remaining_rho: str
    share_spent: float
    budget_epsilon: float
    delta: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What one query cost an individual."""

    query_id: UUID
    dataset: str
    sequence: int
    asked: dict[str, object]
    at: datetime
    charged_rho: str
    outcome: Outcome
    kind: Kind
