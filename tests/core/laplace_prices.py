"""Prices of Laplace noise by mpmath at 60 digits, from the definitions, and integers that bound them, in Python."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial

import mpmath

from service.accounting.laplace_prices import (
    ChordPrices,
    LinearPrices,
    concentrated_prices,
    gaussian_prices,
    renyi_prices,
)

REALS = mpmath.MPContext()
REALS.dps = 60
Price = Callable[[mpmath.mpf], mpmath.mpf]


def gaussian(t: mpmath.mpf) -> mpmath.mpf:
    """mu^2 / 2, where mu = -2 Phi^-1(e^(-t / 2) / 2), by a root that mpmath finds."""
    if t == 0:
        return REALS.zero
    wanted = -t / 2
    guess = REALS.sqrt(t) if t > 20 else t * REALS.sqrt(REALS.pi / 8)
    s = REALS.findroot(lambda x: REALS.log(REALS.erfc(x / REALS.sqrt(2))) - wanted, guess)
    return 2 * s**2


def concentrated(t: mpmath.mpf) -> mpmath.mpf:
    """T + e^-t - 1, by its series where it cancels."""
    with REALS.workdps(100):
        return t + REALS.exp(-t) - 1


def renyi(order: float) -> Price:
    """D(t) / a (Mironov 2017, Table II)."""

    def price(t: mpmath.mpf) -> mpmath.mpf:
        with REALS.workdps(120):
            a = REALS.mpf(order)
            moment = a / (2 * a - 1) * REALS.exp(t * (a - 1)) + (a - 1) / (2 * a - 1) * REALS.exp(-t * a)
            return REALS.log(moment) / (a - 1) / a

    return price


def pure(t: mpmath.mpf) -> mpmath.mpf:
    """T itself."""
    return t


ORDERS = [1.0001, 2.0, 8.0, 32.0, 1e6]
TABLES: dict[str, tuple[Callable[[], ChordPrices | LinearPrices], Price]] = {
    "pure": (LinearPrices, pure),
    "zcdp": (concentrated_prices, concentrated),
    "gdp": (gaussian_prices, gaussian),
    **{f"rdp {order:g}": (partial(renyi_prices, order), renyi(order)) for order in ORDERS},
}
CHORDS = sorted(set(TABLES) - {"pure"})


def by_the_segments(prices: ChordPrices, numbers: Iterable[int], scale: float) -> list[int]:
    """The charges of numbers of steps by the segments at a scale, found and worked out in Python's integers."""
    starts, offsets, slopes, shifts = prices(scale)[1].tolist()
    charges = []
    for steps in numbers:
        place = bisect_right(starts, steps) - 1
        factor = steps if place > 0 else steps * steps
        charges.append((offsets[place] + factor * slopes[place]) % 2**64 >> shifts[place])
    return charges


def chords(name: str) -> ChordPrices:
    """The table under a name of CHORDS. Raises TypeError for pure prices, which have none."""
    prices = TABLES[name][0]()
    if not isinstance(prices, ChordPrices):
        raise TypeError(f"{name} has no chords")
    return prices


def t_of(steps: int, scale: float) -> mpmath.mpf:
    """|v| / b to 60 digits."""
    exact = Fraction(steps) / Fraction(scale)
    return REALS.mpf(exact.numerator) / exact.denominator
