"""Queries in binary: the same query as in JSON, and a problem that names the member for whatever is none."""

import io
import json
import zipfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.api.query_requests import read_query
from service.api.responses import NPZ
from service.query.canonical import canonical_bytes
from service.query.parse import BODY_BYTES_MAX, parse_query
from service.query.problems import QueryProblem
from tests.api.documented import DOCS, blocks
from tests.api.world import World

MENTIONED = {"starts": "@s", "indices": "@i", "values": "@v"}
LISTS: dict[str, list[Any]] = {"s": [0, 2, 2, 3], "i": [1, 7, 1], "v": [1, -0.5, 3]}


def query(matrix: Any, **more: Any) -> dict[str, Any]:
    """A query of visits with a matrix."""
    select = [{"linear": {"column": "day", "matrix": matrix}}]
    return {"version": 1, "from": "visits", "select": select, "noise": {"sigma": 100}} | more


def npz(text: Any, **arrays: Any) -> bytes:
    """The body."""
    file = io.BytesIO()
    np.savez(file, query=text if isinstance(text, np.ndarray | str) else json.dumps(text), **arrays)
    return file.getvalue()


def refused(body: bytes) -> tuple[str, str]:
    """The field and the words of a problem."""
    with pytest.raises(QueryProblem) as problem:
        read_query(NPZ, body)
    return problem.value.errors[0].field, problem.value.errors[0].message


def arrays(**changes: Any) -> dict[str, Any]:
    """The three arrays, with some changed."""
    return {name: np.array(values) for name, values in LISTS.items()} | changes


@given(
    st.lists(
        st.dictionaries(st.integers(0, 364), st.floats(-1e30, 1e30, allow_subnormal=False), max_size=4),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from(["<u2", "<i4", "<i8", "<u8"]),
)
def test_arrays_are_the_lists_that_they_hold(functionals: list[dict[int, float]], dtype: str) -> None:
    """One model, one canonical form, and so one hash, whatever the type of the arrays."""
    starts = np.cumsum([0, *map(len, functionals)])
    indices = [day for each in functionals for day in each]
    values = [weight for each in functionals for weight in each.values()]
    if not indices:
        return
    in_json = query({"starts": starts.tolist(), "indices": indices, "values": values})
    sent = npz(query(MENTIONED), s=starts.astype(dtype), i=np.array(indices, dtype=dtype), v=np.array(values))
    found, wanted = read_query(NPZ, sent), parse_query(json.dumps(in_json).encode())
    assert found == wanted
    assert canonical_bytes(found) == canonical_bytes(wanted)


def test_every_list_of_values_may_be_an_array() -> None:
    """Weights, listed values, and texts; a text that begins with @ elsewhere is a text, and JSON stays JSON."""
    select = [
        {"histogram": {"column": "country", "values": "@names"}},
        {"linear": {"column": "member", "weights": {"indices": "@flags", "values": "@weights"}}},
    ]
    asked = {"version": 1, "select": select, "where": {"eq": [{"col": "country"}, "@names"]}, "noise": {"sigma": 1}}
    sent = npz(asked, names=np.array(["NO", "SÆ"]), flags=np.array([True]), weights=np.array([2], dtype=np.int8))
    told = read_query(f"{NPZ}; charset=binary", sent).model_dump(mode="json")
    assert told["select"][0]["histogram"]["values"] == ["NO", "SÆ"]
    assert told["select"][1]["linear"]["weights"] == {"indices": [True], "values": [2]}
    assert told["where"]["eq"][1] == "@names"
    text = json.dumps(query({"starts": [0, 1], "indices": [1], "values": [1]})).encode()
    assert read_query("application/json", text) == read_query(None, text) == parse_query(text)


def packed(method: int, suffix: str = ".npy") -> bytes:
    """Another zip of the same arrays."""
    file = io.BytesIO()
    sent = io.BytesIO(npz(query(MENTIONED), **arrays()))
    with zipfile.ZipFile(sent) as whole, zipfile.ZipFile(file, "w", method) as archive:
        for name in whole.namelist():
            archive.writestr(name.replace(".npy", suffix), whole.read(name))
    return file.getvalue()


def member(header: bytes, data: bytes) -> bytes:
    """A body whose array `s` has such a header and such data."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in {"query": np.array(json.dumps(query(MENTIONED))), **arrays()}.items():
            npy = io.BytesIO()
            np.save(npy, array)
            archive.writestr(f"{name}.npy", npy.getvalue() if name != "s" else header + data)
    return file.getvalue()


def header(text: bytes) -> bytes:
    """A header of version 1.0."""
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


NOT_AN_ARRAY = "must be an npy of version 1.0"
ANOTHER_LENGTH = "is not as long as its header says"
WRONG: list[tuple[str, bytes, str, str]] = [
    ("no zip", b"PK\x03\x04 and more", "body", "is not an npz"),
    ("JSON", json.dumps(query(LISTS)).encode(), "body", "is not an npz"),
    ("a body that is too large", bytes(BODY_BYTES_MAX + 1), "body", "is larger than 262144 bytes"),
    ("cut off", npz(query(MENTIONED), **arrays())[:-30], "body", "is not an npz"),
    ("a compressed one", packed(zipfile.ZIP_DEFLATED), "body.query", "must be stored as it is"),
    ("no array", packed(zipfile.ZIP_STORED, ".txt"), "body.query.txt", "must be an array: an npy"),
    ("no query", npz(np.array([1, 2]), **arrays()), "body.query", "must be the query as text"),
    ("two queries", npz(np.array(["a", "b"]), **arrays()), "body.query", "must be the query as text"),
    ("a number for a query", npz(np.array(7), **arrays()), "body.query", "must be the query as text"),
    ("no JSON", npz("{", **arrays()), "body", "is not JSON at line 1"),
    ("half of a pair", npz(np.array("\ud800"), **arrays()), "body", "is not UTF-8 at byte 0"),
    ("deep JSON", npz("[" * 20, **arrays()), "body", "is nested more than 16 deep"),
    ("no such array", npz(query(MENTIONED), s=[0, 1], i=[1]), "body.v", "must be an array of one dimension"),
    ("an array too many", npz(query(MENTIONED), **arrays(w=np.array([1]))), "body.w", "is not mentioned"),
    ("a number for a list", npz(query(MENTIONED), **arrays(v=np.array(3.0))), "body.v", "must be an array of one"),
    ("two dimensions", npz(query(MENTIONED), **arrays(v=np.ones((3, 1)))), "body.v", NOT_AN_ARRAY),
    ("complex numbers", npz(query(MENTIONED), **arrays(v=np.ones(3) * 1j)), "body.v", NOT_AN_ARRAY),
    ("big-endian numbers", npz(query(MENTIONED), **arrays(v=np.ones(3, dtype=">f8"))), "body.v", NOT_AN_ARRAY),
    ("long doubles", npz(query(MENTIONED), **arrays(v=np.ones(3, dtype=np.longdouble))), "body.v", NOT_AN_ARRAY),
    ("objects", npz(query(MENTIONED), **arrays(v=np.array([None, {}, 1], dtype=object))), "body.v", NOT_AN_ARRAY),
    ("not finite", npz(query(MENTIONED), **arrays(v=np.array([1, 2, np.nan]))), "body.v", "that is not finite"),
    ("large", npz(query(MENTIONED), **arrays(i=np.array([1, 2, 2**60]))), "body.i", "has an integer beyond 2^53 - 1"),
    ("no header", member(b"\x93NUMPY\x01\x00", b""), "body.s", NOT_AN_ARRAY),
    ("code", member(header(b"__import__('os')\n"), b""), "body.s", NOT_AN_ARRAY),
    (
        "a header that lies",
        member(header(b"{'descr': '<i8', 'fortran_order': False, 'shape': (9999999,), }\n"), bytes(8)),
        "body.s",
        ANOTHER_LENGTH,
    ),
    (
        "a number in part",
        member(header(b"{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }\n"), bytes(15)),
        "body.s",
        ANOTHER_LENGTH,
    ),
    (
        "no characters",
        member(header(b"{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }\n"), b"\xff" * 4),
        "body.s",
        "has a text that is not Unicode",
    ),
    (
        "what the language refuses",
        npz(query(MENTIONED), **arrays(s=np.array([0, 2, 1, 3]))),
        "select[0].linear.matrix",
        "must have starts that never decrease",
    ),
    (
        "an entry that the language refuses",
        npz(query(MENTIONED), **arrays(v=np.array([1, 2e30, 1]))),
        "select[0].linear.matrix.values[1]",
        "must be at most",
    ),
]


@pytest.mark.parametrize(("body", "field", "message"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_is_no_query_is_named(body: bytes, field: str, message: str) -> None:
    """By its member, or by its place in the query."""
    found = refused(body)
    assert found[0] == field
    assert message in found[1]


def test_repeated_and_too_many_members_are_refused() -> None:
    """A reader might take the first of them or the last."""
    file = io.BytesIO(npz(query(MENTIONED), **arrays()))
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(file, "a") as archive:
        archive.writestr("s.npy", b"")
    assert refused(file.getvalue()) == ("body", "must have at most 256 members, each once")
    many: dict[str, NDArray[Any]] = {f"a{number}": np.zeros(1) for number in range(256)}
    assert refused(npz(query(MENTIONED), **many))[1] == "must have at most 256 members, each once"


WHOLE = npz(query(MENTIONED), **arrays())


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=4), st.integers(0, len(WHOLE)))
def test_whatever_is_sent_is_a_query_or_a_problem(damage: list[tuple[int, int]], kept: int) -> None:
    """A damaged zip."""
    body = bytearray(WHOLE)
    for place, byte in damage:
        body[place] = byte
    for sent in (bytes(body), bytes(body[:kept])):
        try:
            read_query(NPZ, sent)
        except QueryProblem as problem:
            assert f"{problem}".isascii()  # noqa: PT017 - a problem is one of the two outcomes


NPY = io.BytesIO()
np.save(NPY, np.array(LISTS["s"]))


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=4), st.binary(max_size=40))
def test_whatever_an_array_is_there_is_a_query_or_a_problem(damage: list[tuple[int, int]], more: bytes) -> None:
    """A whole zip with a damaged array in it, which its checksum does not tell."""
    content = bytearray(NPY.getvalue() + more)
    for place, byte in damage:
        content[place % len(content)] = byte
    try:
        read_query(NPZ, member(b"", bytes(content)))
    except QueryProblem as problem:
        assert f"{problem}".isascii()  # noqa: PT017 - the same


async def test_both_forms_have_one_answer(world: World) -> None:
    """Under one key; previews and forecasts take both, and a problem names the member."""
    asked = query(MENTIONED, per_individual={"l2_clip": 2})
    in_json = query(dict(zip(MENTIONED, LISTS.values(), strict=True)), per_individual={"l2_clip": 2})
    first = await world.ask("k", json.dumps(in_json).encode())
    again = await world.ask("k", npz(asked, **arrays()), headers={"Content-Type": NPZ})
    assert (first.status_code, again.content) == (200, first.content)
    for role, path in (("analyst", "queries/preview"), ("curator", "forecast")):
        told = [
            await world.call(role, "POST", f"/v1/datasets/care/{path}", headers={"Content-Type": kind}, content=body)
            for kind, body in (("application/json", json.dumps(in_json)), (NPZ, npz(asked, **arrays())))
        ]
        assert (told[0].status_code, told[1].content) == (200, told[0].content)
    wrong = await world.ask("w", npz(asked, s=[0]), headers={"Content-Type": NPZ})
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "body.i")


def test_the_example_of_the_page_is_read() -> None:
    """The Python of docs/query-language.md makes a body that is the query with the lists in their places."""
    page = (DOCS / "query-language.md").read_text(encoding="utf-8")
    (block,) = [each for each in blocks(page) if each.language == "python"]
    names: dict[str, Any] = {}
    exec(compile(block.text, "page", "exec"), names)  # noqa: S102 - our own page
    lists = {"starts": [0, 2, 3], "indices": [0, 2, 1], "values": [0.5, 2, 1]}
    names["query"]["select"][0]["linear"]["matrix"] = lists
    assert read_query(NPZ, names["body"].getvalue()) == parse_query(json.dumps(names["query"]).encode())
