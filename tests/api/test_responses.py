"""A released answer in each of its forms."""

import io
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from service.api.responses import ARROW, JSON, NPY, preferred, respond
from service.workflows.model.analyst_views import StoredAnswer

ANSWER = StoredAnswer(
    query_id=UUID(int=7), sequence=3, body=b'{"id":"x"}', values=lambda: np.array([0.75, -1.0, (2**52 + 1) / 4])
)
EXPECTED = np.array([0.75, -1.0, (2**52 + 1) / 4])


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, JSON),
        ("", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        ("text/html", JSON),
        ("text/html, application/x-npy", NPY),
        ("APPLICATION/X-NPY", NPY),
        ("application/json, application/x-npy", JSON),
        ("application/x-npy, application/json", NPY),
        ("application/json;q=0.5, application/vnd.apache.arrow.stream", ARROW),
        ("application/x-npy;q=0", JSON),
        ("application/x-npy;q=none, */*;q=0.1", JSON),
        (";;;,,", JSON),
    ],
)
def test_the_callers_first_choice_among_ours_is_sent(accept: str | None, expected: str) -> None:
    """By quality, then by order; JSON when nothing that we know is asked for."""
    assert preferred(accept) == expected


def test_json_is_the_stored_bytes() -> None:
    """Not one byte is rebuilt."""
    response = respond(ANSWER, None)
    assert (response.body, response.media_type) == (ANSWER.body, JSON)
    assert response.headers["x-query-id"] == str(ANSWER.query_id)


def test_npy_holds_the_values_in_query_units() -> None:
    """Doubles, exact multiples of the grid."""
    response = respond(ANSWER, NPY)
    values = np.load(io.BytesIO(bytes(response.body)), allow_pickle=False)
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values, EXPECTED)
    assert response.headers["x-query-id"] == str(ANSWER.query_id)


def test_arrow_holds_one_column_of_values() -> None:
    """A stream with one column, `value`."""
    table = pa.ipc.open_stream(bytes(respond(ANSWER, ARROW).body)).read_all()
    assert table.column_names == ["value"]
    np.testing.assert_array_equal(table["value"].to_numpy(), EXPECTED)


@pytest.mark.parametrize("form", [JSON, NPY, ARROW])
def test_the_same_release_is_the_same_bytes(form: str) -> None:
    """Fetched twice, it cannot tell the two apart."""
    assert respond(ANSWER, form).body == respond(ANSWER, form).body
