"""Chosen rows in runs of bounded size: the unit in which vectors are made.

A run ends where an individual ends. Large pieces are cut and small ones are put together, so that how many runs there
are follows from how many rows there are, and memory has a public bound (`service.query.working_memory`). There is
always a run, if need be of no rows: a query that selects nothing goes the way of a query that selects one row.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import Codes, Integers
from service.engine.row_view import TableRows

Element = TypeVar("Element", bound=np.generic)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChosenRows:
    """Rows of a table that a query has chosen, k of its n."""

    table: TableRows
    rows: Integers  # (k,) increasing
    slots: Integers  # (k,) the individuals that the rows are of, not decreasing

    def parts(self, rows_max: int) -> "Iterable[ChosenRows]":
        """The piece cut as `cuts` says."""
        if self.rows.size <= rows_max:
            return (self,)
        return (self._part(part) for part in cuts(self.slots, rows_max))

    def slices(self, rows_max: int) -> "Iterator[ChosenRows]":
        """The piece cut after every `rows_max` rows, whosever they are."""
        return (self._part(slice(start, start + rows_max)) for start in range(0, self.rows.size, rows_max))

    def _part(self, part: slice) -> "ChosenRows":
        return ChosenRows(table=self.table, rows=self.rows[part], slots=self.slots[part])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """Pieces, at least one, that are worked on together; no individual is in two runs."""

    pieces: Sequence[ChosenRows]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(piece.rows.size for piece in self.pieces)

    @property
    def slots(self) -> Integers:
        """The individuals that the rows (k of them) are of, (k,), not decreasing."""
        return _joined([piece.slots for piece in self.pieces])

    def codes(self, names: Iterable[str]) -> dict[str, Codes]:
        """Some columns of the rows (k of them), (k,) each."""
        views = [piece.table.at(piece.rows) for piece in self.pieces]
        return {name: _joined([view[name] for view in views]) for name in names}


def runs(pieces: Iterable[ChosenRows], rows_max: int) -> Iterator[Run]:
    """All rows of the pieces in order, at most `rows_max` in a run, or one individual's if these are more.

    There is at least one piece, and no individual has rows in two of them.
    """
    held: list[ChosenRows] = []
    rows = 0
    for part in chain.from_iterable(piece.parts(rows_max) for piece in pieces):
        if part.rows.size == 0 and held:
            continue
        if rows > 0 and rows + part.rows.size > rows_max:
            yield Run(pieces=held)
            rows = 0
        held = [*held, part] if rows > 0 else [part]
        rows += part.rows.size
    yield Run(pieces=held)


def cuts(owners: NDArray[np.integer[Any]], rows_max: int) -> Iterator[slice]:
    """Slices of `owners` (k,), which do not decrease: each ends where an owner's rows end.

    A slice has at most `rows_max` rows, or one owner's if these are more; of no rows there is one slice.
    """
    start = 0
    while start + rows_max < owners.size:
        beyond = owners[start + rows_max]
        stop = int(np.searchsorted(owners, beyond))
        if stop <= start:
            stop = int(np.searchsorted(owners, beyond, side="right"))
        yield slice(start, stop)
        start = stop
    if start < owners.size or start == 0:
        yield slice(start, owners.size)


def _joined(parts: Sequence[NDArray[Element]]) -> NDArray[Element]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
