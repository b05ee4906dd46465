"""Columns of an upload whose values are not as declared: what the curator is told, and what is refused.

A few values outside a domain are clipped or made NULL, and counted. Many of them mean that the column is in another
unit or is spelled otherwise: the upload is refused unless it accepts the column by name.
"""

from collections import Counter
from collections.abc import Collection
from typing import Final

from service.engine.ingest import RowError, Rows, RowsProblem
from service.query.problems import quoted
from service.query.schema import Column, Table
from service.query.suggestions import did_you_mean

NOT_AS_DECLARED_MAX: Final = 0.05
"""The largest share of a column's values that may be clipped or made NULL without a refusal."""
NEAREST_MAX: Final = 3


def upload_warnings(table: Table, rows: Rows) -> tuple[str, ...]:
    """Sentences about probable mistakes in an upload; none holds a value of the upload."""
    found = [f"{column}: {words}" for column, words in _not_as_declared(table, rows).items()]
    if rows.without_zone:
        found.append(f"times without a zone count as UTC: {', '.join(rows.without_zone)}")
    return tuple(found)


def refuse_unaccepted(table: Table, rows: Rows, accepted: Collection[str]) -> None:
    """Raise RowsProblem if a column has many values that are not as declared and `accepted` does not name it.

    Raises RowsProblem too if `accepted` names an undeclared column.
    """
    for name in accepted:
        if name not in table.columns:
            raise RowsProblem.of(f"accept names a column that is not declared{did_you_mean(name, table.columns)}")
    errors = [
        RowError(row=None, column=column, message=f"{words}; to store them so, state accept={column}")
        for column, words in _not_as_declared(table, rows).items()
        if column not in accepted
    ]
    if errors:
        raise RowsProblem(tuple(errors))


def _not_as_declared(table: Table, rows: Rows) -> dict[str, str]:
    """A sentence for each column with more than a twentieth of its values out of bounds or no declared category."""
    found = {}
    for name, clipped in rows.clipped.items():
        column, undeclared = table.columns[name], rows.out_of_domain[name]
        known = len(rows.keys) - rows.nulls[name]
        if clipped + undeclared <= NOT_AS_DECLARED_MAX * known:
            continue
        number = f"{clipped + undeclared} of {known} values"
        if undeclared:
            most = Counter(rows.nearest.get(name, {})).most_common(NEAREST_MAX)
            nearest = [f"{count} of them {quoted(each)} but for case or blanks" for each, count in most]
            found[name] = ", ".join([f"{number} are no declared category and would be NULL", *nearest])
        else:
            found[name] = f"{number} {outside(column, 'are')} and would be moved to the nearer bound"
    return found


def outside(column: Column, verb: str = "is") -> str:
    """The words that say that a value is beyond the bounds of its column."""
    return f"{verb} outside {getattr(column, 'lower', '')} to {getattr(column, 'upper', '')}"
