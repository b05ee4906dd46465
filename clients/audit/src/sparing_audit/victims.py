"""The people of an audit's dataset: their adversaries, whether they are in the data, and what they would add."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparing_audit.adversaries import ADVERSARIES, ROWS, Act
from sparing_audit.laws import Booleans, Places
from sparing_audit.service import Table

ROWS_MAX: Final = 4
VICTIMS_MIN: Final = 8 * len(ADVERSARIES)
"""The fewest victims that an audit accepts. They show little: an audit needs thousands."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Victims:
    """The victims (n of them), by place. Each has a coordinate of its own, and a second one for a corrected record.

    A blank victim is registered with an empty record. The audit follows what this victim would add if it were in the
    data, and how much of that the audit's filter would let through. The adversary guesses whether that vector is
    present.
    """

    keys: tuple[str, ...]
    adversary: NDArray[np.str_]  # (n,) the name of each victim's
    is_in: Booleans  # (n,)
    rows: Places  # (n,) of the table of rows; 1 for victims in the table of people
    is_corrected: Booleans  # (n,) whether its record now has the second coordinate
    is_erased: Booleans  # (n,)

    def of(self, name: str) -> Places:
        """The places of an adversary's victims."""
        return np.flatnonzero(self.adversary == name)

    def groups(self) -> Iterator[tuple[str | None, Places]]:
        """The places of all victims, under no name, and of each adversary's, under its name."""
        yield None, np.arange(len(self.keys))
        for name in dict.fromkeys(self.adversary.tolist()):
            yield name, self.of(name)

    def in_table(self, table: Table) -> Places:
        """The places of the victims with records in a table."""
        return np.flatnonzero((self.adversary == ROWS) == (table == "rows"))

    def weights(self, places: Places, lengths: Places) -> tuple[Mapping[int, int], ...]:
        """The weights by which each victim adds its length. They differ for a corrected record."""
        return tuple(map(self._weights_of, places.tolist(), lengths.tolist()))

    def people(self, places: Sequence[int]) -> list[tuple[str, int | None]]:
        """These victims' rows for the table of people, each with its coordinate, or None for a blank victim."""
        second = len(self.keys) * self.is_corrected
        is_there = self.is_in & (self.adversary != ROWS)
        return [(self.keys[place], place + int(second[place]) if is_there[place] else None) for place in places]

    def all_rows(self) -> list[tuple[str, int]]:
        """All rows for the table of rows."""
        places = self.in_table("rows")
        return [
            (self.keys[place], place) for place in places[self.is_in[places]].tolist() for _ in range(self.rows[place])
        ]

    def _weights_of(self, place: int, length: int) -> Mapping[int, int]:
        if length == 0:
            return {}
        if self.adversary[place] != Act.CORRECT.value:
            return {place: length}
        other = place + len(self.keys)
        return {place: 2 * length, other: length} if self.is_corrected[place] else {place: length, other: -length}


def drawn_victims(count: int, rng: np.random.Generator, names: Iterable[str] = ADVERSARIES) -> Victims:
    """Divide victims evenly among the adversaries.

    A random half of each adversary's victims, rounded down, is in the data.

    Raises ValueError for fewer than VICTIMS_MIN.
    """
    if count < VICTIMS_MIN:
        raise ValueError(f"the audit needs at least {VICTIMS_MIN} victims")
    adversary, is_in = np.resize(list(names), count), np.zeros(count, dtype=np.bool_)
    for name in names:
        places = np.flatnonzero(adversary == name)
        is_in[rng.permutation(places)[: places.size // 2]] = True
    return Victims(
        keys=tuple(f"v{place}" for place in range(count)),
        adversary=adversary,
        is_in=is_in,
        rows=np.where(adversary == ROWS, rng.integers(2, ROWS_MAX + 1, count), 1),
        is_corrected=np.zeros(count, dtype=np.bool_),
        is_erased=np.zeros(count, dtype=np.bool_),
    )
