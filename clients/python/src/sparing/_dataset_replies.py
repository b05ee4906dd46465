"""Datasets as a server describes them. The public schema is checked here, as many places read it."""

from collections.abc import Mapping
from typing import Final

from sparing._calls import Call
from sparing._decode import read
from sparing._errors import misread
from sparing._models import Dataset
from sparing._requests import Request

_SCALARS: Final = (str, int, float, type(None))


def dataset_of(reply: object) -> Dataset:
    """The dataset that a reply describes. Raises APIReplyError for a malformed dataset or schema."""
    dataset = read(Dataset, reply)
    with misread("the reply is not a Dataset"):
        for name, table in dataset.tables.items():
            _check_table(name, table)
    return dataset


def described(request: Request) -> Call[Dataset]:
    """The dataset that the reply to one request describes."""
    return dataset_of((yield request))


def _check_table(name: str, table: object) -> None:
    """Raise TypeError or LookupError unless a table has a kind, a key and well-formed columns."""
    if not isinstance(table, Mapping) or not isinstance(table.get("columns"), Mapping):
        raise TypeError(f"the table {name} has no columns")
    if not isinstance(table.get("kind"), str) or not isinstance(table.get("key"), str):
        raise TypeError(f"the table {name} has no kind or no key")
    for column, declared in table["columns"].items():
        if not isinstance(declared, Mapping) or not isinstance(declared.get("type", ""), str):
            raise TypeError(f"the column {column} is not declared")
        _check_domain(column, declared)


def _check_domain(column: str, declared: Mapping[str, object]) -> None:
    """Raise TypeError or LookupError unless categories are a list, and a size, bounds and a width are single values."""
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
