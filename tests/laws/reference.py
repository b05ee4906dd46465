"""The filter as the paper states it, in Fractions and dictionaries: slow, small, and independent of the service."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, isqrt
from typing import Any

from service.accounting.laplace_prices import ChordPrices, laplace_prices_of

UNIT = Fraction(1, 2**40)
SHARES = (0.55, 0.6, 0.8, 1.0)
"""The shares that the active have left, by a query's number; a count at the least sigma costs half of the budget."""


SQUARES: dict[str, Any] = {"moments": {"features": [{"of": {"col": "age"}}]}}
"""The square of each individual's age, a moment of one feature."""


def frequent(area: int) -> dict[str, Any]:
    """The condition of at least one own visit to an area."""
    visits = {"from": "visits", "where": {"eq": [{"col": "area"}, area]}, "count": {}, "clip": [0, 3]}
    return {"ge": [{"own": visits}, 1]}


def clipped_count(left: int, sigma: Fraction) -> tuple[int, int]:
    """Algorithm 3 for one individual in a count under the clip rule: (steps that are added, units that they cost).

    The whole individual or, where that costs more than the units `left`, the most whole steps that do not. It is 2^s
    steps long, for the largest s of 19 to 30 at which sigma is at most 2^28 steps.
    """
    whole = max(2**bits for bits in range(19, 31) if sigma * 2**bits <= 2**28)
    sigma_steps = sigma * whole
    steps = min(whole, isqrt(floor(max(left, 0) * UNIT * 2 * sigma_steps**2)))
    return steps, ceil(steps**2 / (2 * sigma_steps**2) / UNIT)


def gaussian_units(norm_squared: "int | Fraction", sigma: Fraction) -> int:
    """||v||^2 / (2 sigma^2) in units, rounded up."""
    return ceil(Fraction(norm_squared) / (2 * sigma**2) / UNIT)


def length_squared(values: Iterable[Any]) -> Any:
    """The squared L2 norm of one vector, of integers or fractions."""
    return sum(value * value for value in values)


def peak_squared(values: Iterable[int]) -> int:
    """The square of the most by which one vector changes the largest number of a sum."""
    return max((abs(value) for value in values), default=0) ** 2


def rounded_length_squared(values: Iterable[int], grid: Fraction) -> Fraction:
    """The square of the most by which one vector changes the norm of a sum in whole steps of a grid; 0 for none."""
    squared = length_squared(values)
    if squared == 0:
        return Fraction(0)
    steps_squared = squared / grid**2
    rounded = isqrt(ceil(steps_squared) - 1) + 1
    return ((rounded + 1) * grid) ** 2


def laplace_units(name: str) -> "Callable[[int, Fraction], int]":
    """The charge of one number under an accounting by its name, of its square and the scale.

    Pure differential privacy asks for |v| / b, rounded up. The others ask for a chord between certified knots, rounded
    up, and beyond the last knot for whole units from step to step. On a chord a service may be above it by less than
    2^-16 of a unit, for the few steps of these queries, which a charge here must not depend on.
    """
    prices = laplace_prices_of(name)

    def units(norm_squared: int, scale: Fraction) -> int:
        t = isqrt(norm_squared) / scale
        if not isinstance(prices, ChordPrices):
            return ceil(t / UNIT)
        knots = [Fraction(knot, 2**64) for knot in prices.knots]
        place = bisect_right(knots, t) - 1
        if place < 0:
            amount = prices.quadratic * t**2 / UNIT
        elif place + 1 < len(knots):
            part = (t - knots[place]) / (knots[place + 1] - knots[place])
            amount = (prices.at[place] + part * (prices.at[place + 1] - prices.at[place])) / 2**64
        else:
            first, step = ceil(knots[-1] * scale), prices.slope / scale / UNIT
            at_first = Fraction(prices.at[-1], 2**64) + (first - knots[-1] * scale) * step
            return ceil(at_first) + (isqrt(norm_squared) - first) * ceil(step)
        if ceil(amount) != ceil(amount + Fraction(1, 2**16)):
            raise ValueError(f"the definition leaves the charge of {norm_squared} at {scale} open")
        return ceil(amount)

    return units


@dataclass
class Person:
    """One individual: age, areas of its events, and an account in whole units."""

    age: int | None
    limit: int
    areas: list[int] = field(default_factory=list)
    spent: int = 0
    present: bool = True
    paused: bool = False
    has_been_left_out: bool = False
    is_short: bool = False  # by the last query under the clip rule
    first_tick: int = 0  # of a monitor, at which it was counted first


@dataclass
class ReferenceDataset:
    """Individuals by key. `ask` answers a query given as {key: {coordinate: integer}}.

    Each limit is lower than it was stated by the `reserve` of a monitor.
    """

    budget: int
    rule: str = "skip"
    reserve: int = 0
    people: dict[str, Person] = field(default_factory=dict)

    def join(self, key: str, age: int | None, limit: int | None) -> None:
        """Register an individual, or return one to the account that it has."""
        known = self.people.get(key)
        wanted = max((self.budget if limit is None else limit) - self.reserve, 0)
        if known is None:
            self.people[key] = Person(age=age, limit=wanted)
        else:
            known.age, known.areas, known.present = age, [], True
            known.limit = max(known.spent, min(known.limit, wanted))

    def ask(
        self,
        vector: "dict[str, dict[int, int]]",
        sigma: float,
        *,
        shortens: bool = False,
        units: Callable[[int, Fraction], int] = gaussian_units,
        priced: Callable[[Iterable[int]], Any] = length_squared,
    ) -> tuple[dict[str, int], set[str], dict[int, int]]:
        """Algorithm 2, or the set S_t of Corollary 4.7: (charges of the active, keys left out, the sum of the active).

        `units` is the charge of a squared norm, or of what `priced` gives for a vector in its place; with Laplace noise
        `sigma` is the scale. Paused individuals are left out too; under the drop rule no query touches them. A count of
        individuals that `shortens` is answered by Algorithm 3, and its sum is in steps.
        """
        charges: dict[str, int] = {}
        left_out: set[str] = set()
        total: dict[int, int] = {}
        for key, values in vector.items():
            norm_squared = priced(values.values())
            if norm_squared == 0:
                continue
            charge = units(norm_squared, Fraction(sigma))
            person, added = self.people[key], values
            if person.paused and self.rule == "drop":
                continue
            if shortens:
                steps, charge = clipped_count(person.limit - person.spent, Fraction(sigma))
                added = {0: steps}
            is_out = charge == 0 or person.paused or (person.has_been_left_out and self.rule == "drop")
            if is_out or person.spent + charge > person.limit:
                person.has_been_left_out = True
                left_out.add(key)
                continue
            person.spent += charge
            charges[key] = charge
            for coordinate, value in added.items():
                total[coordinate] = total.get(coordinate, 0) + value
        return charges, left_out, total

    def shorten(self, vector: "dict[str, dict[int, int]]", sigma: float, paid: dict[str, int]) -> None:
        """Algorithm 3, where `paid` says how much each key paid: refuse what it cannot have been, and spend it."""
        for key, person in self.people.items():
            norm_squared = length_squared(vector.get(key, {}).values())
            charge = ceil(Fraction(norm_squared) / (2 * Fraction(sigma) ** 2) / UNIT)
            left, units = person.limit - person.spent, paid.get(key, 0)
            person.is_short = False
            if norm_squared == 0 or (person.paused and self.rule == "drop"):
                assert units == 0
                continue
            is_out = person.paused or (person.has_been_left_out and self.rule == "drop")
            person.is_short = not is_out and charge > left
            assert units == 0 if is_out else units <= max(left, 0)
            assert is_out or person.is_short or units == charge
            person.spent += units
            person.has_been_left_out |= units == 0

    def tick(self, number: int, *, threshold: int, coefficients: Sequence[int]) -> dict[str, int]:
        """Tick `number` of a monitor: what each individual adds that is counted by now, by key.

        It is counted from the first tick on at which it has less than `threshold` units left, if it takes part.
        """
        added = {}
        for key, person in self.people.items():
            if not person.present or person.paused or person.limit == 0:
                continue
            if person.first_tick == 0 and person.limit - person.spent < threshold:
                person.first_tick = number
            if person.first_tick > 0:
                added[key] = coefficients[number - person.first_tick]
        return added

    def vectors(self, kind: str, number: int) -> dict[str, dict[int, int]]:
        """The vectors of one of the machine's seven kinds of queries, by key."""
        present = {key: person for key, person in self.people.items() if person.present}
        if kind == "active":
            enough = Fraction(SHARES[number]) * self.budget
            return {k: {0: 1} for k, p in present.items() if p.limit - p.spent >= enough}
        if kind in {"older", "clipped"}:
            return {k: {0: 1} for k, p in present.items() if p.age is not None and p.age >= number}
        if kind == "frequent":
            return {k: {0: 1} for k, p in present.items() if p.areas.count(number) > 0}
        if kind == "squares":
            return {k: {0: p.age**2} for k, p in present.items() if p.age}
        if kind == "visits":
            return {k: {0: p.areas.count(number)} for k, p in present.items()}
        return {k: {area: p.areas.count(area) for area in set(p.areas)} for k, p in present.items()}
