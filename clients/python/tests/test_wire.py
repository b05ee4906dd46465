"""Values of several libraries as JSON, and keys as text."""

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from clients.python.tests.reply_documents import ACCOUNT
from sparing import Client
from sparing._wire import json_of, key_text
from sparing.testing import FakeService

FORMS: list[tuple[Any, object]] = [
    (np.int64(3), 3),
    (np.bool_(True), True),
    (np.float32(0.5), 0.5),
    (np.array([[1, 2]]), [[1, 2]]),
    (pd.Series([1.5]), [1.5]),
    (pd.Index(["a"]), ["a"]),
    (pd.Categorical(["a", "b"]), ["a", "b"]),
    (pl.Series([1]), [1]),
    (pa.array(["x"]), ["x"]),
    (range(2), [0, 1]),
    ({"a": 1}.keys(), ["a"]),
    (Decimal("19.61"), 19.61),
    (Decimal(5), 5),
    (dt.date(2026, 1, 2), "2026-01-02"),
    (dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC), "2026-01-02T03:00:00+00:00"),
    (pd.Timestamp("2026-01-02"), "2026-01-02"),
    (pd.Timestamp("2026-01-02T03:00"), "2026-01-02T03:00:00"),
    (np.datetime64("2026-01-02"), "2026-01-02"),
    (np.datetime64("2026-01-02T03:04:05", "ns"), "2026-01-02T03:04:05"),
    (np.array(["2026-01-02"], dtype="datetime64[ns]"), ["2026-01-02"]),
    (pd.NaT, None),
    (pd.NA, None),
    (np.datetime64("NaT"), None),
]


@pytest.mark.parametrize(("value", "expected"), FORMS, ids=lambda value: type(value).__name__)
def test_a_value_is_sent_as_what_it_is(value: Any, expected: object) -> None:
    """By itself, in a list, and as a member."""
    assert json.loads(json_of({"a": value, "b": [value]})) == {"a": expected, "b": [expected]}


@pytest.mark.parametrize("value", [{1, 2}, b"x", object(), Decimal("NaN"), 1j], ids=lambda value: type(value).__name__)
def test_what_has_no_form_is_named(value: Any) -> None:
    """A set has no order, which the public schema needs."""
    with pytest.raises(TypeError, match=f"a {type(value).__name__} has no form in JSON"):
        json_of([value])


@pytest.mark.parametrize("key", [7, np.int64(7), "7", np.str_("7")], ids=lambda value: type(value).__name__)
def test_a_key_is_a_text_or_an_integer(client: Client, script: Any, key: Any) -> None:
    """In every address and body that names an individual."""
    made = {"id": "p", "role": "individual", "name": "Ann", "key": "k"}
    script.steps = [
        httpx.Response(200, json=ACCOUNT | {"key": "7"}),
        httpx.Response(200, json={"rows": 1, "individuals": 0}),
        httpx.Response(204),
        httpx.Response(201, json=made),
        httpx.Response(201, json=[{"individual": "7", "api_key": "k"}]),
    ]
    client.datasets.account(dataset="shop", individual=key)
    client.datasets.correct(
        dataset="shop",
        individual=key,
        values={"age": np.int64(4), "joined": pd.Timestamp("2026-01-02"), "spend": np.nan},
    )
    client.datasets.erase(dataset="shop", individual=key)
    client.principals.create(role="individual", name="Ann", dataset="shop", individual=key)
    client.principals.create_for(dataset="shop", individuals=pd.Series([key]))

    addresses = [request.url.raw_path for request in script.requests]
    assert addresses[:3] == [b"/v1/datasets/shop/individual?individual=7"] * 3
    assert json.loads(script.bodies[1]) == {"age": 4, "joined": "2026-01-02", "spend": None}
    assert json.loads(script.bodies[3])["individual"] == "7"
    assert json.loads(script.bodies[4]) == ["7"]


@pytest.mark.parametrize("key", [7.0, True, None, b"7"])
def test_no_other_key_is_guessed_at(key: Any) -> None:
    """7.0 may be the key 7, or the text 7.0."""
    with pytest.raises(TypeError, match="text or an integer"):
        key_text(key)


def test_a_schema_may_come_from_a_frame(client: Client, script: Any) -> None:
    """Its categories and bounds are numpy's; the fake takes the same."""
    frame = pd.DataFrame({"cut": ["fair", "good"], "age": [1, 99]})
    columns = {
        "cut": {"type": "category", "categories": frame["cut"].unique()},
        "age": {"type": "integer", "lower": frame["age"].min(), "upper": frame["age"].max()},
    }
    tables = {"people": {"kind": "individuals", "key": "id", "columns": columns}}
    script.steps = [httpx.Response(422, json={"type": "urn:sparing:problem:invalid-request", "status": 422})]
    create: Callable[[], Any] = lambda: client.datasets.create(name="d", tables=tables, rho=1)  # noqa: E731
    with pytest.raises(Exception, match="422"):
        create()
    sent = json.loads(script.bodies[0])["tables"]["people"]["columns"]
    assert sent["cut"]["categories"] == ["fair", "good"]
    assert sent["age"] == {"type": "integer", "lower": 1, "upper": 99}
    with FakeService() as fake:
        fake.add_dataset("d", tables)
        assert fake.client().datasets.get(dataset="d").tables["people"] is not None
