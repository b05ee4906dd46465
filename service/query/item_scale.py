"""The public scale of a query whose select items have each a sigma of their own: steps, clips, noise and worst case.

Item k is counted in steps of sigma_k / 2^s, with one s for all items. So every coordinate gets noise of 2^s steps, and
the vector that is summed and priced is an integer one. Its charge ||v||^2 / (2 * 4^s) is the sum over the items of
||v_k||^2 / (2 sigma_k^2): the Gaussian mechanism on a vector rescaled by public numbers (theory: the true charge).

The exponent s is 28 where the integers fit 64 bits and each item keeps 2^18 steps or more within its bound. It is
smaller where the integers do not fit, and larger where the noise is more than 2^10 times an item's bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from math import floor, ldexp, sqrt
from typing import Final

import numpy as np

from service.core.laws import Gaussian
from service.query.extents import STEPS_MIN, Extent, RowBounds
from service.query.item_precision import ItemPrecision, clip_of, item_precision_of, one_for_each
from service.query.item_steps import STEPS_LOG2, STEPS_MAX, Quotient, quotient_for
from service.query.language import Query
from service.query.problems import QueryProblem
from service.query.scale import Scale

STEPS_LOG2_MAX: Final = 32
ITEM_STEPS_MIN: Final = 2**18
SIGMA_MIN: Final = 2.0**-900
"""The least sigma. With a smaller one a step would lose digits, and no column has numbers so small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleFacts(RowBounds):
    """The facts of a dataset and a query that a scale depends on, beside the precision; all of them public."""

    extents: tuple[tuple[Extent, ...], ...]  # of each select item
    joint: tuple[tuple[Extent, ...], ...]  # of each, whose squares add up (`service.query.joint_extents`)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemScaleRequest:
    """The facts that a scale by item depends on."""

    known: ScaleFacts
    l2_clips: tuple[float, ...] | None  # of each select item, query units
    precision: ItemPrecision


def scale_by_item(query: Query, facts: ScaleFacts, *, budget_units: int) -> Scale:
    """The scale of a query that gives each item a precision of its own. Raises QueryProblem naming the field."""
    count, clip = len(query.select), clip_of(query.per_individual)
    clips = None if clip is None else one_for_each(clip, count, "per_individual.l2_clip")
    precision = item_precision_of(query.noise, count=count, budget_units=budget_units)
    return item_scale_of(ItemScaleRequest(known=facts, l2_clips=clips, precision=precision))


def natural_bounds(facts: ScaleFacts) -> tuple[float, ...]:
    """The norm that no individual's part of each item exceeds, in its query units."""
    return tuple(sqrt(facts.natural_squared(joint)) for joint in facts.joint)


def item_scale_of(request: ItemScaleRequest) -> Scale:
    """The steps of each item, with everything that follows from them. Raises QueryProblem naming the field."""
    has_vectors = any(extent.vectors is not None for extent in chain.from_iterable(request.known.extents))
    return _worked_out(request) if has_vectors else _kept(request)  # a matrix may have many entries, and rarely returns


def _worked_out(request: ItemScaleRequest) -> Scale:
    reaches = [_reach_squared(request, place) for place in range(len(request.known.extents))]
    largest = None  # the largest s of which the integers fit 64 bits
    for steps_log2 in [*range(STEPS_LOG2, -1, -1), *range(STEPS_LOG2 + 1, STEPS_LOG2_MAX + 1)]:
        sigmas = _sigmas(request, reaches, steps_log2)
        if not _fits(request, steps_log2, sigmas):
            continue
        if _lost_item(request, reaches, steps_log2, sigmas) is None:
            return _scale(request, steps_log2, sigmas, reaches)
        largest = steps_log2 if largest is None else max(largest, steps_log2)
    raise _refusal(request, reaches, largest)


_kept: Final = lru_cache(maxsize=1024)(_worked_out)


def _reach_squared(request: ItemScaleRequest, place: int) -> Fraction:
    """The squared norm that no individual's part of an item exceeds, after its clip."""
    natural = request.known.natural_squared(request.known.joint[place])
    if natural == 0:
        raise QueryProblem.of(f"select[{place}]", "is always zero within the declared bounds")
    return natural if request.l2_clips is None else min(natural, Fraction(request.l2_clips[place]) ** 2)


def _sigmas(request: ItemScaleRequest, reaches: Sequence[Fraction], steps_log2: int) -> list[float]:
    return [request.precision.sigma(place, reach, steps_log2) for place, reach in enumerate(reaches)]


def _lost_item(
    request: ItemScaleRequest, reaches: Sequence[Fraction], steps_log2: int, sigmas: Sequence[float]
) -> int | None:
    """The place of an item that has too few steps within its bound, or None."""
    for place, (reach, sigma) in enumerate(zip(reaches, sigmas, strict=True)):
        size = ldexp(sigma, -steps_log2)
        if reach < (ITEM_STEPS_MIN * Fraction(size)) ** 2:
            return place
        for extent in request.known.extents[place]:
            least = extent.largest if extent.least is None else extent.least
            if extent.largest and quotient_of(extent, size).of(least) < STEPS_MIN:
                return place
    return None


def _fits(request: ItemScaleRequest, steps_log2: int, sigmas: Sequence[float]) -> bool:
    """Tell whether sums of these steps are exact in 64 bits, for one individual and for all of them."""
    if min(sigmas) < SIGMA_MIN:
        return False
    sizes = [ldexp(sigma, -steps_log2) for sigma in sigmas]
    for extents, size in zip(request.known.extents, sizes, strict=True):
        most = max(quotient_of(extent, size).of(extent.largest) for extent in extents)
        if most * request.known.rows * request.known.shared_by > STEPS_MAX:
            return False
    return request.known.fits(sum(_clips_squared(request, sizes)))


def _refusal(request: ItemScaleRequest, reaches: Sequence[Fraction], steps_log2: int | None) -> QueryProblem:
    """The reason why no steps fit. `steps_log2` gives the finest steps whose integers fit, if there are any."""
    if steps_log2 is None:
        field, capacity = request.precision.field, "over the dataset's capacity"
        return QueryProblem.of(field, f"gives so little noise that numbers are too large for exact sums {capacity}")
    sigmas = _sigmas(request, reaches, steps_log2)
    place = _lost_item(request, reaches, steps_log2, sigmas) or 0
    if steps_log2 < STEPS_LOG2_MAX:
        return QueryProblem.of(
            f"select[{place}]", "would be lost in rounding beside the other items; ask it in a query of its own"
        )
    sigma_max = ldexp(sqrt(reaches[place]), STEPS_LOG2_MAX) / ITEM_STEPS_MIN
    return QueryProblem.of(request.precision.field, f"must give select[{place}] a sigma of at most {sigma_max:.6g}")


def quotient_of(extent: Extent, size: float) -> Quotient:
    """The quotient that turns an extent's own steps into an item's. Zero stays zero in steps of any size."""
    return quotient_for(step_log2=extent.step_log2, size=size) if extent.largest else Quotient(shift=0, divisor=1)


def _clips_squared(request: ItemScaleRequest, sizes: Sequence[float]) -> list[int]:
    """The squared norm in steps of each item that no vector may exceed: what its clip allows, or what can occur."""
    naturals = _naturals_squared(request.known, sizes)
    if request.l2_clips is None:
        return naturals
    clips = [floor((Fraction(clip) / Fraction(size)) ** 2) for clip, size in zip(request.l2_clips, sizes, strict=True)]
    return [*map(min, naturals, clips)]


def _naturals_squared(known: ScaleFacts, sizes: Sequence[float]) -> list[int]:
    """The squared norm in steps of each item that can occur."""
    return [
        sum(_squared_steps(extent, size) * known.times_squared(extent) for extent in extents)
        for extents, size in zip(known.joint, sizes, strict=True)
    ]


def _squared_steps(extent: Extent, size: float) -> int:
    """The largest squared norm of what one row adds, in steps of a size."""
    quotient, vectors = quotient_of(extent, size), extent.vectors
    if vectors is None:
        return quotient.of(extent.largest) ** 2
    if vectors.shifts is None:
        return vectors.longest_squared(quotient.of_all(vectors.entries))
    entries = vectors.entries.copy()
    for shift in np.unique(vectors.shifts).tolist():
        own = vectors.shifts == shift
        entries[own] = quotient_for(step_log2=extent.step_log2 + shift, size=size).of_all(entries[own])
    return vectors.longest_squared(entries)


def _scale(request: ItemScaleRequest, steps_log2: int, sigmas: Sequence[float], reaches: Sequence[Fraction]) -> Scale:
    sizes = [ldexp(sigma, -steps_log2) for sigma in sigmas]
    clips = _clips_squared(request, sizes)
    return Scale(
        grid_log2=0,
        clip_squared_steps=sum(clips),
        charged_squared_steps=sum(clips),
        clip_binds=clips != _naturals_squared(request.known, sizes),
        l2_clip=sqrt(sum(clips)),
        l2_charged=sqrt(sum(clips)),
        law=(law := Gaussian(ldexp(1.0, steps_log2))),
        worst_case_units=law.charge(sum(clips)),
        sigmas=tuple(sigmas),
        bounds=tuple(sqrt(reach) for reach in reaches),
        clips_squared=() if request.l2_clips is None else tuple(clips),
    )
