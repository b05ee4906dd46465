"""The ledger, for auditors."""

import hashlib
from typing import Any

import rfc8785

from sparing import Chain
from sparing._chain import chain_of
from tests.api.world import World

COUNTS = {"charged", "left_out"}
PUBLIC = (
    *("format", "kind", "sequence", "query_id", "epoch", "mechanism", "query_sha256", "query_hash", "sigma"),
    *("grid_log2", "dimension", "worst_case_units", "worst_case_total_units", "values_sha256"),
    *("analyst_id", "analyst", "asked_at"),
)


async def test_an_auditor_sees_everything_else(world: World) -> None:
    """An auditor reads a curator's rows without the counts of people: five people, all of them active."""
    full = (await world.call("curator", "GET", "/v1/datasets/care/ledger")).json()
    assert [(row["charged"], row["left_out"], row["query_id"]) for row in full["items"]] == [(5, 0, world.query_id)]
    audited = (await world.call("auditor", "GET", "/v1/datasets/care/ledger")).json()
    expected = [{name: value for name, value in row.items() if name not in COUNTS} for row in full["items"]]
    assert audited == {"items": expected, "next": None}


async def test_an_auditor_checks_the_chain_by_what_is_shown(world: World) -> None:
    """Every hash of the rows, from the genesis on; and no change of a row goes unnoticed."""
    for number in range(3):
        await world.ask(f"k{number}", b'{"version":1,"select":[{"count":{}}],"noise":{"sigma":%d}}' % (30 + number))
    rows = (await world.call("auditor", "GET", "/v1/datasets/care/ledger")).json()["items"]

    def chains(rows: list[dict[str, Any]]) -> list[bool]:
        previous = [*(row["hash"] for row in rows[1:]), rows[-1]["previous_hash"]]
        return [
            row["previous_hash"] == before and hash_of(row) == row["hash"]
            for row, before in zip(rows, previous, strict=True)
        ]

    assert chains(rows) == [True] * 4
    assert chain_of(rows) == Chain(entries=4, checked=4, hash=rows[0]["hash"], broken=())
    assert all(row["is_checkable"] for row in rows)
    other = {"sigma": 31.5, "worst_case_units": "1", "analyst": "eve", "values_sha256": "00" * 32, "epoch": 2}
    for name, value in other.items():
        assert chains([rows[0] | {name: value}, *rows[1:]]) == [False, True, True, True], name
    assert chains([rows[0], rows[2], rows[3]]) == [False, True, True]
    for row in rows:
        assert hashlib.sha256(rfc8785.dumps(row["query"])).hexdigest() == row["query_sha256"]


def hash_of(row: dict[str, Any]) -> str:
    """The procedure of docs/ledger.md."""
    public = hashlib.sha256(rfc8785.dumps({name: row[name] for name in PUBLIC})).digest()
    parts = (bytes.fromhex(row["previous_hash"]), public, bytes.fromhex(row["private_digest"]))
    return hashlib.sha256(b"sparing ledger 2\0" + b"".join(parts)).hexdigest()
