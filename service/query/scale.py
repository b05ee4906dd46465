"""The public scale of a query: its grid, its clip in grid steps, its noise and the worst case of its charge.

The scale is a function of the query, the declared bounds and the dataset's capacity. So it may be shown to anyone and
may refuse a query. The clip is kept in integers and exact fractions, because the clip that the engine enforces and the
worst case that the analyst is told must belong to the same number.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ldexp, sqrt
from typing import Final

from service.core.laws import Law
from service.core.mechanisms import GAUSSIAN_NOISE, Mechanism
from service.core.noise import SIGMA_STEPS_MAX, SIGMA_STEPS_MIN
from service.query.extents import TOTAL_MAX, Extent, RowBounds, exponent_above
from service.query.precision import Precision
from service.query.problems import QueryProblem
from service.query.reduction import REDUCTIONS, Reduce

BITS_MAX, BITS_MIN = 30, 18  # the clip spans more than 2^(s-1) and at most 2^s steps of a grid that is not 1
SIGMA_STEPS_EASY = 2.0**28  # up to here the exact sampler rarely needs its slow path


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRequest(RowBounds):
    """The facts that the scale depends on, all of them public."""

    extents: tuple[Extent, ...]  # one for each select item
    joint: tuple[Extent, ...]  # whose squares add up to a bound on one row (`service.query.joint_extents`)
    l2_clip: float | None  # query units
    precision: Precision
    mechanism: Mechanism = GAUSSIAN_NOISE
    is_fine: bool = False  # vectors may be shortened or weighed, or a norm is rounded: grid 1 has no fractions
    reduce: Reduce | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A grid and what is counted in its steps, or the steps of each select item (`service.query.item_scale`).

    Steps by item have no common unit. The grid is 1 then, and `l2_clip` and the size of the noise are in steps.
    """

    grid_log2: int
    clip_squared_steps: int
    clip_binds: bool
    l2_clip: float  # query units
    charged_squared_steps: int  # no individual is charged for more: the clip, or of a reduced query the change of it
    l2_charged: float  # query units
    law: Law  # in steps
    worst_case_units: int
    bounds: tuple[float, ...] = ()  # of several select items: the longest part of a vector, in its query units
    sigmas: tuple[float, ...] = ()  # of each select item, in its query units
    clips_squared: tuple[int, ...] = ()  # of each select item, in its steps, where each has a clip of its own

    @property
    def size(self) -> float:
        """The size of the noise in query units, or in steps where each item has its own."""
        return ldexp(self.law.size_steps, self.grid_log2)


def scale_of(request: ScaleRequest) -> Scale:
    """The grid of a query and everything that follows from it. Raises QueryProblem naming the field.

    The grid is 1 if every item is integral, the clip cannot bind and no vector is to be shortened further. Otherwise,
    and also where the integers would not fit on grid 1, the grid is a power of two of which the clip spans at most 2^s
    steps. Then s is the largest of 30..18 at which sigma is at most 2^28 steps. Failing that, s is the smallest at
    which sigma is at most 2^32 steps. If vectors may be shortened or weighed, s is 19 at least, so that the clip spans
    2^18 steps or more. The same holds where the norm of the sum is rounded, so that a step is 2^-18 of the clip or
    less.
    """
    has_vectors = any(extent.vectors is not None for extent in request.joint)
    return _worked_out(request) if has_vectors else _kept(request)  # a matrix may have many entries, and rarely returns


def _worked_out(request: ScaleRequest) -> Scale:
    natural = request.natural_squared(request.joint)
    if natural == 0:
        raise QueryProblem.of("select", "is always zero within the declared bounds")
    clip = None if request.l2_clip is None else Fraction(request.l2_clip) ** 2
    if clip is not None and clip >= natural:
        clip = None
    for grid_log2, size_steps_max in _grids(request, natural, clip):
        reached = charged = _clip_squared_steps(request, grid_log2, clip)
        if request.reduce is not None:
            charged = _charged_squared_steps(request.reduce, request, grid_log2, reached)
        if request.precision.estimate(charged, grid_log2) > size_steps_max:
            continue
        if _obstacle(request, grid_log2, reached) is None:
            return _scale(request, grid_log2, reached, charged, natural if clip is None else None)
    raise _refusal(request, natural, clip)


_kept: Final = lru_cache(maxsize=4096)(_worked_out)


def _grids(request: ScaleRequest, natural: Fraction, clip: Fraction | None) -> Iterator[tuple[int, float]]:
    """The grids to try, the best first, as powers of two, each with the largest sigma in steps for which it will do."""
    if clip is None and not request.is_fine and all(extent.integral for extent in request.extents):
        yield 0, SIGMA_STEPS_MAX
    exponent = exponent_above(natural if clip is None else clip)
    least = BITS_MIN + request.is_fine
    for bits in range(BITS_MAX, least - 1, -1):
        yield exponent - bits, SIGMA_STEPS_EASY
    for bits in range(least, BITS_MAX + 1):
        yield exponent - bits, SIGMA_STEPS_MAX


def _clip_squared_steps(request: ScaleRequest, grid_log2: int, clip: Fraction | None) -> int:
    """The largest squared norm of a vector, in steps: as the clip allows, or as can occur at all."""
    natural = _natural_squared_steps(request, grid_log2)
    if clip is None:
        return natural
    doublings = -2 * grid_log2
    over, under = (doublings, 0) if doublings > 0 else (0, -doublings)
    return min(natural, (clip.numerator << over) // (clip.denominator << under))


def _natural_squared_steps(request: ScaleRequest, grid_log2: int) -> int:
    return sum(extent.squared_steps(grid_log2) * request.times_squared(extent) for extent in request.joint)


def _charged_squared_steps(reduce: Reduce, request: ScaleRequest, grid_log2: int, clip_squared_steps: int) -> int:
    """The largest squared steps that a reduced query charges for. The bound on an entry is a row's, times the rows."""
    peak = max(extent.steps(grid_log2) * (1 if extent.is_once else request.rows) for extent in request.extents)
    return REDUCTIONS[reduce].charged_squared(clip_squared_steps, peak)


def _obstacle(request: ScaleRequest, grid_log2: int, clip_squared_steps: int) -> QueryProblem | None:
    """The problem that makes a grid unusable, other than the noise; None if there is none."""
    for place, extent in enumerate(request.extents):
        if not extent.survives(grid_log2):
            return QueryProblem.of(
                f"select[{place}]", "would be lost in rounding beside the rest of select; ask it in a query of its own"
            )
    if max(extent.steps(grid_log2) for extent in request.extents) * request.rows * request.shared_by > TOTAL_MAX:
        if request.l2_clip is not None:
            return QueryProblem.of("per_individual.l2_clip", "is too small beside the declared bounds")
        return QueryProblem.of("select", "adds up to numbers too large for exact sums; give an l2_clip")
    if not request.fits(clip_squared_steps):
        return QueryProblem.of("select", "adds up to numbers too large for exact sums over the dataset's capacity")
    return None


def _refusal(request: ScaleRequest, natural: Fraction, clip: Fraction | None) -> QueryProblem:
    """The reason why no grid fits: the noise if a grid is otherwise right, or else the obstacle of the first grid."""
    problems = {
        grid_log2: _obstacle(request, grid_log2, _clip_squared_steps(request, grid_log2, clip))
        for grid_log2, _ in _grids(request, natural, clip)
    }
    without = [grid_log2 for grid_log2, problem in problems.items() if problem is None]
    if without:
        return _out_of_range(request, f"at most {ldexp(SIGMA_STEPS_MAX, max(without)):.6g}")
    return next(problem for problem in problems.values() if problem is not None)


def _scale(
    request: ScaleRequest, grid_log2: int, clip_squared_steps: int, charged: int, natural: Fraction | None
) -> Scale:
    size_steps = request.precision.size_steps(charged, grid_log2)
    if size_steps < SIGMA_STEPS_MIN:
        raise _out_of_range(request, f"at least {ldexp(SIGMA_STEPS_MIN, grid_log2):.6g}")
    law = request.mechanism.at(size_steps)
    return Scale(
        grid_log2=grid_log2,
        clip_squared_steps=clip_squared_steps,
        clip_binds=clip_squared_steps < _natural_squared_steps(request, grid_log2),
        l2_clip=(l2_clip := sqrt(natural) if natural is not None else float(request.l2_clip or 0)),
        charged_squared_steps=charged,
        l2_charged=l2_clip if request.reduce is None else ldexp(sqrt(charged), grid_log2),
        law=law,
        worst_case_units=law.charge(charged),
    )


def _out_of_range(request: ScaleRequest, bound: str) -> QueryProblem:
    word = request.mechanism.law.size_word
    return QueryProblem.of(request.precision.field, f"must give a {word} of {bound} in this query")
