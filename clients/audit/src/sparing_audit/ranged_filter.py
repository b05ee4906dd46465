"""The audit's filter where a price is a range: each spent total lies between two sums, and a decision may be open.

The audit asks no query whose outcome would be open, so that a service may round its prices as it documents, and nothing
else is left to it.
"""

from collections.abc import Sequence
from enum import Enum

from sparing_audit.accountings import Range

__all__ = ["Fate", "RangedFilter"]


class Fate(Enum):
    """The outcome of one query for one individual."""

    CHARGED = "charged"
    LEFT_OUT = "left out"
    OPEN = "open"  # within the rounding of prices


class RangedFilter:
    """Accounts by place, all with one limit in units.

    Attributes (each a list by place): `least` and `most`, between which a spent total is; `charged` and `left_out`,
    numbers of queries.
    """

    def __init__(self, limit: int, people: int, *, is_dropping: bool) -> None:
        """Begin with nothing spent; `is_dropping` is the rule that leaves out for good."""
        self.limit = limit
        self.least, self.most = [0] * people, [0] * people
        self.charged, self.left_out = [0] * people, [0] * people
        self._is_dropping = is_dropping

    def fate(self, place: int, charge: Range) -> Fate:
        """The outcome of a query for an individual, if it is certain."""
        if (self._is_dropping and self.left_out[place] > 0) or self.least[place] + charge.least > self.limit:
            return Fate.LEFT_OUT
        return Fate.CHARGED if self.most[place] + charge.most <= self.limit else Fate.OPEN

    def decide(self, places: Sequence[int], charges: Sequence[Range]) -> list[bool]:
        """Charge individuals or leave them out; whether each is charged. Raises ValueError where that is open."""
        return [self._decide(place, charge) for place, charge in zip(places, charges, strict=True)]

    def _decide(self, place: int, charge: Range) -> bool:
        match self.fate(place, charge):
            case Fate.OPEN:
                raise ValueError(f"place {place}: the rounding of a price decides")
            case Fate.LEFT_OUT:
                self.left_out[place] += 1
                return False
        self.least[place] += charge.least
        self.most[place] += charge.most
        self.charged[place] += 1
        return True
