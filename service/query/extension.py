"""Extensions of a schema: categories, columns and tables may be added, and capacities raised; nothing else may change.

Whatever an earlier schema admitted keeps its meaning: a category keeps its place, and with it its code and its label's
place in a vector. Of individuals and rows that were there before, a new column holds NULL.
"""

from collections.abc import Iterator

from service.query.problems import FieldError
from service.query.schema import BudgetColumn, CategoryColumn, Column, DataColumn, EventsTable, Schema, Table

__all__ = ["extension_errors"]


def extension_errors(old: Schema, new: Schema, *, capacity_old: int, capacity_new: int) -> list[FieldError]:
    """The fields in which `new`, for at most `capacity_new` individuals, is no extension of `old`."""
    errors = []
    if capacity_new < capacity_old:
        errors.append(FieldError(field="capacity", message=f"cannot be lowered; it is {capacity_old}"))
    for name, table in old.tables.items():
        place = f"tables.{name}"
        extended = new.tables.get(name)
        if extended is None:
            errors.append(FieldError(field=place, message="cannot be removed"))
        else:
            errors += _table_errors(place, table, extended)
            is_smaller = extended.rows_max(capacity_new) < table.rows_max(capacity_old)
            if is_smaller and isinstance(table, EventsTable):
                errors.append(FieldError(field=f"{place}.rows_capacity", message="cannot be lowered"))
    return errors


def _table_errors(place: str, old: Table, new: Table) -> Iterator[FieldError]:
    fixed = ["kind", "key"]
    if isinstance(old, EventsTable):
        fixed += ["unknown_individuals", "rows_per_individual"]
    for name in fixed:
        if getattr(old, name) != getattr(new, name, None):
            yield FieldError(field=f"{place}.{name}", message=f"cannot be changed; it is {getattr(old, name)}")
    for name, column in old.columns.items():
        where = f"{place}.columns.{name}"
        extended = new.columns.get(name)
        if extended is None:
            yield FieldError(field=where, message="cannot be removed")
        elif not _extends(column, extended):
            yield FieldError(field=where, message=_message(column))
    for name, column in new.columns.items():
        if name not in old.columns and isinstance(column, BudgetColumn):
            yield FieldError(field=f"{place}.columns.{name}", message="a column of type budget cannot be added")


def _extends(old: Column | DataColumn, new: Column | DataColumn) -> bool:
    if not (isinstance(old, CategoryColumn) and isinstance(new, CategoryColumn)):
        return old == new
    if old.categories is None or new.categories is None:
        return old.categories is new.categories and (new.size or 0) >= (old.size or 0)
    return new.categories[: len(old.categories)] == old.categories


def _message(column: Column | DataColumn) -> str:
    if not isinstance(column, CategoryColumn):
        return "cannot be changed"
    if column.categories is None:
        return f"only its size can change, and not below {column.size}"
    return "categories can only be added behind those that are there, which keep their order"
