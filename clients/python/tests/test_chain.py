"""The chain of a ledger, as an auditor checks it."""

import hashlib
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from sparing import APIReplyError, Chain, Client
from sparing._chain import MISSING_MAX, _canonical, chain_of

GENESIS = "11" * 32


def row(sequence: int, previous_hash: str, *, sigmas: list[float] | None = None, **other: Any) -> dict[str, Any]:
    """An entry as the service lists it, encoded by a library for canonical JSON; of items with sigmas of their own."""
    query: dict[str, Any] = {"version": 1, "noise": {"sigma": 18.5}, "where": {"eq": [{"col": "ø"}, "\u2028"]}}
    made: dict[str, Any] = {
        "format": 2,
        "kind": "query",
        "sequence": sequence,
        "query_id": f"q{sequence}",
        "epoch": 1,
        "mechanism": "gaussian",
        "query_sha256": hashlib.sha256(rfc8785.dumps(query)).hexdigest(),
        "query_hash": "qh",
        "sigma": 18.5 * 10.0**sequence,
        "grid_log2": -2,
        "dimension": 1,
        "worst_case_units": "9",
        "worst_case_total_units": str(9 * sequence),
        "values_sha256": "22" * 32,
        "analyst_id": "a",
        "analyst": 'Ann "ø"',
        "asked_at": "2026-11-21T09:00:00Z",
    }
    bound = made if sigmas is None else made | {"sigmas": sigmas}
    public = hashlib.sha256(rfc8785.dumps(bound)).digest()
    private = hashlib.sha256(b"%d" % sequence).digest()
    digest = hashlib.sha256(b"sparing ledger 2\0" + bytes.fromhex(previous_hash) + public + private).hexdigest()
    shown = {"previous_hash": previous_hash, "private_digest": private.hex(), "hash": digest, "is_checkable": True}
    return {**made, **shown, "sigmas": sigmas, "query": query, "worst_case_rho": "0.1", **other}


def ledger(count: int, start: str = GENESIS, first: int = 1) -> list[dict[str, Any]]:
    """The ledger of `count` entries, the newest first."""
    rows = [row(first, start)]
    while len(rows) < count:
        rows.append(row(first + len(rows), rows[-1]["hash"]))
    return rows[::-1]


def test_the_sigma_of_each_item_is_bound() -> None:
    """A changed sigma breaks the row."""
    before = row(1, GENESIS)
    after = row(2, before["hash"], sigmas=[5.0, 2000.0])
    assert broken([after, before]) == ()
    assert broken([after | {"sigmas": [5.0, 2001.0]}, before]) == (2,)
    assert broken([after | {"sigmas": None}, before]) == (2,)


def broken(rows: Sequence[object]) -> tuple[int, ...]:
    """The sequences found broken."""
    return chain_of(rows).broken


def test_a_whole_ledger_is_checked(client: Client, script: Any) -> None:
    """Page by page; an empty ledger has no entry to check."""
    rows = ledger(5)
    pages = [{"items": rows[:3], "next": "c"}, {"items": rows[3:], "next": None}, {"items": [], "next": None}]
    script.steps = [httpx.Response(200, json=page) for page in pages]
    assert client.datasets.audit(dataset="d") == Chain(entries=5, checked=5, hash=rows[0]["hash"], broken=())
    assert client.datasets.audit(dataset="d") == Chain(entries=0, checked=0, hash=None, broken=())


def test_a_kept_hash_is_found_where_the_ledger_had_it(client: Client, script: Any) -> None:
    """The newest row's hash or an earlier one's, however it was pasted; a rewritten ledger has it nowhere."""
    rows = ledger(5)
    assert [chain_of(rows, each["hash"]).kept_at for each in rows] == [5, 4, 3, 2, 1]
    assert chain_of(rows).kept_at is None
    rewritten = ledger(7, start="44" * 32)
    assert (chain_of(rewritten, rows[0]["hash"]).kept_at, broken(rewritten)) == (None, ())
    script.steps = [httpx.Response(200, json={"items": rows, "next": None})]
    told = client.datasets.audit(dataset="d", kept=f" {rows[2]['hash'].upper()} ")
    assert (told.kept_at, told.entries, told.broken) == (3, 5, ())


@pytest.mark.parametrize(
    "name", [name for name in row(1, GENESIS) if name not in {"worst_case_rho", "is_checkable", "sequence", "query"}]
)
def test_every_field_is_bound(name: str) -> None:
    """A changed field is found in its row, or in the row after it."""
    rows = ledger(5)
    other = {"sigma": 7.25, "hash": "33" * 32, "previous_hash": "33" * 32, "private_digest": "33" * 32}
    rows[2] = rows[2] | {name: other.get(name, "x")}
    assert set(broken(rows)) & {3, 4}


def test_the_query_is_bound() -> None:
    """The hash binds the canonical form of the query."""
    rows = ledger(3)
    rows[1] = rows[1] | {"query": {"version": 1}}
    assert broken(rows) == (2,)


def test_rows_that_are_missing_are_named() -> None:
    """In the middle and at the beginning; at the end only a kept hash shows it."""
    rows = ledger(6)
    assert broken([*rows[:2], *rows[4:]]) == (3, 4, 5)
    assert broken(rows[:-2]) == (1, 2)
    assert broken(rows[1:]) == ()


def test_a_row_of_any_sequence_takes_little() -> None:
    """The newest of very many missing rows are named; rows that go back are broken, whatever they hash."""
    first, second = row(1, GENESIS), row(2, GENESIS)
    assert len(broken([second | {"sequence": 2**53 - 1}, second | {"sequence": 2**52}])) <= MISSING_MAX + 2
    upwards = [row(1, second["hash"]), second, first]
    assert broken(upwards) == (1, 2)


@pytest.mark.parametrize("sequence", [0, -1, 2**53, 10**400, "1", 1.0, None, True])
def test_a_sequence_is_a_number_of_a_ledger(sequence: object) -> None:
    """From 1 on."""
    with pytest.raises(APIReplyError, match="does not show"):
        chain_of([row(1, GENESIS) | {"sequence": sequence}])


@pytest.mark.parametrize("change", [{"query": "\ud800"}, {"sigma": float("inf")}, {"previous_hash": "zz"}])
def test_a_row_that_cannot_be_hashed_is_an_error_of_this_library(change: dict[str, Any]) -> None:
    """A lone surrogate, infinity and a hash of other letters have no canonical form."""
    with pytest.raises(APIReplyError, match="cannot be hashed"):
        chain_of([row(1, GENESIS) | change])


@pytest.mark.parametrize("shown", [[], {}, {"sequence": 1, "hash": "00"}, row(1, GENESIS) | {"private_digest": None}])
def test_a_service_that_does_not_show_enough_is_refused(shown: object) -> None:
    """It is not reported as sound."""
    with pytest.raises(APIReplyError, match="does not show"):
        chain_of([shown])


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53) + 1, 2**53 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.floats(1e-9, 1e-3),
        st.floats(1e14, 1e24),
        st.text(),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
)


@given(JSON)
def test_canonical_json_is_that_of_the_standard(value: Any) -> None:
    """Byte for byte the output of another library."""
    assert _canonical(value).encode() == rfc8785.dumps(value)
