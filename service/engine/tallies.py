"""Tallies of events: for some columns, how often each individual has each combination of values, as squared norms.

A count of all events in groups, or a histogram of all events, is charged by these norms alone. Tallies are kept by
page, and made beside the queries after a query has asked for them, as indexes are. So queries need not sort the rows to
find the norms. The query then adds the rows one by one: entries of an individual at one coordinate add up.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.arrays import Codes, Integers, uniform
from service.core.release import Contributions
from service.core.renyi_filter import Touched
from service.engine.sparse_vectors import BrokenInvariant
from service.engine.terms import Groups, Unit
from service.query.columns import Coding

TALLY_ROWS: Final = 2**19
"""The most rows that are added up at a time; a single individual may have more."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tally:
    """The k individuals of a page who have rows without NULL, and these m rows."""

    owners: NDArray[np.uint16]  # (k,) slots within the page, increasing
    starts: Integers  # (k + 1,) where the rows of each begin among `rows`, and their number
    norms_squared: Integers  # (k,) the sum over combinations of values of the square of how often they occur
    rows: NDArray[np.uint32] | None  # (m,) increasing; None: every row of the page


def tally_of(owners: NDArray[np.uint16], columns: Mapping[str, Codes], codings: Mapping[str, Coding]) -> Tally:
    """The tally of n rows by `columns` (n,); `owners` (n,) do not decrease."""
    known = np.ones(owners.size, dtype=np.bool_)
    cells, size = np.zeros(owners.size, dtype=np.int64), 1
    for name, codes in columns.items():
        known &= codes <= codings[name].span
        cells *= codings[name].span + 1
        cells += codes.astype(np.int64)
        size *= codings[name].span + 1
    rows = None if known.all() else np.flatnonzero(known).astype(np.uint32)
    if rows is not None:
        owners, cells = owners[rows], cells[rows]
    keys = np.sort(owners.astype(np.int64) * size + cells)
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.diff(firsts, append=keys.size)
    begins = np.flatnonzero(np.diff(keys[firsts] // size, prepend=-1))
    starts = np.flatnonzero(np.diff(owners.astype(np.int64), prepend=-1))
    return Tally(
        owners=owners[starts],
        starts=np.append(starts, owners.size),
        norms_squared=np.add.reduceat(counts * counts, begins) if begins.size else np.empty(0, dtype=np.int64),
        rows=rows,
    )


def blocks_of(
    tally: Tally,
    columns: Mapping[str, Codes],
    *,
    first_slot: int,
    groups: Groups,
    term: Unit,
    dimension: int,
    norm_squared_max: int,
) -> Iterator[Contributions]:
    """The vectors of a page's individuals. Raises BrokenInvariant for a vector that is longer than the clip."""
    norms = tally.norms_squared * term.value**2
    if int(norms.max(initial=0)) > norm_squared_max:
        raise BrokenInvariant("a vector is longer than the declared bounds allow")
    for start, stop in _cuts(tally.starts):
        first, last = int(tally.starts[start]), int(tally.starts[stop])
        part = slice(first, last) if tally.rows is None else tally.rows[first:last]
        codes = {name: column[part] for name, column in columns.items()}
        lengths = np.diff(tally.starts[start : stop + 1])
        yield Contributions(
            touched=Touched(tally.owners[start:stop].astype(np.int64) + first_slot),
            norms_squared=norms[start:stop],
            dimension=dimension,
            owners=np.repeat(np.arange(stop - start), lengths),
            coordinates=term.coordinates(codes, groups.bases(codes, last - first)),
            values=uniform(term.value, last - first),
        )


def _cuts(starts: Integers) -> Iterator[tuple[int, int]]:
    """Runs of individuals with at most TALLY_ROWS rows together, or of one individual. There is at least one run."""
    count, start = starts.size - 1, 0
    while True:
        stop = int(np.searchsorted(starts, starts[start] + TALLY_ROWS, side="right")) - 1
        stop = min(max(stop, start + 1), count)
        yield start, stop
        start = stop
        if start >= count:
            return
