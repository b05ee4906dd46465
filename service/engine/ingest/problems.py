"""The problems of an upload: collected row by row, the first twenty reported, and all counted in groups.

A message never repeats a value of the upload: it may end in a log, and row and column are enough to find it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from service.arrays import Mask

PROBLEMS_MAX = 20
GROUPS_MAX = 100
FIRST_ROWS_MAX = 5  # of a group
BROKEN_ROWS_MAX = 10_000
"""A file with this many rows of the wrong length is taken not to be CSV at all."""
_NAME_CHARACTERS_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RowError:
    """One problem. `row` counts data rows from 1. `row` and `column` are None for a problem of the whole upload."""

    row: int | None
    column: str | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorGroup:
    """All problems of one kind in one column: the number of rows, and the first rows."""

    column: str | None
    message: str
    rows: int
    first_rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCounts:
    """The problems of an upload in numbers. They are not complete if reading was given up before the end."""

    rows_wrong: int = 0
    groups: tuple[ErrorGroup, ...] = ()
    is_complete: bool = False


class RowsProblem(ValueError):
    """The upload was refused and nothing of it was kept; `errors` are the first problems, in order of row."""

    def __init__(self, errors: tuple[RowError, ...], counts: ErrorCounts | None = None) -> None:
        """Keep the errors. A problem without `counts` concerns the upload as a whole."""
        self.errors, self.counts = errors, counts
        super().__init__("; ".join(_sentence(error) for error in errors))

    @classmethod
    def of(cls, message: str, *, row: int | None = None, column: str | None = None) -> "RowsProblem":
        """Make a refusal for a single problem."""
        return cls((RowError(row=row, column=column, message=message),))


@dataclass(slots=True)
class _Group:
    """A group that grows: its first problems, each with its place in the order of finding."""

    rows: int = 0
    errors: list[tuple[int, RowError]] = field(default_factory=list)


class Problems:
    """The problems found so far in one upload."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str | None, str], _Group] = {}
        self._found = 0
        self._first_broken_row: int | None = None
        self._broken_rows = 0
        self._wrong = np.zeros(0, dtype=np.bool_)  # by row, from row 1 on

    @property
    def is_hopeless(self) -> bool:
        """Tell whether so many rows are broken that reading on is of no use."""
        return self._broken_rows >= BROKEN_ROWS_MAX

    def add(self, message: str, *, row: int | None = None, column: str | None = None) -> None:
        """Note one problem."""
        if row is not None:
            self._mark(row - 1, np.ones(1, dtype=np.bool_))
        self._note(message, row=row, column=column, group=message)

    def add_broken_row(self, message: str, row: int) -> None:
        """Note a row whose length differs from the header's. The parser skips it, so later rows get wrong numbers."""
        if self._first_broken_row is None:
            self._first_broken_row = row
        self._broken_rows += 1
        self._note(message, row=row, column=None, group=message)

    def add_where(
        self,
        bad: Mask,
        message: str,
        *,
        column: str | None,
        rows_before: int = 0,
        of_row: Callable[[int], str] | None = None,
    ) -> None:
        """Note the rows where `bad` (n,) is True, in a batch that comes after `rows_before` rows.

        `of_row` gives a more exact message for one row, by the row's index in the batch, than the `message` of them
        all.
        """
        where = np.flatnonzero(bad)
        if where.size == 0:
            return
        self._mark(rows_before, bad)
        for index in where[:PROBLEMS_MAX].tolist():
            said = message if of_row is None else of_row(index)
            self._note(said, row=rows_before + index + 1, column=column, group=message)
        group = self._group(column, message)
        if group is not None:
            group.rows += max(where.size - PROBLEMS_MAX, 0)

    def first(self) -> tuple[RowError, ...]:
        """The errors that will be reported, in order of row; problems of the whole upload come first.

        Of several problems in one place only the first is reported, since it causes the others. If a row is wrong as a
        whole, its other problems are not reported.
        """
        found = sorted((each for group in self._groups.values() for each in group.errors), key=lambda each: each[0])
        known = [error for _, error in found if self._has_its_number(error)]
        whole_rows = {error.row for error in known if error.column is None}
        places: dict[tuple[int | None, str | None], RowError] = {}
        for error in known:
            if error.column is None or error.row is None or error.row not in whole_rows:
                places.setdefault((error.row, error.column), error)
        return tuple(sorted(places.values(), key=lambda error: error.row or 0)[:PROBLEMS_MAX])

    def counts(self) -> ErrorCounts:
        """All problems in numbers, the largest groups first."""
        groups = [
            ErrorGroup(
                column=column,
                message=message,
                rows=group.rows,
                first_rows=tuple(
                    error.row for _, error in group.errors if error.row is not None and self._has_its_number(error)
                )[:FIRST_ROWS_MAX],
            )
            for (column, message), group in self._groups.items()
        ]
        return ErrorCounts(
            rows_wrong=int(self._wrong.sum()) + self._broken_rows,
            groups=tuple(sorted(groups, key=lambda group: -group.rows)),
            is_complete=not self.is_hopeless,
        )

    def raise_if_any(self, *, lines: Mapping[int, int] | None = None) -> None:
        """Raise RowsProblem if anything is wrong. `lines` gives the line in the file for some rows."""
        errors = self.first()
        if errors:
            raise RowsProblem(tuple(_with_line(error, lines or {}) for error in errors), self.counts())

    def _has_its_number(self, error: RowError) -> bool:
        """Tell whether the error's row number is right: the parser has skipped no row before it."""
        broken = self._first_broken_row
        return broken is None or error.column is None or error.row is None or error.row < broken

    def _note(self, message: str, *, row: int | None, column: str | None, group: str) -> None:
        found = self._group(column, group)
        self._found += 1
        if found is None:
            return
        found.rows += row is not None
        if len(found.errors) < PROBLEMS_MAX:
            shown = _shown(column)
            found.errors.append((self._found, RowError(row=row, column=shown, message=message)))

    def _group(self, column: str | None, message: str) -> _Group | None:
        """The group; None where there are too many groups. `rows_wrong` counts rows without a group all the same."""
        place = _shown(column), message
        if place not in self._groups and len(self._groups) >= GROUPS_MAX:
            return None
        return self._groups.setdefault(place, _Group())

    def _mark(self, rows_before: int, bad: Mask) -> None:
        end = rows_before + bad.size
        if end > self._wrong.size:
            grown = np.zeros(max(end, 2 * self._wrong.size), dtype=np.bool_)
            grown[: self._wrong.size] = self._wrong
            self._wrong = grown
        self._wrong[rows_before:end] |= bad


def _shown(column: str | None) -> str | None:
    return None if column is None else column[:_NAME_CHARACTERS_MAX]


def _with_line(error: RowError, lines: Mapping[int, int]) -> RowError:
    if error.row is None or error.row not in lines:
        return error
    return replace(error, message=f"{error.message} (line {lines[error.row]} of the file)")


def _sentence(error: RowError) -> str:
    row = "" if error.row is None else f"row {error.row}"
    column = "" if error.column is None else f"column {error.column}"
    place = ", ".join(part for part in (row, column) if part)
    return f"{place}: {error.message}" if place else error.message
