"""Values in Postgres' binary form: whatever is sent reads back as it was."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import orjson
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.pq import ExecStatus, Format

from service.store.postgres.append import columns, row_array, text_array
from service.store.postgres.sessions import Connection

COLUMNS = "a int2, b int4, c int8, d float8, e text, f bytea, g timestamptz, h uuid, i numeric, j bytea"
FIELDS = columns("int2 int4 int8 float8 text bytea timestamptz uuid numeric bytea")
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
INT8 = st.integers(-(2**63), 2**63 - 1)
ROWS = st.tuples(
    st.integers(-(2**15), 2**15 - 1),
    st.integers(-(2**31), 2**31 - 1),
    INT8,
    st.floats(allow_nan=False),
    TEXTS,
    st.binary(max_size=600),
    st.integers(-(10**15), 10**15).map(lambda microseconds: EPOCH + timedelta(microseconds=microseconds)),
    st.uuids(),
    st.integers(0, 10**30) | st.integers(0, 10).map(lambda power: 10 ** (4 * power)),
    st.none() | st.binary(max_size=9),
)


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    """A database with a table of every kind of column."""
    with psycopg.connect(database_url, autocommit=True) as opened:
        opened.execute(f"CREATE TABLE kinds ({COLUMNS})".encode())
        yield opened


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=st.lists(ROWS, max_size=4))
def test_rows_read_back_as_they_were_sent(connection: Connection, rows: list[tuple[object, ...]]) -> None:
    """Every kind, at its ends too, and NULL where there may be one; no rows are no rows."""
    row_type = connection.execute("SELECT 'kinds'::regtype::oid::int8").fetchall()[0][0]
    assert isinstance(row_type, int)
    connection.execute("TRUNCATE kinds")
    sent = connection.pgconn.exec_params(
        b"INSERT INTO kinds SELECT * FROM unnest($1::kinds[])",
        [row_array(row_type, FIELDS, rows)],
        param_formats=[Format.BINARY],
    )
    assert sent.status == ExecStatus.COMMAND_OK, sent.error_message
    found = connection.execute("SELECT * FROM kinds", binary=True).fetchall()
    assert sorted(map(_plain, found)) == sorted(map(_plain, rows))


def _plain(row: tuple[object, ...]) -> tuple[str, ...]:
    """A row as text that can be compared: a whole numeric is a whole number, and UTC is UTC."""
    *others, when, which, number, blob = row
    assert isinstance(when, datetime)
    return (*map(repr, others), when.astimezone(UTC).isoformat(), str(which), str(number), repr(blob))


@given(texts=st.lists(TEXTS, max_size=4))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_texts_too(connection: Connection, texts: list[str]) -> None:
    """An array of texts."""
    sent = connection.pgconn.exec_params(
        b"SELECT array_to_json($1::text[])", [text_array(texts)], param_formats=[Format.BINARY]
    )
    assert sent.status == ExecStatus.TUPLES_OK, sent.error_message
    assert orjson.loads(sent.get_value(0, 0) or b"") == texts
