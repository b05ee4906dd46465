"""The audit's own filter: Algorithm 2 of Feldman and Zrnic (2021) for one account after another, in exact fractions.

A vector of an individual is one number here, its own coordinate's, in whole grid steps. Every total is a whole number
of units of 2^-40 rho; a charge is ||v||^2 / (2 sigma^2) rho, rounded up to units.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sparing_audit.service import UNITS_PER_RHO

__all__ = ["Filter", "Outcome", "charge_units", "longest_within", "price_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The fate of one individual's vector in one query."""

    counted: int  # what was added, in steps
    units: int  # what was charged
    is_left_out: bool = False  # there was something to add, and it could not be paid for
    is_shortened: bool = False  # less was added than there was


UNTOUCHED = Outcome(counted=0, units=0)
LEFT_OUT = Outcome(counted=0, units=0, is_left_out=True)


def price_of(sigma_steps: float) -> Fraction:
    """Units for a squared step at a noise of `sigma_steps` grid steps: exact, as the double is a fraction."""
    return Fraction(UNITS_PER_RHO) / (2 * Fraction(sigma_steps) ** 2)


def charge_units(length: int, price: Fraction) -> int:
    """The charge of a vector of one coordinate with so many steps: rounded up, so that nothing is given away."""
    return -(-length * length * price.numerator // price.denominator)


def longest_within(room_units: int, price: Fraction) -> int:
    """The longest whole vector whose charge fits the room, in steps: the inverse of `charge_units`.

    The charge of a squared length R fits exactly when R * price does, as the room is a whole number.
    """
    return math.isqrt(max(room_units, 0) * price.denominator // price.numerator)


class Filter:
    """The accounts of all individuals, by place: spent totals, limits and counters.

    Attributes (each a list by place): `spent` and `limits` in units; `charged` and `left_out`, numbers of queries;
    `is_paused`.
    """

    def __init__(self, limits: Sequence[int], *, is_dropping: bool) -> None:
        """Begin with nothing spent; `is_dropping` is the rule that leaves out for good."""
        self.limits = list(limits)
        self.spent = [0] * len(self.limits)
        self.charged = [0] * len(self.limits)
        self.left_out = [0] * len(self.limits)
        self.is_paused = [False] * len(self.limits)
        self._is_dropping = is_dropping

    def room(self, place: int) -> int:
        """The units that the next query may charge; nothing during a pause, or for an individual that is out."""
        if self.is_paused[place] or self.is_out(place):
            return 0
        return max(self.limits[place] - self.spent[place], 0)

    def is_out(self, place: int) -> bool:
        """Tell whether the rule leaves the individual out for good."""
        return self._is_dropping and self.left_out[place] > 0

    def decide(self, place: int, length: int, price: Fraction, *, shortens: bool) -> Outcome:
        """Charge an individual for a vector of `length` steps, shortened or whole, or leave it out.

        An individual with nothing to add is untouched. One that pauses is left out under skip, and untouched where
        being left out is for good, or its pause would be too.
        """
        if length == 0 or (self.is_paused[place] and self._is_dropping):
            return UNTOUCHED
        room = self.room(place)
        counted, units = abs(length), charge_units(length, price)
        if units > room and shortens:
            counted = min(counted, longest_within(room, price))
            units = charge_units(counted, price)
        if counted == 0 or units > room:
            self.left_out[place] += 1
            return LEFT_OUT
        self.spent[place] += units
        self.charged[place] += 1
        signed, is_shortened = counted if length > 0 else -counted, counted < abs(length)
        return Outcome(counted=signed, units=units, is_shortened=is_shortened)
