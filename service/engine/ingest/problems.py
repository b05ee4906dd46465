"""The problems of an upload: collected row by row, the first twenty reported together.

A message never repeats a value of the upload: it may end in a log, and row and column are enough to find it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

PROBLEMS_MAX = 20
_NAME_CHARACTERS_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RowError:
    """One problem. `row` counts data rows from 1, None when it concerns the whole upload; `column` likewise."""

    row: int | None
    column: str | None
    message: str


class RowsProblem(ValueError):
    """The upload was refused and nothing of it was kept; `errors` are the first problems, in order of row."""

    def __init__(self, errors: tuple[RowError, ...]) -> None:
        self.errors = errors
        super().__init__("; ".join(_sentence(error) for error in errors))

    @classmethod
    def of(cls, message: str, *, row: int | None = None, column: str | None = None) -> "RowsProblem":
        """A single problem."""
        return cls((RowError(row=row, column=column, message=message),))


class Problems:
    """The problems found so far in one upload."""

    def __init__(self) -> None:
        self._errors: list[RowError] = []
        self._first_broken_row: int | None = None

    @property
    def is_full(self) -> bool:
        """Whether looking further would change nothing in the report."""
        return len(self._errors) >= PROBLEMS_MAX

    def add(self, message: str, *, row: int | None = None, column: str | None = None) -> None:
        """Note one problem."""
        shown = None if column is None else column[:_NAME_CHARACTERS_MAX]
        self._errors.append(RowError(row=row, column=shown, message=message))

    def add_broken_row(self, message: str, row: int) -> None:
        """Note a row that is not as long as the header. The parser skips it, so rows after it get wrong numbers."""
        if self._first_broken_row is None:
            self._first_broken_row = row
        self.add(message, row=row)

    def add_where(self, bad: NDArray[np.bool_], message: str, *, column: str, rows_before: int) -> None:
        """Note the rows where `bad` (n,) is True, of a batch that follows on `rows_before` rows."""
        for index in np.flatnonzero(bad)[:PROBLEMS_MAX]:
            self.add(message, row=rows_before + int(index) + 1, column=column)

    def first(self) -> tuple[RowError, ...]:
        """The errors that will be reported, in order of row; problems of the whole upload come first.

        Of one place the first problem is the cause of the others, and a row that is wrong as a whole says nothing more.
        """
        broken = self._first_broken_row
        known = [e for e in self._errors if broken is None or e.column is None or e.row is None or e.row < broken]
        whole_rows = {error.row for error in known if error.column is None}
        places: dict[tuple[int | None, str | None], RowError] = {}
        for error in known:
            if error.column is None or error.row is None or error.row not in whole_rows:
                places.setdefault((error.row, error.column), error)
        return tuple(sorted(places.values(), key=lambda error: error.row or 0)[:PROBLEMS_MAX])

    def raise_if_any(self, *, lines: Mapping[int, int] | None = None) -> None:
        """Refuse the upload if anything is wrong. `lines` gives the file's line of a row where that is known."""
        errors = self.first()
        if errors:
            raise RowsProblem(tuple(_with_line(error, lines or {}) for error in errors))


def _with_line(error: RowError, lines: Mapping[int, int]) -> RowError:
    if error.row is None or error.row not in lines:
        return error
    return replace(error, message=f"{error.message} (line {lines[error.row]} of the file)")


def _sentence(error: RowError) -> str:
    row = "" if error.row is None else f"row {error.row}"
    column = "" if error.column is None else f"column {error.column}"
    place = ", ".join(part for part in (row, column) if part)
    return f"{place}: {error.message}" if place else error.message
