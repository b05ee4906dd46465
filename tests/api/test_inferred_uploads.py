"""A proposal for a file or a frame, once it is confirmed, registers, uploads, and gives every value back."""

import csv
import io
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import httpx
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.api.app import create_app
from sparing import Client, infer_schema
from tests.api.twins import quiet_entropy
from tests.api.world import answer_of, empty_replica
from tests.rotation import times

NUMBERS = itertools.count()
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WORDS = ["Oslo", "Ålesund", "L'Aquila", 'the "eyes"', "a, b; c", "x|y", "02139", "007", "n/a?"]
KINDS = ["integer", "real", "boolean", "category", "date", "datetime"]
Rows = dict[str, list[Any]]


def values(kind: str) -> st.SearchStrategy[Any]:
    """Values of a column of a kind, as Python has them."""
    whole = st.integers(-(10**9), 10**9)
    return {
        "integer": whole,
        "real": whole.map(lambda number: number / 1000),
        "boolean": st.booleans(),
        "category": st.sampled_from(WORDS),
        "date": st.integers(0, 40_000).map(lambda days: (EPOCH + timedelta(days=days)).date()),
        "datetime": st.integers(0, 2**31).map(lambda seconds: EPOCH + timedelta(seconds=seconds)),
    }[kind]


@st.composite
def tables(draw: st.DrawFn) -> Rows:
    """Rows by column: a key that does not repeat, and columns of one kind each, with missing values."""
    count = draw(st.integers(2, 6))
    kinds = draw(st.lists(st.sampled_from(["integer", "real", "boolean", "category", "date", "datetime"]), max_size=5))
    names = draw(
        st.lists(st.sampled_from(["Age", "age", "select", "Paid €", "x"]), min_size=5, max_size=5, unique=True)
    )
    columns = {
        name: draw(st.lists(values(kind) | st.none(), min_size=count, max_size=count))
        for name, kind in zip(names, kinds, strict=False)
    }
    return {"Customer ID": [f"k{number}" for number in range(count)], **columns}


def written(value: Any, *, comma: bool = False) -> str:
    """A value as a file has it."""
    if isinstance(value, float) and comma:
        return repr(value).replace(".", ",")
    return value.isoformat() if isinstance(value, date) else "" if value is None else str(value)


def as_csv(rows: Rows, delimiter: str, *, comma: bool = False) -> bytes:
    """A file as spreadsheets write it."""
    file = io.StringIO()
    lines = zip(*rows.values(), strict=True)
    writer = csv.writer(file, delimiter=delimiter)
    writer.writerow(rows)
    writer.writerows([[written(value, comma=comma) for value in line] for line in lines])
    return file.getvalue().encode()


def as_ndjson(rows: Rows) -> bytes:
    """An object a line."""
    lines = (dict(zip(rows, line, strict=True)) for line in zip(*rows.values(), strict=True))
    return "\n".join(json.dumps(line, default=written) for line in lines).encode()


def as_parquet(rows: Rows) -> bytes:
    """A file of columns."""
    file = io.BytesIO()
    pq.write_table(pa.table(rows), file)
    return file.getvalue()


FORMS: Mapping[str, Callable[[Rows], Any]] = {
    "commas": lambda rows: as_csv(rows, ","),
    "semicolons and decimal commas": lambda rows: as_csv(rows, ";", comma=True),
    "tabs": lambda rows: as_csv(rows, "\t"),
    "NDJSON": as_ndjson,
    "Parquet": as_parquet,
    "pandas": pd.DataFrame,
    "pandas with its own missing values": lambda rows: pd.DataFrame(rows).convert_dtypes(),
    "polars": lambda rows: pl.DataFrame(rows, strict=False),
}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A curator of a service in memory."""
    replica = empty_replica(entropy=quiet_entropy())
    app = create_app(replica, upload_bytes_max=2**20)
    _, key = replica.principals.create(role="curator", name="curator")
    transport = httpx.MockTransport(lambda request: answer_of(app, request))
    with Client(base_url="http://sparing", api_key=key, transport=transport, environ={}) as made:
        yield made
    replica.close()


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=times(6, 15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=tables())
def test_what_is_proposed_for_data_gives_every_value_back(client: Client, form: str, rows: Rows) -> None:
    """However they are written: each column comes back or is left out with a reason, and each value is itself."""
    data = FORMS[form](rows)
    proposal = infer_schema(data, table="people")
    (table,) = proposal["tables"].values()
    for marked in (table, *table["columns"].values()):
        marked.pop("confirm", None)
    name = f"inferred-{next(NUMBERS)}"
    client.datasets.create(name=name, rho=1, tables=proposal["tables"], capacity=20)
    options = {option: proposal[option] for option in ("delimiter", "decimal") if option in proposal}
    report = client.datasets.upload(dataset=name, table="people", data=data, columns=proposal.get("columns"), **options)
    assert (report.rows, table["key"]) == (len(rows["Customer ID"]), "customer_id")
    named = {column: proposal.get("columns", {}).get(column, column) for column in rows}
    assert {column for column, own in named.items() if own is None} == set(proposal.get("left_out", {}))
    assert all(set(rows[column]) == {None} for column in proposal.get("left_out", {}))
    for place, key in enumerate(rows["Customer ID"]):
        held: Any = client.datasets.record(dataset=name, individual=key)
        (record,) = held["tables"]["people"]["rows"]
        for column, own in named.items():
            if own is not None and column != "Customer ID":
                assert is_itself(rows[column][place], record[own]), (column, rows[column][place], record[own])


def is_itself(value: Any, found: Any) -> bool:
    """Tell whether a value came back as it was, a time in UTC."""
    if isinstance(value, datetime):
        return bool(found in (f"{value:%Y-%m-%dT%H:%M:%S}Z", f"{value:%Y-%m-%d}"))
    if isinstance(value, date):
        return bool(found == value.isoformat())
    if isinstance(value, bool) or value is None:
        return bool(found is value)
    if isinstance(value, int | float):
        return bool(found == pytest.approx(value, rel=1e-12, abs=1e-12))
    return bool(str(found) == value)
