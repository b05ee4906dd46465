"""The audit's own filter: Algorithm 2 of Feldman and Zrnic (2021) for one account after another, in whole units.

An individual's vector is one number here, at its own coordinate, in whole grid steps. A price of Laplace noise is a
range, and so is a spent total. The audit asks no query whose outcome depends on where in the range a price lies. So a
service may round prices as it documents, and must agree in everything else.
"""

from dataclasses import dataclass
from typing import Literal

from sparing_audit.noise import NOTHING, Gaussian, Law, Range


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one query for one individual's vector, in the words of a receipt."""

    counted: int  # what was added, in steps
    charge: Range
    words: Literal["charged", "shortened", "left_out", "untouched"]


UNTOUCHED = Outcome(0, NOTHING, "untouched")
LEFT_OUT = Outcome(0, NOTHING, "left_out")


class Filter:
    """The accounts of all individuals, by place: spent totals, limits and counters.

    Attributes (each a list by place): `spent`, ranges of units; `limits`, in units; `charged` and `left_out`, numbers
    of queries; `is_paused`.
    """

    def __init__(self, limit: int, people: int, *, is_dropping: bool) -> None:
        """Begin with nothing spent. `is_dropping` is the rule that leaves an individual out for good."""
        self.limits, self.spent = [limit] * people, [NOTHING] * people
        self.charged, self.left_out = [0] * people, [0] * people
        self.is_paused = [False] * people
        self._is_dropping = is_dropping

    def room(self, place: int) -> Range:
        """The units that the next query may charge; none to an individual that pauses or is left out for good."""
        if self.is_paused[place] or (self._is_dropping and self.left_out[place] > 0):
            return NOTHING
        limit, spent = self.limits[place], self.spent[place]
        return Range(max(limit - spent.most, 0), max(limit - spent.least, 0))

    def decide(self, place: int, length: int, law: Law, *, shortens: bool = False) -> Outcome:
        """Charge an individual for a vector of `length` steps, shortened or whole, or leave it out.

        An individual with nothing to add is untouched. A paused individual is left out under `skip`, and untouched
        under `drop`, where its pause would otherwise leave it out for good. Raises ValueError where the rounding of a
        price decides.
        """
        if length == 0 or (self.is_paused[place] and self._is_dropping):
            return UNTOUCHED
        room, counted, charge = self.room(place), abs(length), law.charge(length)
        if shortens and isinstance(law, Gaussian):
            counted = min(counted, law.longest(room.least))
            charge = law.charge(counted)
        if counted == 0 or charge.least > room.most:
            self.left_out[place] += 1
            return LEFT_OUT
        if charge.most > room.least:
            raise ValueError(f"place {place}: the rounding of a price decides")
        self.spent[place] += charge
        self.charged[place] += 1
        signed = counted if length > 0 else -counted
        return Outcome(signed, charge, "charged" if signed == length else "shortened")
