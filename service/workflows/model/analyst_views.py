"""Frozen rows that analysts read: answers, previews, releases, allowances. All of it is public."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pydantic import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """A released answer: the bytes that were committed, and the numbers they show, in query units."""

    query_id: UUID
    sequence: int
    body: bytes
    values: Callable[[], NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostView:
    """The public cost of a query: the server's time and memory at most, and how long its slots delay the answer."""

    time_ms: float
    memory_bytes: int
    delay_ms: float


HALF_WIDTH: Final = (
    "Each number is within this of what was counted, the sum over those who could pay, each vector clipped and on the"
    " grid, with a probability of at least 0.95. It is a multiple of the grid. The truth, which those left out belong"
    " to, may be further off."
)
WORST_CASE_SHARE: Final = "The worst case as a share of the dataset's budget; null for a budget of zero."
WORST_CASE_EPSILON: Final = (
    "The epsilon of the worst case at the dataset's delta, if this were the only query that an individual is charged;"
    " null where the guarantee is not stated by a delta."
)
LARGEST_NORM: Final = (
    "sigma * sqrt(2 * limit_floor_rho): an individual with a longer vector cannot pay for it from the smallest limit of"
    " the dataset, and is left out."
)
WARNINGS: Final = "What is likely to be a mistake, in words; empty for most queries. Public, as all of this is."
"""Answers and previews state these in the same words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Everything public about a query; touches no record."""

    dimension: int
    grid: float
    sigma: float
    half_width_95: Annotated[float, Field(description=HALF_WIDTH)]
    l2_clip: float
    worst_case_rho: str
    worst_case_share: Annotated[float | None, Field(description=WORST_CASE_SHARE)]
    worst_case_epsilon: Annotated[float | None, Field(description=WORST_CASE_EPSILON)]
    largest_countable_norm: Annotated[float, Field(description=LARGEST_NORM)]
    warnings: Annotated[tuple[str, ...], Field(description=WARNINGS)]
    allowance_left_rho: str | None
    coverage_certified: bool
    canonical: dict[str, object]
    words: str
    query_hash: str
    public_cost: CostView


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRow:
    """One of an analyst's own releases."""

    id: UUID
    dataset: str
    sequence: int
    query: dict[str, object]
    words: str
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
