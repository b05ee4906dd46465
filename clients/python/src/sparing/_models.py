"""The values that the service returns, frozen.

Charges and budgets are exact: every `_rho` is a Decimal, every `_units` an int, in units of 2^-40 rho.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal

from sparing._coordinates import PerItem

KeyComparison = Literal["exact", "caseless", "number", "uuid"]
"""The ways in which a dataset may compare the keys of individuals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """The curator's promise to every individual: (epsilon, delta), or both None if the promise was made in rho."""

    epsilon: Decimal | None = None
    delta: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitor:
    """A dataset's continual count of exhausted individuals: its public terms, and the number of ticks so far."""

    rho: Decimal  # the reserve, by which each limit is lower for queries
    ticks: int  # there are so many
    share: float  # of the budget: who has less left is counted as exhausted
    sigma: float  # standard deviation of the noise of each tick, in individuals
    asked: int  # ticks so far
    ended: bool  # all are asked, or a backup of the database was put back since


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorTicks(Monitor):
    """A monitor with the values of all ticks so far."""

    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _DatasetFacts:
    """The facts that a dataset is listed and shown with."""

    name: str
    guarantee: Guarantee
    budget_rho: Decimal  # the most that can be spent on each individual
    budget_units: int  # the same in units of 2^-40 rho, as the ledger counts
    mu: float | None  # the same as Gaussian differential privacy, mu^2 = 2 rho; None under another accounting
    capacity: int  # public upper bound on the number of individuals
    rule: str  # the rule for an individual that cannot afford a query
    epoch: int | None = None  # identical queries within one epoch get the same released answer
    limit_floor_rho: Decimal | None = None  # the smallest limit any individual was registered with
    accounting: str | Mapping[str, object] = "gdp"  # by which charges add up, as registered
    unit: str = "rho"  # of every `_rho` here
    keys: str = "exact"  # how the keys of individuals are compared, as registered
    monitor: Monitor | None = None  # the continual count of exhausted individuals
    version: int = 1  # of the registration; each extension counts it up
    archived: bool = False  # an archived dataset answers no new query
    sequence: int | None = None  # queries in the ledger
    individuals: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset(_DatasetFacts):
    """A dataset. `sequence`, `individuals` and `rows` are for curators; analysts get None."""

    tables: Mapping[str, object]  # the public schema, as registered
    rows: Mapping[str, int] | None = None  # per table
    warnings: tuple[str, ...] = ()  # probable mistakes in the registration, for curators


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRow(_DatasetFacts):
    """A dataset as it is listed; `datasets.get` has its schema. `sequence` and `individuals` are for curators."""

    table_names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadReport:
    """The outcome of an upload: the numbers of rows stored and dropped, and of new individuals.

    `clipped`, `out_of_domain` and `nulls` count values by column, over all rows sent. After a dry run `stored` is
    false, and the numbers are those that the real upload would have.
    """

    rows: int
    individuals: int
    clipped: Mapping[str, int] = field(default_factory=dict)
    out_of_domain: Mapping[str, int] = field(default_factory=dict)
    nulls: Mapping[str, int] = field(default_factory=dict)
    rows_dropped: int = 0  # beyond rows_per_individual
    individuals_dropped_from: int = 0  # that had them
    largest_share_dropped: float = 0.0  # of the rows of one individual: the heaviest loses most
    rows_unknown: int = 0  # dropped: of no individual
    rows_repeated: int = 0  # with the key and the stored values of an earlier row
    warnings: tuple[str, ...] = ()
    stored: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Account:
    """The numbers of one individual's account that the individual and the curator are shown."""

    budget_rho: Decimal  # the limit in force now
    spent_rho: Decimal
    remaining_rho: Decimal
    paused: bool  # takes part in no query until the individual resumes; the limit stays
    queries_charged: int  # burns are in neither number
    queries_left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow(_Account):
    """One individual's account."""

    key: str
    spent_units: int
    budget_units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareBin:
    """The number of individuals whose remaining share of their budget is in [low, high); the last bin includes 1."""

    low: float
    high: float
    individuals: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TypicalQuery:
    """The recent query with the median worst case, and the number of individuals that have less than this left."""

    of: int  # recent queries
    sequence: int
    words: str
    worst_case_rho: Decimal
    cannot_afford: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSummary:
    """A summary of all individuals' budgets at one ledger sequence."""

    sequence: int
    individuals: int
    exhausted: int  # individuals with nothing left
    remaining_share_histogram: tuple[ShareBin, ...]
    quantiles: Mapping[str, float]  # of the remaining share, by probability: {"0.05": 0.4, ...}
    paused: int = 0  # individuals that pause, whatever they have left
    left_out_for_good: int = 0  # individuals that no query counts any more, by the rule `drop`
    erasures_asked: int = 0  # individuals that ask to be erased and are not yet
    typical_query: TypicalQuery | None = None
    worst_case_ended_after: int | None = None  # queries after which accounting by worst cases would have had to end
    promise_epsilon_advisory: float | None = None  # of the budget while all noise is Gaussian, where that is less


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPoint:
    """A summary of all individuals' budgets at an earlier ledger sequence; part of a `SummaryHistory`."""

    seq: int
    at: datetime
    individuals: int
    exhausted: int
    paused: int
    cannot_afford: int | None  # another typical query; None where there was none
    quantiles: tuple[float, ...]  # of the remaining share


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryHistory:
    """Summaries of the budgets over time, oldest first; `quantiles` are the probabilities of each point's quantiles."""

    quantiles: tuple[float, ...]
    points: tuple[SummaryPoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """The share of individuals at which the alarm rings, None if none is set, and the sequence at which it rang."""

    share: float | None
    rang_at_sequence: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveShare:
    """The share of the touched individuals that can pay for another query of a kind after `queries` more of them."""

    queries: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedAfter:
    """The number of further queries after which this share of the touched individuals cannot pay; None beyond 1,000."""

    share: float
    queries: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A forecast for repeating one kind of query, if no other query is asked."""

    sequence: int
    words: str
    sigma: PerItem
    worst_case_rho: Decimal
    touched: int  # individuals whose vectors are not zero
    active: int  # of these, individuals that can pay for one such query now
    curve: tuple[ActiveShare, ...]
    dropped_after: tuple[DroppedAfter, ...]  # of 1, 10 and 50 %


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The last verification of the ledger; its state is "never" (begun), "running", "clean", "damaged" or "failed"."""

    state: str
    began_at: datetime | None = None
    ended_at: datetime | None = None
    entries: int = 0
    answers: int = 0
    accounts: int = 0
    finding_count: int = 0
    findings: tuple[str, ...] = ()  # the first twenty: table, row and fault


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalystRow:
    """An analyst of one dataset, with the allowance there and the sum of its worst cases so far."""

    id: str
    name: str
    worst_case_spent_rho: Decimal
    organisation: str | None = None
    purpose: str | None = None
    allowance_rho: Decimal | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """One query of the ledger. `charged` and `left_out` are shown to the dataset's curator, and None for an auditor."""

    sequence: int
    query_id: str
    analyst: str
    query: Mapping[str, object]  # canonical form
    sigma: PerItem
    grid: PerItem
    dimension: int
    worst_case_rho: Decimal  # the most that one individual could have been charged
    asked_at: datetime
    epoch: int
    charged: int | None = None  # individuals who contributed and paid
    left_out: int | None = None  # individuals who would have contributed and could not pay, or had paused
    previous_hash: str
    hash: str
    words: str = ""  # the query in words


@dataclass(frozen=True, slots=True, kw_only=True)
class ActRow:
    """One act on a dataset, as the dataset's curator sees it.

    `act` is one of "rows", "limit", "pause", "resume", "erasure_request", "erase", "epoch", "extend", "correct",
    "archive", "reconcile", "amend", "prune"; the log of acts in docs/ledger.md explains each.
    """

    number: int  # acts count from 1
    act: str
    sequence: int  # queries in the ledger when it was done
    at: datetime
    individual: str | None = None  # the key of the individual concerned; None once that person is erased
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Principal:
    """The facts that a principal is made and listed with."""

    id: str
    role: str
    name: str
    dataset: str | None = None
    individual: str | None = None
    allowance_rho: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalKey(_Principal):
    """A new principal with its API key. The key is shown this once and not kept by the service."""

    key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalRow(_Principal):
    """A principal as the curator lists it; never its key."""

    created_at: datetime
    revoked_at: datetime | None = None
    organisation: str | None = None
    purpose: str | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndividualKey:
    """The new API key of one individual, which is never shown again."""

    individual: str
    api_key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """The analyst that asked a query, as shown to individuals."""

    organisation: str | None = None
    purpose: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicCost:
    """The most time and memory that a query can take, and the delay of its answer by time slots."""

    time_ms: float
    memory_bytes: int
    delay_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Everything public about a query, found without touching a record or charging an individual."""

    dimension: int
    grid: PerItem
    sigma: PerItem
    half_width_95: PerItem  # of each value of the answer, from what will be counted; grid included
    scale: float | None = None  # of Laplace noise
    warnings: tuple[str, ...] = ()  # likely mistakes, in words
    worst_case_rho: Decimal
    worst_case_share: float | None = None  # of the dataset's budget
    l2_clip: PerItem | None = None
    worst_case_epsilon: float | None = None  # at the dataset's delta, if this were the only query
    largest_countable_norm: PerItem | None = None  # a longer vector is beyond the smallest limit
    allowance_left_rho: Decimal | None = None  # None: no allowance was set
    coverage_certified: bool | None = None
    coverage_words: str = ""  # who may be missing, in a sentence
    certified_left_share: float | None = None  # of the budget, after this query, while nobody is left out for certain
    notes: tuple[str, ...] = ()  # bounds by which an individual may count for less, a sentence each
    estimates: tuple[str, ...] = ()  # the items that the answer will have in `averages`
    query_hash: str | None = None
    public_cost: PublicCost | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRow:
    """One of the analyst's own releases; `queries.get` fetches its values."""

    id: str
    dataset: str
    sequence: int
    query: Mapping[str, object]
    sigma: PerItem
    dimension: int
    worst_case_rho: Decimal
    released_at: datetime
    epoch: int
    words: str = ""  # the query in words


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """An analyst's allowance on one dataset, and what is spent and left of it; None if no allowance was set."""

    dataset: str
    spent_rho: Decimal
    allowance_rho: Decimal | None = None
    left_rho: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndividualBudget(_Account):
    """The individual's own account in one dataset; every epsilon is at `delta`.

    The promise follows from the largest limit ever in force: lowering a limit does not change it. The spent total is no
    guarantee by itself. `epsilon_so_far_time_uniform` bounds the privacy loss so far, at whatever time it is read.
    """

    dataset: str
    share_spent: float  # of the limit in force now
    promise_rho: Decimal
    promise_epsilon: float  # when the individual's record is blanked
    promise_epsilon_replace_one: float | None  # when it is replaced by any other; None where nothing follows of it
    promise_of: str  # "largest_limit", or "dataset_budget", an upper bound where the individual's own is not known
    epsilon_so_far_time_uniform: float | None  # None where it is not below the promise
    delta: Decimal
    left_out_for_good: bool = False  # takes part in no query any more: the rule is `drop`, and one has left it out
    promise_epsilon_advisory: float | None = None  # of the same limit while all noise is Gaussian, where that is less
    reserve_rho: Decimal = Decimal(0)  # kept beside `budget_rho` for the dataset's monitor; a part of every limit
    lowest_limit_rho: Decimal  # the smallest one to lower the limit to


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDivergence:
    """A measure, for curators, of how well the answers so far tell the dataset with one record from that without it.

    It depends on the record and on the answers: it is not a guarantee, and the curator must keep it secret.
    """

    notice: str
    individual: str
    sequence: int
    spent_rho: Decimal
    epsilon: float  # at `delta`, as if the queries had been fixed beforehand
    delta: Decimal
    unit: str = "rho"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The cost of one query to one individual."""

    query_id: str
    asked: Mapping[str, object]
    at: datetime
    charged_rho: Decimal | None  # None where it is no longer kept
    outcome: str  # "charged", "shortened", "counted" (by a tick), "left_out" (could not pay, or paused), "untouched"
    # or "no_longer_kept"
    asked_rho: Decimal | None  # the charge of the whole vector; None where it is no longer kept
    dataset: str | None = None
    sequence: int | None = None
    words: str = ""  # the query in words
    asker: Asker | None = None
    unit: str = "rho"  # of the charges
