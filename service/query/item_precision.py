"""The precision of each select item by itself: a sigma, a half width, or a part of the worst case for each.

One number for all items would be the noise of numbers of different sizes: noise that hides a price is too much for a
count of 139. So each item may have its own number, and a share is divided among the items. One number for items of
different bounds is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, isqrt, ldexp, nextafter
from typing import Final

from service.core.charge import LIMIT_UNITS_MAX, UNITS_PER_RHO
from service.core.half_widths import half_width_steps
from service.query.item import is_composite
from service.query.item_steps import STEPS_LOG2
from service.query.language import Query
from service.query.noise_ast import PREPAID_ALONE, HalfWidth, Noise, PerIndividual, Prepaid, Rho, Share, Sigma, SizeForm
from service.query.problems import QueryProblem

UNEVEN_MAX: Final = 4
"""The largest ratio of two items' bounds at which one number may be the noise of both."""
_SIGMA_BITS: Final = 24  # of a sigma that is worked out from a worst case


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSigmas:
    """A standard deviation for each item, in that item's query units."""

    field: str
    sigmas: tuple[float, ...]

    def sigma(self, place: int, _reach_squared: Fraction, _steps_log2: int) -> float:
        """The item's sigma."""
        return self.sigmas[place]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemHalfWidths:
    """A distance for each item, in its query units, that the noise stays within at a confidence."""

    field: str
    half_widths: tuple[float, ...]
    confidence: float

    def sigma(self, place: int, _reach_squared: Fraction, steps_log2: int) -> float:
        """The largest sigma whose half width, in steps times the size of a step, is within the distance."""
        steps = half_width_steps(ldexp(1.0, steps_log2), self.confidence)
        wanted = Fraction(self.half_widths[place]) / max(steps, 1)
        size = float(wanted)
        return ldexp(size if Fraction(size) <= wanted else nextafter(size, 0.0), steps_log2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemWorstCases:
    """The most that one individual may be charged for each item, in ledger units."""

    field: str
    units: tuple[int, ...]

    def sigma(self, place: int, reach_squared: Fraction, _steps_log2: int) -> float:
        """The smallest number of 24 bits at which a vector of the reach costs at most the item's units.

        That is reach^2 / (2 sigma^2) <= units / 2^40. A vector in steps is truncated, so that it is no longer and costs
        no more.
        """
        least = reach_squared * (UNITS_PER_RHO // 2) / self.units[place]
        exponent = (least.numerator.bit_length() - least.denominator.bit_length()) // 2 - _SIGMA_BITS
        scaled = least / Fraction(4) ** exponent
        return ldexp(isqrt(-(-scaled.numerator // scaled.denominator) - 1) + 1, exponent)


ItemPrecision = ItemSigmas | ItemHalfWidths | ItemWorstCases


def by_item(query: Query) -> Query:
    """A request's query in full: a share is divided among several items, and a list of one number becomes that number.

    A query with composite items is returned unchanged: its linear query divides the share. Raises QueryProblem for one
    clip for several items, and for several numbers for one item.
    """
    if any(map(is_composite, query.select)):
        return query
    count, noise, per_individual = len(query.select), query.noise, query.per_individual
    clip = clip_of(per_individual)
    if count > 1 and isinstance(clip, float | int):
        raise QueryProblem.of("per_individual.l2_clip", f"must be a list of {count} numbers, one for each select item")
    changes: dict[str, object] = {}
    if count > 1 and isinstance(noise, Share | Rho) and noise.weights is None:
        changes["noise"] = noise.model_copy(update={"weights": (1,) * count})
    if count == 1:
        changes |= _of_one(noise, per_individual)
    return query.model_copy(update=changes) if changes else query


def item_precision_of(noise: Noise, *, count: int, budget_units: int) -> ItemPrecision:
    """The precision of each of `count` items on a dataset with this budget. Raises QueryProblem naming the field."""
    match noise:
        case Sigma():
            return ItemSigmas(field="noise.sigma", sigmas=one_for_each(noise.sigma, count, "noise.sigma"))
        case HalfWidth():
            if half_width_steps(ldexp(1.0, STEPS_LOG2), noise.confidence) == 0:
                raise QueryProblem.of("noise.confidence", "is too small for an interval")
            widths = one_for_each(noise.half_width, count, "noise.half_width")
            return ItemHalfWidths(field="noise.half_width", half_widths=widths, confidence=noise.confidence)
        case Rho():
            return _worst_cases("noise.rho", floor(Fraction(noise.rho) * UNITS_PER_RHO), noise.weights, count)
        case Share():
            return _worst_cases("noise.share", floor(Fraction(noise.share) * budget_units), noise.weights, count)
        case SizeForm():
            problem = f"is of {noise.MECHANISM.capitalize()} noise, which is for one number for each individual"
            raise QueryProblem.of(f"noise.{noise.KIND}", problem)
        case Prepaid():
            raise QueryProblem.of("noise.prepaid", PREPAID_ALONE)


def refuse_uneven(query: Query, bounds: Sequence[float]) -> None:
    """Raise QueryProblem where one number is the noise of items whose `bounds` differ by more than UNEVEN_MAX.

    Answers from before this rule stay valid: a plan that is verified or rebuilt is compiled without it.
    """
    match query.noise:
        case Sigma(sigma=number) if not isinstance(number, tuple):
            field = "noise.sigma"
        case HalfWidth(half_width=number) if not isinstance(number, tuple):
            field = "noise.half_width"
        case _:
            return
    least = min(bounds)
    if max(bounds) > UNEVEN_MAX * least:
        even = ", ".join(f"{float(f'{number * bound / least:.3g}'):.12g}" for bound in bounds)
        raise QueryProblem.of(field, f"give one for each item, such as [{even}]")


def clip_of(per_individual: PerIndividual | None) -> float | tuple[float, ...] | None:
    """The clip of a query: one number, or one for each item, or None."""
    return None if per_individual is None else per_individual.l2_clip


def one_for_each(numbers: float | tuple[float, ...], count: int, field: str) -> tuple[float, ...]:
    """A number for each of `count` items. Raises QueryProblem naming the field for a list of another length."""
    several = numbers if isinstance(numbers, tuple) else (numbers,) * count
    if len(several) != count:
        raise QueryProblem.of(field, f"must have {count} numbers, one for each select item, not {len(several)}")
    return several


def _of_one(noise: Noise, per_individual: PerIndividual | None) -> dict[str, object]:
    """The changes that replace the lists of a query of one item by their number. Raises QueryProblem for several."""
    changes: dict[str, object] = {}
    match noise:
        case Sigma(sigma=tuple(numbers)):
            (number,) = one_for_each(numbers, 1, "noise.sigma")
            changes["noise"] = noise.model_copy(update={"sigma": number})
        case HalfWidth(half_width=tuple(numbers)):
            (number,) = one_for_each(numbers, 1, "noise.half_width")
            changes["noise"] = noise.model_copy(update={"half_width": number})
        case Rho(weights=tuple(weights)) | Share(weights=tuple(weights)):
            one_for_each(weights, 1, "noise.weights")
            changes["noise"] = noise.model_copy(update={"weights": None})
    clip = clip_of(per_individual)
    if per_individual is not None and isinstance(clip, tuple):
        (number,) = one_for_each(clip, 1, "per_individual.l2_clip")
        changes["per_individual"] = per_individual.model_copy(update={"l2_clip": number})
    return changes


def _worst_cases(field: str, units: int, weights: tuple[float, ...] | None, count: int) -> ItemWorstCases:
    if not 1 <= units <= LIMIT_UNITS_MAX:
        raise QueryProblem.of(field, "must be at least 2^-40 and at most 2^21 rho for one individual")
    parts = [Fraction(weight) for weight in one_for_each(1.0 if weights is None else weights, count, "noise.weights")]
    divided = tuple(floor(units * part / sum(parts)) for part in parts)
    if min(divided) < 1:
        place = divided.index(min(divided))
        raise QueryProblem.of(f"noise.weights[{place}]", "leaves less than 2^-40 rho for this item")
    return ItemWorstCases(field=field, units=divided)
