"""Answers in npz: as numpy writes them, and anything else refused."""

import io
import json
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing import APIReplyError, Client
from sparing._npz import answer_of_npz


def npz(**arrays: Any) -> bytes:
    """The bytes of such a file."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


FACTS = {"id": "q", "axes": [{"column": "item", "size": 3}]}
GOOD = npz(values=np.array([1.5, -2.0, 2.0**60]), answer=np.array(json.dumps(FACTS)), sigma=np.float64(2))


def test_the_values_and_the_facts_are_those_that_numpy_wrote() -> None:
    """Without labels, as answers of more than 10,000 numbers are in JSON too."""
    assert answer_of_npz(GOOD) == {**FACTS, "values": [1.5, -2.0, 2.0**60], "labels": []}
    empty = npz(values=np.array([], dtype="float64"), answer=np.array(json.dumps({"id": "é𝄞"})))
    assert answer_of_npz(empty) == {"id": "é𝄞", "values": [], "labels": []}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK",
        npz(values=np.array([1.0])),
        npz(answer=np.array("{}")),
        npz(values=np.array([1]), answer=np.array("{}")),
        npz(values=np.array([[1.0]]), answer=np.array("{}")),
        npz(values=np.array([1.0]), answer=np.array(["{}"])),
        npz(values=np.array([1.0]), answer=np.array("[1]")),
        npz(values=np.array([1.0]), answer=np.array("{")),
        npz(values=np.array([1.0]), answer=np.float64(1)),
    ],
)
def test_anything_else_is_refused(content: bytes) -> None:
    """By one kind of error."""
    with pytest.raises(ValueError, match="is not an answer in npz"):
        answer_of_npz(content)


@given(st.data())
def test_changed_bytes_are_read_or_refused(data: st.DataObject) -> None:
    """Nothing but a ValueError, wherever the file is cut or changed."""
    content = bytearray(GOOD[: data.draw(st.integers(0, len(GOOD)))])
    for place in data.draw(st.lists(st.integers(0, max(len(content) - 1, 0)), max_size=3)):
        if content:
            content[place] = data.draw(st.integers(0, 255))
    try:
        found = answer_of_npz(bytes(content))
    except ValueError:
        return
    assert {"values", "labels"} <= found.keys()


def test_a_client_asks_for_either_form_and_reads_the_one_that_comes(answer: Any) -> None:
    """A large answer is the same object as one in JSON; a broken one is an APIReplyError."""
    facts = {name: fact for name, fact in answer.items() if name not in {"values", "labels"}} | {"dimension": 3}
    replies = [npz(values=np.array([1.0, 2.0, 3.0]), answer=np.array(json.dumps(facts))), b"PK"]
    accepted = []

    def serve(request: httpx.Request) -> httpx.Response:
        accepted.append(request.headers["Accept"])
        return httpx.Response(200, content=replies.pop(0), headers={"Content-Type": "application/x-npz"})

    with Client(base_url="http://s", api_key="k", transport=httpx.MockTransport(serve)) as client:
        found = client.queries.get(query="q")
        with pytest.raises(APIReplyError, match="npz"):
            client.queries.ask(dataset="d", sigma=1)
    assert found.values == (1.0, 2.0, 3.0)
    assert accepted == ["application/json, application/x-npz"] * 2
