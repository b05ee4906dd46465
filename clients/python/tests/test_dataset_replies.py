"""The public schema of a dataset is checked when it comes."""

from typing import Any

import pytest

from clients.python.tests.reply_documents import DATASET
from sparing import APIReplyError
from sparing._dataset_replies import dataset_of

TABLE: dict[str, Any] = {"kind": "individuals", "key": "id", "columns": {}}


def of_column(**declared: Any) -> dict[str, Any]:
    """Tables with such a column."""
    return {"people": TABLE | {"columns": {"a": {"type": "category", **declared}}}}


LIES: dict[str, Any] = {
    "no tables": [],
    "a table that is a list": {"people": []},
    "a table without columns": {"people": {"kind": "individuals", "key": "id"}},
    "columns in a list": {"people": TABLE | {"columns": []}},
    "no key": {"people": TABLE | {"key": None}},
    "a column that is a text": {"people": TABLE | {"columns": {"a": "integer"}}},
    "a type that is a list": of_column(type=[]),
    "categories in an object": of_column(categories={}),
    "a category that is a list": of_column(categories=[[]]),
    "a size that is a text": of_column(size="9"),
    "one bound": of_column(lower=0),
    "a bound that is a list": of_column(lower=[], upper=1),
    "a bound without end": of_column(lower=-1e999, upper=1),
}


def test_a_schema_is_taken() -> None:
    """With members that are not known."""
    tables = of_column(categories=["x"], lower=0, upper=1.5, width=0.5, size=3, other=[[1]])
    assert dataset_of(DATASET | {"tables": tables}).tables == tables


@pytest.mark.parametrize("tables", LIES.values(), ids=LIES)
def test_what_is_no_schema_is_refused(tables: Any) -> None:
    """Before a query is planned or a table printed by it."""
    with pytest.raises(APIReplyError, match="the reply is not a Dataset"):
        dataset_of(DATASET | {"tables": tables})
