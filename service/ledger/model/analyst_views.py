"""Frozen rows that analysts read: answers, previews, releases, allowances. All of it is public."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final
from uuid import UUID

from service.arrays import Reals
from service.ledger.model.views import (
    AnalystAllowance,
    AnswerDimension,
    AnswerGrid,
    DatasetName,
    EpochNumber,
    Id,
    IsCovered,
    LedgerSequence,
    NoiseSigma,
    QueryWords,
    ReleasedAt,
    WorstCaseRho,
)
from service.query.schema import doc


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """A released answer: the bytes that were committed, and the numbers they show, in query units."""

    query_id: UUID
    sequence: int
    body: bytes
    values: Callable[[], Reals]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostView:
    """The public cost of a query: the server's time and memory at most, and its delay by time slots."""

    time_ms: Annotated[float, doc("The most time that the query can take, in milliseconds.")]
    memory_bytes: Annotated[int, doc("The most memory that the query can take, in bytes.")]
    delay_ms: Annotated[float, doc("How long the slots that the query takes delay the answer, in milliseconds.")]


HALF_WIDTH: Final = (
    "Each number is within this of what was counted, the sum over those who could pay, each vector clipped and on the"
    " grid, with a probability of at least 0.95. It is a multiple of the grid. The truth, which those left out belong"
    " to, may be further off. A list has one for each select item, where each has noise of its own."
)
WORST_CASE_SHARE: Final = "The worst case as a share of the dataset's budget; null for a budget of zero."
WORST_CASE_EPSILON: Final = (
    "The epsilon of the worst case at the dataset's delta, if this were the only query that an individual is charged;"
    " null where the guarantee is not stated by a delta."
)
LARGEST_NORM: Final = (
    "sigma * sqrt(2 * limit_floor_rho): an individual with a longer vector cannot pay for it from the smallest limit of"
    " the dataset, and is left out. A list has one for each select item alone."
)
LAPLACE_SCALE: Final = "The scale of Laplace noise, in the query's unit; null of a Gaussian."
WARNINGS: Final = "What is likely to be a mistake, in words; empty for most queries. Public, as all of this is."
NOTES: Final = (
    "A sentence on each bound by which an individual may count for less, and on the day of an answer that is repeated."
)
COVERAGE_WORDS: Final = "A sentence on who may be missing from the answer; it follows from `coverage_certified`."
"""Answers and previews state these in the same words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Everything public about a query; touches no record."""

    dimension: AnswerDimension
    grid: AnswerGrid
    sigma: NoiseSigma
    scale: Annotated[float | None, doc(LAPLACE_SCALE)]
    half_width_95: Annotated[float | tuple[float, ...], doc(HALF_WIDTH)]
    l2_clip: Annotated[
        float | tuple[float, ...],
        doc("The bound on the length of one individual's vector, or of its part in each item, in the query's unit."),
    ]
    worst_case_rho: WorstCaseRho
    worst_case_share: Annotated[float | None, doc(WORST_CASE_SHARE)]
    worst_case_epsilon: Annotated[float | None, doc(WORST_CASE_EPSILON)]
    largest_countable_norm: Annotated[float | tuple[float, ...], doc(LARGEST_NORM)]
    warnings: Annotated[tuple[str, ...], doc(WARNINGS)]
    allowance_left_rho: Annotated[
        str | None, doc("The part of the caller's allowance that is left, in rho, a decimal; null for no bound.")
    ]
    coverage_certified: IsCovered
    coverage_words: Annotated[str, doc(COVERAGE_WORDS)]
    certified_left_share: Annotated[
        float,
        doc(
            "The share of the dataset's budget that queries may still cost at worst, all together, after this one while"
            " `coverage_certified` holds."
        ),
    ]
    notes: Annotated[tuple[str, ...], doc(NOTES)]
    estimates: Annotated[
        tuple[str, ...],
        doc("The items that the answer will have estimates of; empty where all that was asked for is linear."),
    ]
    canonical: Annotated[dict[str, object], doc("The query in its canonical form, which the ledger keeps.")]
    words: QueryWords
    query_hash: Annotated[str, doc("The SHA-256 of the canonical linear query, by which a repeated one is recognised.")]
    public_cost: Annotated[CostView, doc("The time and memory that the query may take, from public numbers alone.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRow:
    """One of an analyst's own releases."""

    id: Id
    dataset: DatasetName
    sequence: LedgerSequence
    query: Annotated[dict[str, object], doc("The query in its canonical form.")]
    words: QueryWords
    sigma: NoiseSigma
    dimension: AnswerDimension
    worst_case_rho: WorstCaseRho
    released_at: ReleasedAt
    epoch: EpochNumber


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The analyst's bound on one dataset: the sum of the worst cases of its queries, and what is left."""

    dataset: DatasetName
    allowance_rho: AnalystAllowance
    spent_rho: Annotated[str, doc("The sum of the worst cases so far, in rho, a decimal.")]
    left_rho: Annotated[str | None, doc("The part that is left, in rho, a decimal; null for no bound.")]
