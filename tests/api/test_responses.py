"""A released answer in each of its forms."""

import dataclasses
import io
from functools import partial
from uuid import UUID

import numpy as np
import orjson
import pyarrow as pa
import pytest

from service.api.responses import ARROW, JSON, NPY, NPZ, preferred, respond
from service.ledger.model.analyst_views import StoredAnswer
from service.query.layout import LABELS_MAX
from sparing._npz import answer_of_npz

FACTS = {"sigma": 2.5, "grid": 0.25, "half_width_95": 4.75, "axes": [{"column": "a]b", "size": 3}], "sequence": 3}
BODY = {"id": "x", "values": [0.75, -1, 1125899906842624.2], "labels": [{"select": '"values":[1]'}], **FACTS}
ANSWER = StoredAnswer(
    query_id=UUID(int=7), sequence=3, body=orjson.dumps(BODY), values=lambda: np.array([0.75, -1.0, (2**52 + 1) / 4])
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
        ("application/x-npz, */*", NPZ),
    ],
)
def test_the_callers_first_choice_among_ours_is_sent(accept: str | None, expected: str) -> None:
    """By quality, then by order; JSON when nothing that we know is asked for."""
    assert preferred(accept, is_large=lambda: False) == expected


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, JSON),
        ("application/json", JSON),
        ("application/json, text/html", JSON),
        ("application/json, application/x-npz", NPZ),
        ("application/json, application/x-npz;q=0.9", JSON),
        ("application/json, application/x-npz;q=0", JSON),
        ("application/json;q=0.4, application/x-npz;q=0.4, application/x-npy;q=0.4", NPZ),
        ("application/x-npy, application/json, application/x-npz", NPY),
    ],
)
def test_json_gives_way_to_an_equal_of_a_large_answer(accept: str | None, expected: str) -> None:
    """A client that takes both alike gets labels where there are some, and else eight bytes a number."""
    assert preferred(accept, is_large=lambda: True) == expected


def test_an_answer_is_large_where_it_has_no_labels() -> None:
    """10,000 numbers are JSON still."""
    both = f"{JSON}, {NPZ}"
    for size, expected in ((LABELS_MAX, JSON), (LABELS_MAX + 1, NPZ)):
        answer = dataclasses.replace(ANSWER, values=partial(np.zeros, size))
        assert respond(answer, both).media_type == expected


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


def test_npz_holds_the_values_and_every_fact() -> None:
    """The numbers as arrays of their own, all facts as JSON text, and nothing that has to be unpickled."""
    with np.load(io.BytesIO(bytes(respond(ANSWER, NPZ).body)), allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["values"], EXPECTED)
        assert {name: archive[name].item() for name in ("sigma", "grid", "half_width_95")} == {
            name: FACTS[name] for name in ("sigma", "grid", "half_width_95")
        }
        assert orjson.loads(archive["answer"].item()) == {"id": "x", **FACTS}


def test_the_client_reads_npz_as_it_reads_json() -> None:
    """Every member but the labels is the same."""
    read = answer_of_npz(bytes(respond(ANSWER, NPZ).body))
    assert read | {"values": [*read["values"]]} == BODY | {"values": EXPECTED.tolist(), "labels": []}


def test_arrow_holds_one_column_of_values_and_every_fact() -> None:
    """A stream with one column, `value`, whose metadata says the rest."""
    table = pa.ipc.open_stream(bytes(respond(ANSWER, ARROW).body)).read_all()
    assert table.column_names == ["value"]
    np.testing.assert_array_equal(table["value"].to_numpy(), EXPECTED)
    facts = {name.decode(): orjson.loads(text) for name, text in table.schema.metadata.items()}
    assert facts.pop("answer") == {"id": "x", **FACTS}
    assert facts == {name: fact for name, fact in FACTS.items() if name != "sequence"}


@pytest.mark.parametrize("form", [JSON, NPY, NPZ, ARROW])
def test_the_same_release_is_the_same_bytes(form: str) -> None:
    """Fetched twice, it cannot tell the two apart."""
    assert respond(ANSWER, form).body == respond(ANSWER, form).body
