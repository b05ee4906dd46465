"""A figure of a paper: a table of numbers, made from a request, and a drawing of the table."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial, wraps
from typing import Final, ParamSpec, TypeVar

from matplotlib.figure import Figure

from sparing_papers.counted import Served, served
from sparing_papers.labelled import Labelled

__all__ = ["DELTA", "Cell", "PaperFigure", "Request", "Rows", "Table", "tabulated"]

DELTA: Final = Decimal("1e-5")
"""That of every promise here, but for figure 1 of Koskela et al."""

Cell = str | int | float
Rows = Iterator[tuple[Cell, ...]]
T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells under a header. A drawing reads nothing else."""

    header: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]

    def series(self, *key: Cell) -> list[tuple[float, ...]]:
        """The numbers after a key, row by row. Raises KeyError if no row begins with the key."""
        found = [row[len(key) :] for row in self.rows if row[: len(key)] == key]
        if not found:
            raise KeyError(key)
        return [tuple(float(cell) for cell in row) for row in found]

    def columns(self, *key: Cell) -> list[tuple[float, ...]]:
        """The numbers after a key, column by column. Raises KeyError if no row begins with the key."""
        return list(zip(*self.series(*key), strict=True))


def tabulated(*header: str) -> Callable[[Callable[P, Iterable[tuple[Cell, ...]]]], Callable[P, Table]]:
    """Turns a function that yields rows into one that returns the table of them, under this header."""

    def decorated(rows: Callable[P, Iterable[tuple[Cell, ...]]]) -> Callable[P, Table]:
        @wraps(rows)
        def table(*args: P.args, **kwargs: P.kwargs) -> Table:
            return Table(header=header, rows=list(rows(*args, **kwargs)))

        return table

    return decorated


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The wishes of a reader, and the function to which progress is reported."""

    seed: int
    quick: bool  # coarser, for a test: seconds instead of minutes
    digits: Labelled
    tell: Callable[[float], None] = field(default=lambda _: None)  # the share that is done
    served: Callable[[], AbstractContextManager[Served]] = served  # a running service, of its own or shared

    def parts(self, items: Sequence[T]) -> Iterator[tuple["Request", T]]:
        """Each item with the request for it, whose progress is an equal part of this one's."""
        for number, item in enumerate(items):
            part = replace(self, tell=partial(self._tell_of, number, len(items)))
            yield part, item
            part.tell(1)

    def _tell_of(self, number: int, parts: int, share: float) -> None:
        self.tell((number + share) / parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperFigure:
    """One figure or table of a paper."""

    name: str  # of its files
    title: str  # with the place in the paper
    compute: Callable[[Request], Table]
    draw: Callable[[Figure, Table], None]
    size: tuple[float, float] = (7.2, 4.2)  # inches
    needs_digits: bool = False
    keeps_numbers: bool = False  # whether --docs also keeps the CSV, because no seed repeats it
    share: float = 1.0  # of the time that a plain curve takes, for the bar of progress
