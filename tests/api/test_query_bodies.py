"""Queries in binary: the same query as in JSON, and a problem that names the member for whatever is none."""

import hashlib
import io
import json
import struct
import zipfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.api.query_bodies import NPZ_BYTES_MAX
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


def ended(entries: int | None = None, size: int | None = None, comment: bytes = b"", before: bytes = b"") -> bytes:
    """A body whose directory says that it is so long, or with bytes around the record that says it."""
    whole = npz(query(MENTIONED), **arrays())
    parts = list(struct.unpack("<4s4H2LH", whole[-22:]))
    parts[4], parts[5], parts[7] = entries or parts[4], size or parts[5], len(comment)
    return whole[:-22] + before + struct.pack("<4s4H2LH", *parts) + comment


ZERO = {"version": 1, "select": [{"histogram": {"column": "country", "values": "@n"}}], "noise": {"sigma": 1}}
NOT_AN_ARRAY = "must be an npy of version 1.0"
ANOTHER_LENGTH = "is not as long as its header says"
WRONG: list[tuple[str, bytes, str, str]] = [
    ("no zip", b"PK\x03\x04 and more", "body", "is not an npz"),
    ("JSON", json.dumps(query(LISTS)).encode(), "body", "is not an npz"),
    ("a body that is too large", bytes(NPZ_BYTES_MAX + 1), "body", "is larger than 8650752 bytes"),
    ("cut off", npz(query(MENTIONED), **arrays())[:-30], "body", "is not an npz"),
    ("a compressed one", packed(zipfile.ZIP_DEFLATED), "body.query", "must be stored as it is"),
    ("no array", packed(zipfile.ZIP_STORED, ".txt"), "body.query.txt", "must be an array: an npy"),
    ("no query", npz(np.array([1, 2]), **arrays()), "body.query", "must be the query as text"),
    ("two queries", npz(np.array(["a", "b"]), **arrays()), "body.query", "must be the query as text"),
    ("a number for a query", npz(np.array(7), **arrays()), "body.query", "must be the query as text"),
    ("no JSON", npz("{", **arrays()), "body", "is not JSON at line 1"),
    ("half of a pair", npz(np.array("\ud800"), **arrays()), "body", "is not UTF-8 at byte 0"),
    ("a comment behind it", ended(comment=b"c"), "body", "is not an npz"),
    ("a long directory", ended(size=2**16 + 1), "body", "must have at most 256 members"),
    ("many members", ended(entries=257), "body", "must have at most 256 members"),
    ("a record of 64 bits", ended(before=b"PK\x06\x07" + bytes(16)), "body", "is not an npz"),
    ("a long text", npz(" " * (BODY_BYTES_MAX + 1), **arrays()), "body", "is larger than 262144 bytes"),
    ("a zero byte", npz(ZERO, n=np.array(["NO", "a\0b"])), "body.n", "has the character U+0000"),
    ("deep JSON", npz("[" * 20, **arrays()), "body", "is nested more than 16 deep"),
    ("no such array", npz(query(MENTIONED), s=[0, 1], i=[1]), "body.v", "must be an array of one"),
    ("an array too many", npz(query(MENTIONED), **arrays(w=np.array([1]))), "body.w", "is not mentioned"),
    ("a number for a list", npz(query(MENTIONED), **arrays(v=np.array(3.0))), "body.v", "must be an array of one"),
    ("two dimensions", npz(query(MENTIONED), **arrays(v=np.ones((3, 1)))), "body.v", "must be an array of one"),
    ("three dimensions", npz(query(MENTIONED), **arrays(v=np.ones((3, 1, 1)))), "body.v", NOT_AN_ARRAY),
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


def test_a_directory_is_not_read_before_its_length_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """158,000 entries took a second each time, with the interpreter's lock."""
    opened: list[object] = []
    monkeypatch.setattr("service.api.query_bodies.zipfile.ZipFile", opened.append)
    entry = b"PK\x01\x02" + bytes(42)
    entries = 158_000
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, entries % 2**16, entries % 2**16, 46 * entries, 0, 0)
    assert refused(entry * entries + end) == ("body", "must have at most 256 members, each once")
    assert opened == []


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
    block, of_parameters = [each for each in blocks(page) if each.language == "python"]
    names: dict[str, Any] = {}
    exec(compile(block.text, "page", "exec"), names)  # noqa: S102 - our own page
    lists = {"starts": [0, 2, 3], "indices": [0, 2, 1], "values": [0.5, 2, 1]}
    names["query"]["select"][0]["linear"]["matrix"] = lists
    assert read_query(NPZ, names["body"].getvalue()) == parse_query(json.dumps(names["query"]).encode())
    exec(compile(of_parameters.text, "page", "exec"), names)  # noqa: S102 - our own page
    (item,) = json.loads(canonical_bytes(read_query(NPZ, names["body"].getvalue())))["select"]
    digest = hashlib.sha256(names["theta"].astype("<f8").tobytes()).hexdigest()
    assert item["gradient"]["parameters"] == {"sha256": digest, "shape": [10, 785]}


AGE = {"of": {"mul": [{"col": "age"}, 0.01]}}
MODEL = {"loss": "softmax", "target": "country", "features": [AGE], "intercept": True}
STEP = {"version": 1, "select": [{"gradient": MODEL | {"parameters": "@theta"}}], "noise": {"sigma": 1}}
THETA = np.array([[0.5, -1], [2, 0.25]])


@pytest.mark.parametrize("theta", [THETA, THETA.astype("<f4"), np.asfortranarray(THETA)], ids=["f8", "f4", "fortran"])
def test_parameters_are_an_array_of_one_dimension_or_two(theta: NDArray[np.floating]) -> None:
    """Their hash is that of the doubles, row by row, whatever the array is."""
    found = read_query(NPZ, npz(STEP, theta=theta))
    wanted = {"sha256": hashlib.sha256(THETA.tobytes()).hexdigest(), "shape": [2, 2]}
    assert json.loads(canonical_bytes(found))["select"][0]["gradient"]["parameters"] == wanted
    alone = json.loads(canonical_bytes(read_query(NPZ, npz(STEP, theta=THETA.ravel()))))
    assert alone["select"][0]["gradient"]["parameters"] == wanted | {"shape": [4]}


def test_parameters_may_be_larger_than_all_else() -> None:
    """8 MiB of doubles beside 256 KiB; with more of either the body is refused before any list is made."""
    largest = npz(STEP, theta=np.zeros(2**20))
    read_query(NPZ, largest)
    wide = query(MENTIONED)
    assert refused(npz(STEP | {"where": {"eq": [{"col": "country"}, "x" * 2**18]}}, theta=THETA))[0] == "body"
    assert refused(npz(wide, **arrays(v=np.zeros(2**16))))[1].startswith("is larger than 262144 bytes, beside")
    assert refused(npz(STEP, theta=np.zeros(2**20 + 1)))[0] == "body"
    assert refused(npz(STEP, theta=np.zeros(2**20 + 1, dtype="<f4"))) == ("body.theta", "has more than 1048576 numbers")


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        (np.array([1, 2]), "must be an array of doubles or floats in one dimension or two"),
        (np.array(1.5), "must be an array of doubles or floats in one dimension or two"),
        (np.zeros(0), "must be an array of doubles or floats in one dimension or two"),
        (np.array([1, np.inf]), "has a number that is not finite"),
        (np.array([1, np.nan], dtype="<f4"), "has a number that is not finite"),
    ],
)
def test_what_are_no_parameters_is_named(theta: NDArray[Any], message: str) -> None:
    """By the member."""
    assert refused(npz(STEP, theta=theta)) == ("body.theta", message)


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({}, "parameters.sha256"),
        ({"sha256": "00"}, "parameters.sha256"),
        ({"sha256": "AB" * 32}, "parameters.sha256"),
        ({"sha256": "ab" * 32, "shape": []}, "parameters.shape"),
        ({"sha256": "ab" * 32, "shape": [1, 2, 3]}, "parameters.shape"),
        ({"sha256": "ab" * 32, "shape": [0]}, "parameters.shape[0]"),
        ({"sha256": "ab" * 32, "of": 1}, "parameters.of"),
        ("@theta", "parameters"),
    ],
)
def test_a_hash_in_json_is_checked(parameters: Any, field: str) -> None:
    """It is checked like any other part of the language."""
    document = {**STEP, "select": [{"gradient": MODEL | {"parameters": parameters}}]}
    with pytest.raises(QueryProblem) as problem:
        parse_query(json.dumps(document).encode())
    assert problem.value.errors[0].field == f"select[0].gradient.{field}"


async def test_a_step_by_array_and_by_hash_is_one_query(world: World) -> None:
    """Over HTTP: a body beyond other bodies' limit, then the hash alone under the same key; memory is given back."""
    big = np.zeros((2, 2**17))
    too_many = await world.ask("x", npz(STEP, theta=big), headers={"Content-Type": NPZ})
    assert (too_many.status_code, too_many.json()["errors"][0]["field"]) == (422, "select[0].gradient.parameters")
    unknown = {"sha256": hashlib.sha256(THETA.tobytes()).hexdigest()}
    by_hash = json.dumps({**STEP, "select": [{"gradient": MODEL | {"parameters": unknown}}]}).encode()
    refusal = await world.ask("k", by_hash)
    wanted = {"field": "select[0].gradient.parameters", "message": "are not known by this hash; send the numbers"}
    assert (refusal.status_code, refusal.json()["errors"]) == (422, [wanted])
    first = await world.ask("k", npz(STEP, theta=THETA), headers={"Content-Type": NPZ})
    again = await world.ask("k", by_hash)
    assert (first.status_code, again.status_code, again.content) == (200, 200, first.content)
    assert world.replica.admission.memory.requests == 0
    preview = await world.call(
        "analyst",
        "POST",
        "/v1/datasets/care/queries/preview",
        headers={"Content-Type": NPZ},
        content=npz(STEP, theta=2 * THETA),
    )
    assert (preview.status_code, preview.json()["dimension"]) == (200, 4)
    assert world.replica.admission.memory.requests == 0


async def test_a_prediction_by_array_and_by_hash_is_one_query(world: World) -> None:
    """Over HTTP: a small body with a hash is looked up, and the place of an unknown one is named."""
    model = {"features": [AGE], "intercept": True, "link": "logistic", "parameters": "@theta"}
    asked = {**STEP, "select": [{"count": {}}], "where": {"ge": [{"predict": model}, 0.5]}}
    by_hash = json.dumps(asked).replace('"@theta"', json.dumps({"sha256": hashlib.sha256(THETA[0]).hexdigest()}))
    refusal = await world.ask("k", by_hash.encode())
    wanted = {"field": "where.ge[0].predict.parameters", "message": "are not known by this hash; send the numbers"}
    assert (refusal.status_code, refusal.json()["errors"]) == (422, [wanted])
    first = await world.ask("k", npz(asked, theta=THETA[0]), headers={"Content-Type": NPZ})
    again = await world.ask("k", by_hash.encode())
    assert (first.status_code, again.status_code, again.content) == (200, 200, first.content)


async def test_a_body_without_room_is_refused(world: World) -> None:
    """It is refused like a query: for now, or for good."""
    world.replica.admission.memory.bytes_max = 2**10
    never = await world.ask("k", npz(STEP, theta=THETA), headers={"Content-Type": NPZ})
    assert never.status_code == 422
    assert "bytes" in never.text


@pytest.mark.parametrize("theta", [THETA, THETA[0]], ids=["rows", "one row"])
def test_parameters_of_a_prediction_are_known_by_their_hash_too(theta: NDArray[np.floating]) -> None:
    """Wherever it stands; an array that is mentioned several times is one."""
    model: dict[str, Any] = {"features": [AGE], "intercept": True, "link": "logistic", "parameters": "@theta"}
    where: dict[str, Any] = {"ge": [{"predict": model}, 0.5]}
    if theta.ndim == 2:
        where = {"eq": [{"predict": model | {"link": "softmax", "target": "country"}}, "NO"]}
    asked = {**STEP, "select": [{"count": {}}], "where": {"or": [where, {"not": where}]}}
    by_hash = {"sha256": hashlib.sha256(theta.astype("<f8").tobytes()).hexdigest(), "shape": theta.shape}
    in_json = json.dumps(asked).replace('"@theta"', json.dumps(by_hash))
    found = read_query(NPZ, npz(asked, theta=theta))
    assert found == parse_query(in_json.encode())
    first, second = found.hashed
    assert first is second
    assert first.numbers == theta.astype("<f8").tobytes()


def test_an_array_may_be_a_list_in_one_place_and_parameters_in_another() -> None:
    """Its bytes count as a list's then."""
    model = {"features": [AGE], "link": "logistic", "parameters": "@v"}
    wide = {**query(MENTIONED), "where": {"ge": [{"predict": model}, 0.5]}}
    found = read_query(NPZ, npz(wide, **arrays()))
    assert [each.shape for each in found.hashed] == [(len(LISTS["v"]),)]
    assert refused(npz(wide, **arrays(v=np.zeros(2**16))))[0] == "body"
