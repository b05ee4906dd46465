"""Answers in npz: as numpy writes them, and anything else refused."""

import io
import json
import zipfile
from array import array
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
    assert answer_of_npz(GOOD) == {**FACTS, "values": array("d", [1.5, -2.0, 2.0**60]), "labels": []}
    empty = npz(values=np.array([], dtype="float64"), answer=np.array(json.dumps({"id": "é𝄞"})))
    assert answer_of_npz(empty) == {"id": "é𝄞", "values": array("d"), "labels": []}


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


def zipped(values: bytes, *, header: str | None = None, packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A file of such numbers."""
    file, size = io.BytesIO(), len(values) // 8
    told = (header or f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({size},), }}").encode() + b"\n"
    facts = io.BytesIO()
    np.save(facts, np.array("{}"))
    with zipfile.ZipFile(file, "w", packing) as archive:
        archive.writestr("answer.npy", facts.getvalue())
        archive.writestr("values.npy", b"\x93NUMPY\x01\x00" + len(told).to_bytes(2, "little") + told + values)
    return file.getvalue()


def with_many_members() -> bytes:
    """A file whose list of members is long."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(1000):
            archive.writestr(f"{number}.npy", b"")
    return file.getvalue()


def shorter_than_it_says() -> bytes:
    """A file whose numbers are said to be fewer than are packed."""
    content = zipped(b"\0" * 2**20)
    told = zipfile.ZipFile(io.BytesIO(content)).getinfo("values.npy").file_size.to_bytes(4, "little")
    return content.replace(told, (200).to_bytes(4, "little"))


LIES = {
    "more numbers than an answer has": zipped(b"\0" * (8 * 2**20 + 2**17)),
    "many members": with_many_members(),
    "a header of minus signs": zipped(b"\0" * 8, header="-" * 60_000 + "1"),
    "a header of lists": zipped(b"\0" * 8, header="[" * 60_000),
    "another shape": zipped(b"\0" * 8, header="{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999,), }"),
    "a packing that unpacks much": zipped(b"\0" * 2**16, packing=zipfile.ZIP_LZMA),
    "another size than it says": shorter_than_it_says(),
    "a comment": GOOD[:-2] + b"\1\0x",
}


@pytest.mark.parametrize("content", LIES.values(), ids=LIES)
def test_a_file_that_lies_is_refused_before_it_is_unpacked(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """No read asks for more than an answer has."""
    asked: list[int] = []
    read = zipfile.ZipExtFile.read

    def counted(file: zipfile.ZipExtFile, size: int | None = -1) -> bytes:
        asked.append(-1 if size is None else size)
        return read(file, size)

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
    with pytest.raises(ValueError, match="is not an answer in npz"):
        answer_of_npz(content)
    assert all(0 <= size <= 8 * 2**20 + 2**16 for size in asked)


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
    facts = {name: fact for name, fact in answer.items() if name not in {"values", "labels"}} | {
        "dimension": 3,
        "axes": [{"column": "group", "size": 3}, *answer["axes"]],
    }
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
