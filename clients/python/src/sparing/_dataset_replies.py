"""Datasets as a server describes them, whose public schema is checked: it is read in many places."""

from collections.abc import Mapping
from typing import Final

from sparing._calls import Call
from sparing._decode import read
from sparing._errors import misread
from sparing._models import Dataset
from sparing._requests import Request

_SCALARS: Final = (str, int, float, type(None))


def dataset_of(reply: object) -> Dataset:
    """The dataset that a reply describes. Raises APIReplyError, also for tables that are no schema."""
    dataset = read(Dataset, reply)
    with misread("the reply is not a Dataset"):
        for name, table in dataset.tables.items():
            _check_table(name, table)
    return dataset


def described(request: Request) -> Call[Dataset]:
    """One request, whose reply describes a dataset."""
    return dataset_of((yield request))


def _check_table(name: str, table: object) -> None:
    """A kind, a key and columns; a table of events also says how many rows an individual has."""
    if not isinstance(table, Mapping) or not isinstance(table.get("columns"), Mapping):
        raise TypeError(f"the table {name} has no columns")
    if not isinstance(table.get("kind"), str) or not isinstance(table.get("key"), str):
        raise TypeError(f"the table {name} has no kind or no key")
    for column, declared in table["columns"].items():
        if not isinstance(declared, Mapping) or not isinstance(declared.get("type", ""), str):
            raise TypeError(f"the column {column} is not declared")
        _check_domain(column, declared)


def _check_domain(column: str, declared: Mapping[str, object]) -> None:
    """Categories are a list of values; a size, bounds and a width are single ones."""
    categories = declared.get("categories", ())
    if categories is not None and not (
        isinstance(categories, list | tuple) and all(isinstance(each, _SCALARS) for each in categories)
    ):
        raise TypeError(f"the categories of the column {column} are no list")
    size = declared.get("size")
    if size is not None and (not isinstance(size, int) or isinstance(size, bool)):
        raise TypeError(f"the size of the column {column} is no whole number")
    if ("lower" in declared) != ("upper" in declared):
        raise LookupError(f"the column {column} has one bound")
    if not all(isinstance(declared.get(name), _SCALARS) for name in ("lower", "upper", "width")):
        raise TypeError(f"the bounds of the column {column} are lists")
