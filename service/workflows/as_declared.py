"""Columns of an upload whose values are not as declared: what the curator is told, and what is refused.

A few values out of a domain are counted. Where they are many, the column is in another unit or spelled otherwise, and
nothing is stored before somebody accepts it by name.
"""

from collections import Counter
from collections.abc import Collection
from typing import Final

from service.engine.ingest import RowError, Rows, RowsProblem
from service.query.problems import quoted
from service.query.schema import Column, Table
from service.query.suggestions import did_you_mean

NOT_AS_DECLARED_MAX: Final = 0.05
"""The share of a column's values that are clipped or made NULL without being refused."""
NEAREST_MAX: Final = 3


def upload_warnings(table: Table, rows: Rows) -> tuple[str, ...]:
    """Probable mistakes in sentences, none of which holds a value of the upload."""
    found = [f"{column}: {words}" for column, words in _not_as_declared(table, rows).items()]
    if rows.without_zone:
        found.append(f"times without a zone count as UTC: {', '.join(rows.without_zone)}")
    return tuple(found)


def refuse_unaccepted(table: Table, rows: Rows, accepted: Collection[str]) -> None:
    """Raise RowsProblem for columns of which many values are not as declared, unless they are named."""
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
    """A sentence for each column of which more than a twentieth of the values is clipped or out of the list."""
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
    """Words on a value beyond the bounds of its column."""
    return f"{verb} outside {getattr(column, 'lower', '')} to {getattr(column, 'upper', '')}"
