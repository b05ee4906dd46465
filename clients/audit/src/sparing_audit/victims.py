"""The people of an audit's dataset: whose victims they are, whether they are in the data, and what they would add."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparing_audit.adversaries import ADVERSARIES, Act, Adversary
from sparing_audit.service import Table

__all__ = ["ROWS_MAX", "VICTIMS_MIN", "Places", "Victims", "drawn_victims"]

ROWS_MAX: Final = 4
VICTIMS_MIN: Final = 8 * len(ADVERSARIES)
"""So few say little; the audit needs thousands."""

Places = NDArray[np.int64]
_NAMES: Final = tuple(ADVERSARIES)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Victims:
    """The victims (n of them), by place. Each has a coordinate of its own, and a second one for a corrected record.

    A blank victim is registered with an empty record. The audit follows what it would add if it were in the data, and
    what of that its filter would let through: that is the vector whose presence the adversary guesses.
    """

    keys: tuple[str, ...]
    adversary: Places  # (n,) the place of its adversary in ADVERSARIES
    is_in: NDArray[np.bool_]  # (n,)
    rows: Places  # (n,) of the table of rows; 0 for victims in the table of people
    is_corrected: NDArray[np.bool_]  # (n,) whether its record now has the second coordinate
    is_erased: NDArray[np.bool_]  # (n,)

    def of(self, name: str) -> Places:
        """The places of an adversary's victims."""
        return np.flatnonzero(self.adversary == _NAMES.index(name))

    def adversary_of(self, place: int) -> tuple[str, Adversary]:
        """The adversary of a victim, with its name."""
        name = _NAMES[self.adversary[place]]
        return name, ADVERSARIES[name]

    def in_table(self, table: Table) -> Places:
        """The places of the victims with records in a table."""
        return np.flatnonzero((self.rows > 0) == (table == "rows"))

    def weights(self, places: Places, lengths: Places) -> list[Mapping[int, int]]:
        """The weights at which each victim adds its length: of a corrected record another than of the old one."""
        return [
            self._weights_of(place, length) for place, length in zip(places.tolist(), lengths.tolist(), strict=True)
        ]

    def people(self, places: Sequence[int]) -> dict[str, int | None]:
        """The values of the table of people for these victims: a coordinate, or None for a blank one."""
        return {self.keys[place]: self._value(place) for place in places}

    def all_rows(self) -> list[tuple[str, int]]:
        """The rows of the table of rows."""
        return [
            (self.keys[place], place)
            for place in np.flatnonzero(self.is_in & (self.rows > 0)).tolist()
            for _ in range(self.rows[place])
        ]

    def _value(self, place: int) -> int | None:
        if not self.is_in[place] or self.rows[place] > 0:
            return None
        return place + len(self.keys) * int(self.is_corrected[place])

    def _weights_of(self, place: int, length: int) -> Mapping[int, int]:
        if length == 0:
            return {}
        if self.adversary_of(place)[1].act is not Act.CORRECT:
            return {place: length}
        other = place + len(self.keys)
        return {place: 2 * length, other: length} if self.is_corrected[place] else {place: length, other: -length}


def drawn_victims(count: int, rng: np.random.Generator) -> Victims:
    """So many victims, evenly among the adversaries; half of each adversary's are drawn to be blank.

    Raises ValueError for fewer than VICTIMS_MIN.
    """
    if count < VICTIMS_MIN:
        raise ValueError(f"the audit needs at least {VICTIMS_MIN} victims")
    adversary = np.arange(count) % len(ADVERSARIES)
    in_rows = np.array([ADVERSARIES[name].table == "rows" for name in _NAMES])[adversary]
    return Victims(
        keys=tuple(f"v{place}" for place in range(count)),
        adversary=adversary,
        is_in=_half_of_each(adversary, rng),
        rows=np.where(in_rows, rng.integers(2, ROWS_MAX + 1, count), 0),
        is_corrected=np.zeros(count, dtype=np.bool_),
        is_erased=np.zeros(count, dtype=np.bool_),
    )


def _half_of_each(adversary: Places, rng: np.random.Generator) -> NDArray[np.bool_]:
    """A random half of each adversary's victims, rounded down."""
    is_in = np.zeros(adversary.size, dtype=np.bool_)
    for number in range(len(ADVERSARIES)):
        places = np.flatnonzero(adversary == number)
        is_in[rng.permutation(places)[: places.size // 2]] = True
    return is_in
