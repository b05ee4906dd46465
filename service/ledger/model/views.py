"""Frozen rows that reading returns, named as on the wire. Rho values are exact decimal strings, units integers."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Generic, Literal, TypeVar
from uuid import UUID

from service.ledger.model.ledger_entry import Kind
from service.ledger.model.stated_guarantee import Guarantee, StatedAccounting
from service.ledger.model.stated_monitor import DatasetMonitor
from service.query.keys import Key, KeyComparison
from service.query.schema import Schema, doc

Role = Literal["curator", "analyst", "individual", "auditor"]
Rule = Literal["skip", "drop"]
Row = TypeVar("Row")

Id = Annotated[UUID, doc("The id, good for as long as the service.")]
DatasetName = Annotated[str, doc("The name of the dataset.")]
LedgerSequence = Annotated[int, doc("The position in the dataset's ledger; 0 before the first query.")]
EpochNumber = Annotated[int, doc("The public epoch: answers are reused within one epoch only.")]
QueryWords = Annotated[str, doc("The query in English.")]
NoiseSigma = Annotated[
    float | tuple[float, ...],
    doc(
        "The standard deviation of the noise on each number, in the query's unit; a list with one for each select item"
        " where each has its own."
    ),
]
AnswerGrid = Annotated[
    float | tuple[float, ...],
    doc(
        "The step of which every number of the answer is a multiple: a power of two, or a list with one step for each"
        " select item."
    ),
]
AnswerDimension = Annotated[int, doc("How many numbers the answer has.")]
WorstCaseRho = Annotated[
    str, doc("The most that the query can charge any individual in rho, a decimal; known before any data is read.")
]
IsCovered = Annotated[
    bool, doc("Whether public numbers alone show that no individual with the dataset's limit is left out.")
]
ReleasedAt = Annotated[
    datetime, doc("When the query arrived, to the second, in UTC: a later clock would show how long it took.")
]
DatasetRule = Annotated[
    Rule,
    doc(
        "The rule for an individual that cannot pay for a query: `skip` leaves it out of that query, `drop` of every"
        " later one too."
    ),
]
AmountUnit = Annotated[
    str, doc("The unit of every rho here: `rho`, or `rho at order 32`, the Rényi divergence over its order.")
]
AdvisoryEpsilon = Annotated[
    float | None,
    doc(
        "Advisory: the epsilon that the promised limit has as long as every answer has Gaussian noise, by the curve of"
        " Gaussian differential privacy. Null where the promise says it already, or an answer had other noise."
    ),
]
QueriesCharged = Annotated[int, doc("How many queries have charged the individual.")]
QueriesLeftOut = Annotated[int, doc("How many queries have left the individual out.")]
IndividualsCount = Annotated[int, doc("How many individuals the dataset has.")]
KeyRole = Annotated[Role, doc("The role: it decides which requests the key is good for.")]
KeyName = Annotated[str, doc("The name, for people to read.")]
KeyDataset = Annotated[str | None, doc("The one dataset that the key is good for; null for all.")]
KeyIndividual = Annotated[str | None, doc("The key of the individual that the principal is; null for all other roles.")]
ALLOWANCE = doc(
    "The most that the worst cases of the analyst's queries may add up to on each dataset, in rho; null for no bound,"
    " and for all roles but analysts."
)
AnalystAllowance = Annotated[
    str | None,
    doc(
        "The most that the worst cases of the analyst's queries may add up to on each dataset, in rho; null for no"
        " bound."
    ),
]
Organisation = Annotated[str | None, doc("The organisation that the principal is of, as individuals are shown it.")]
Purpose = Annotated[str | None, doc("The purpose of the principal's queries, as individuals are shown it.")]
EXPIRY = doc("When the key ends; null for never.")
ExpiresAt = Annotated[datetime | None, EXPIRY]
RevokedAt = Annotated[datetime | None, doc("When the key was revoked; null while it is good.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The holder of an API key. `dataset` bounds what it may touch; `individual` is whose own budgets it sees."""

    id: UUID
    role: Role
    name: str
    dataset: str | None
    individual: Key | None
    allowance_units: int | None

    @property
    def binding(self) -> tuple[Role, str | None, str | None]:
        """The role and its bounds.

        What is admitted for one binding is not admitted for another binding of the same principal.
        """
        return self.role, self.dataset, self.individual


@dataclass(frozen=True, slots=True, kw_only=True)
class _Holder:
    """A principal as its curator is shown it."""

    id: Id
    role: KeyRole
    name: KeyName
    dataset: KeyDataset
    individual: KeyIndividual
    allowance_rho: Annotated[str | None, ALLOWANCE]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPrincipal(_Holder):
    """A principal that has just been made, with its key, shown once."""

    key: Annotated[str, doc("The API key, shown here and never again.")] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalRow(_Holder):
    """A principal as the curator lists it; never its key."""

    created_at: Annotated[datetime, doc("When the principal was made.")]
    revoked_at: RevokedAt
    organisation: Organisation = None
    purpose: Purpose = None
    expires_at: ExpiresAt = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalystRow:
    """An analyst of one dataset: the bound on the sum of its worst cases there, and that sum so far."""

    id: Id
    name: Annotated[str, doc("The analyst's name.")]
    organisation: Organisation
    purpose: Purpose
    allowance_rho: AnalystAllowance
    worst_case_spent_rho: Annotated[
        str, doc("The sum of the worst cases of its queries on this dataset, in rho, a decimal.")
    ]
    expires_at: ExpiresAt
    revoked_at: RevokedAt


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """The analyst behind a query, as individuals are shown it: as stated by the curator now, and without a name."""

    organisation: Organisation
    purpose: Purpose


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[Row]):
    """One page of a listing."""

    items: Annotated[tuple[Row, ...], doc("The rows of this page.")]
    next: Annotated[str | None, doc("The cursor of the following page; null at the end.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _DatasetFacts:
    """The public facts of a dataset but its schema; none is read off the data."""

    name: Annotated[str, doc("The name, for people to read.")]
    guarantee: Annotated[Guarantee, doc("The guarantee that was stated at registration; it never changes.")]
    budget_rho: Annotated[str, doc("The most that is ever spent on one individual in rho, a decimal.")]
    budget_units: Annotated[int, doc("The budget in units of 2^-40 rho.")]
    accounting: StatedAccounting
    monitor: DatasetMonitor
    unit: AmountUnit
    mu: Annotated[
        float | None,
        doc("The budget as the parameter of Gaussian differential privacy, mu^2 = 2 rho; null unless that is `gdp`."),
    ]
    limit_floor_rho: Annotated[
        str, doc("The smallest limit that an individual may have in rho, a decimal; `coverage_certified` rests on it.")
    ]
    capacity: Annotated[
        int, doc("The most individuals that the dataset takes; public, and the bound behind every public cost.")
    ]
    rule: DatasetRule
    keys: Annotated[KeyComparison, doc("How the keys of individuals are compared.")]
    epoch: EpochNumber
    version: Annotated[int, doc("1 for the registration as it was made, and one more for each extension.")]
    archived: Annotated[bool, doc("Whether the dataset takes no query and no row any more, for good.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRow(_DatasetFacts):
    """A dataset as it is listed, with the names of its tables: a schema may have a megabyte."""

    table_names: Annotated[tuple[str, ...], doc("The names of the tables; the dataset's own route has the schema.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorDatasetRow(DatasetRow):
    """A dataset as curators list it."""

    sequence: LedgerSequence
    individuals: IndividualsCount


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicDataset(_DatasetFacts):
    """The public facts of a dataset; none is read off the data."""

    tables: Annotated[Schema, doc("The public schema: tables, columns and domains.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorDataset(PublicDataset):
    """A dataset as curators see it: the public facts, the ledger's sequence, and the counts of people and rows."""

    sequence: LedgerSequence
    individuals: IndividualsCount
    rows: Annotated[dict[str, int], doc("How many rows each table has.")]
    warnings: Annotated[tuple[str, ...], doc("Probable mistakes in the registration, a sentence each.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadReport:
    """The effect of an upload; after a dry run, the effect that it would have. The counts by column are of all rows
    sent.
    """  # noqa: D205 - one paragraph in the OpenAPI document

    rows: Annotated[int, doc("How many rows were stored.")]
    individuals: Annotated[int, doc("How many individuals joined.")]
    clipped: Annotated[dict[str, int], doc("By column: how many numbers were moved to the nearer bound.")]
    out_of_domain: Annotated[dict[str, int], doc("By column: how many categories are not declared, and count nowhere.")]
    nulls: Annotated[dict[str, int], doc("By column: how many values are NULL.")]
    rows_dropped: Annotated[int, doc("How many rows beyond `rows_per_individual` were dropped.")] = 0
    individuals_dropped_from: Annotated[int, doc("How many individuals these rows were of.")] = 0
    largest_share_dropped: Annotated[
        float, doc("The largest share of one individual's rows, stored earlier ones among them, that was dropped.")
    ] = 0.0
    rows_unknown: Annotated[int, doc("How many rows were dropped because no individual has their key.")] = 0
    rows_repeated: Annotated[
        int, doc("How many rows have the key and the stored values of an earlier row; dropped if that was asked for.")
    ] = 0
    warnings: Annotated[tuple[str, ...], doc("Probable mistakes, a sentence each.")] = ()
    stored: Annotated[bool, doc("Whether the rows were stored; false after a dry run.")] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePreview:
    """The first rows of a Parquet file or an Arrow stream. Nothing of it is stored."""

    csv: Annotated[str, doc("The rows as CSV (RFC 4180) with a header: at most 100,000, and 4 MiB.")]
    rows: Annotated[int, doc("How many rows these are.")]
    text_columns: Annotated[tuple[str, ...], doc("The columns that hold text, though it may look like numbers.")]
    left_out: Annotated[dict[str, str], doc("By column: why it is not in the CSV.")]
    is_whole: Annotated[bool, doc("Whether these are all rows of the file.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
    """The account of one individual, as curators see it."""

    key: Annotated[str, doc("The individual's key, as it was uploaded.")]
    budget_rho: Annotated[str, doc("The individual's limit in rho, a decimal.")]
    spent_rho: Annotated[str, doc("The sum of the charges in rho, a decimal.")]
    remaining_rho: Annotated[str, doc("Limit less spent, in rho, a decimal.")]
    spent_units: Annotated[int, doc("The sum of the charges in units of 2^-40 rho.")]
    budget_units: Annotated[int, doc("The budget in units of 2^-40 rho.")]
    paused: Annotated[bool, doc("Whether the individual takes part in no query until it resumes.")]
    queries_charged: QueriesCharged
    queries_left_out: QueriesLeftOut


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareBin:
    """How many individuals have a remaining share in [low, high), the last bin closed."""

    low: Annotated[float, doc("The least share of the bin.")]
    high: Annotated[float, doc("The greatest share of the bin; only in the last bin it belongs to it.")]
    individuals: Annotated[int, doc("How many individuals have such a share left.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypicalQuery:
    """The query with the middle worst case of the last hundred; those that no limit could ever pay count for
    nothing. How many cannot afford another bounds from above how many it would leave out: many are charged less, or
    nothing.
    """  # noqa: D205 - one paragraph in the OpenAPI document

    of: Annotated[int, doc("Of how many queries it is the middle one, at most 100.")]
    sequence: LedgerSequence
    words: QueryWords
    worst_case_rho: WorstCaseRho
    cannot_afford: Annotated[
        int, doc("How many individuals have less left than the most that another such query may charge.")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSummary:
    """The budgets of a dataset at one sequence of its ledger."""

    sequence: LedgerSequence
    individuals: Annotated[int, doc("How many individuals the dataset has.")]
    exhausted: Annotated[int, doc("How many individuals have nothing left.")]
    paused: Annotated[int, doc("How many individuals have paused.")]
    left_out_for_good: Annotated[
        int, doc("How many individuals take part in no query any more: the rule is `drop`, and one has left them out.")
    ]
    erasures_asked: Annotated[int, doc("How many individuals ask to be erased and are not yet.")]
    remaining_share_histogram: Annotated[
        tuple[ShareBin, ...], doc("How many individuals have which share of their limit left, in fifty bins.")
    ]
    quantiles: Annotated[
        dict[str, float], doc("The remaining share by quantile: `0.5` names the share of which half have less.")
    ]
    typical_query: Annotated[
        TypicalQuery | None,
        doc("A typical one of the last queries, and how many could not pay for another; null where none counts."),
    ]
    worst_case_ended_after: Annotated[
        int | None, doc("After how many queries accounting by worst cases would have ended; null if not yet.")
    ]
    promise_epsilon_advisory: AdvisoryEpsilon = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActRow:
    """An act of a curator or an individual. The key of an individual that was erased is in none."""

    number: Annotated[int, doc("The act's place in the journal, from 1.")]
    act: Annotated[str, doc("The kind of act, such as `rows`, `limit`, `pause`, `erase` or `epoch`.")]
    sequence: Annotated[int, doc("The ledger's sequence when it was done.")]
    at: Annotated[datetime, doc("When it was done.")]
    individual: Annotated[
        str | None, doc("The key of the individual that it concerns, while that is present; null for all other acts.")
    ]
    detail: Annotated[dict[str, object], doc("The facts of the act, which depend on its kind.")]


@dataclass(frozen=True, kw_only=True)
class _EntryStart:
    """The first fields of a row of the ledger; the rows are put together in the order in which they are sent."""

    sequence: LedgerSequence
    query_id: Annotated[UUID, doc("The id of the answer.")]
    analyst: Annotated[str, doc("The name of the analyst that asked; empty for a burn.")]
    query: Annotated[
        dict[str, object],
        doc("The query in its canonical form; of a burn the reason why every individual was charged."),
    ]
    words: QueryWords
    sigma: NoiseSigma
    grid: AnswerGrid
    dimension: AnswerDimension
    worst_case_rho: WorstCaseRho


@dataclass(frozen=True, kw_only=True)
class _EntryCounts:
    """The numbers of people, which auditors are not shown."""

    charged: Annotated[int, doc("How many individuals were charged; for curators alone.")]
    left_out: Annotated[int, doc("How many individuals were left out; for curators alone.")]


@dataclass(frozen=True, kw_only=True)
class _EntryEnd:
    """The last fields of a row of the ledger (docs/ledger.md, "Auditing the ledger")."""

    asked_at: Annotated[datetime, doc("When the query arrived, to the second, in UTC.")]
    epoch: EpochNumber
    kind: Annotated[Kind, doc("`query`, or `burn`: a charge for answers that a restored database has forgotten.")]
    format: Annotated[int, doc("The number of the entry's format, which `hash` binds.")]
    mechanism: Annotated[str, doc("`gaussian`; `gaussian prepaid` of ticks; `laplace` of scale `sigma`, and prices.")]
    analyst_id: Annotated[UUID, doc("The id of the analyst that asked; of a burn all zeros.")]
    query_sha256: Annotated[str, doc("The SHA-256 of the canonical JSON of `query`.")]
    query_hash: Annotated[
        str,
        doc(
            "The SHA-256 of the linear query that was answered; "
            "it is `query_sha256` unless items were worked out, and empty for a burn."
        ),
    ]
    grid_log2: Annotated[int, doc("The exponent of `grid`.")]
    sigmas: Annotated[
        tuple[float, ...] | None,
        doc(
            "The standard deviation of the noise on each select item, where each has its own; `sigma` is then in steps,"
            " and `grid` is 1."
        ),
    ] = None
    worst_case_units: Annotated[str, doc("The worst case in units of 2^-40 rho, a decimal.")]
    worst_case_total_units: Annotated[
        str, doc("The sum of the worst cases up to this entry in units of 2^-40 rho, a decimal.")
    ]
    values_sha256: Annotated[
        str, doc("The SHA-256 of the released values in grid steps, as signed 64-bit numbers, highest byte first.")
    ]
    private_digest: Annotated[
        str, doc("The digest that binds numbers of people under a random salt; it tells nothing of them.")
    ]
    previous_hash: Annotated[str, doc("The hash of the entry before.")]
    hash: Annotated[str, doc("The entry's hash, over the hash before it.")]
    is_checkable: Annotated[bool, doc("Whether `hash` is shown with all that gives it, as it is of every entry.")]


@dataclass(frozen=True, kw_only=True)
class LedgerRow(_EntryEnd, _EntryCounts, _EntryStart):
    """An entry of the ledger as curators see it. A burn has no analyst, noise or answer."""


@dataclass(frozen=True, kw_only=True)
class AuditedRow(_EntryEnd, _EntryStart):
    """An entry of the ledger as auditors see it: without the numbers of people, and with every input of its hash where
    `is_checkable` is true.
    """  # noqa: D205 - one paragraph in the OpenAPI document
