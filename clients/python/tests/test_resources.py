"""Arguments beyond the documented request of a verb, and the facts that are read of each reply."""

import gzip
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

import sparing
from clients.python.tests.reply_documents import (
    ACCOUNT,
    ACT,
    ALARM,
    DATASET,
    ENTRY,
    FORECAST,
    KEY,
    MINE,
    PREVIEW,
    PRINCIPAL,
    RECEIPT,
    RELEASE,
    REPORT,
    Json,
)
from sparing import Client, col

AT = datetime(2026, 11, 21, 9, tzinfo=UTC)


def sent(script: Any, number: int = 0) -> tuple[str, str, Any]:
    """Method, path with query, and JSON body of the n-th request."""
    request = script.requests[number]
    body = script.bodies[number]
    return request.method, request.url.raw_path.decode(), json.loads(body) if body else None


STATED = ["gdp", {"kind": "zcdp", "conversion": "optimal"}, {"kind": "rdp", "order": 16.0, "conversion": "optimal"}]


@pytest.mark.parametrize("stated", STATED)
def test_a_dataset_of_any_accounting_is_registered_and_read(client: Client, script: Any, stated: Any) -> None:
    """A word, or an object; pure differential privacy has an epsilon alone."""
    script.steps = [httpx.Response(201, json={**DATASET, "accounting": stated, "guarantee": {"epsilon": "1"}})]
    made = client.datasets.create(name="web-visits", epsilon=1, tables={}, accounting=stated)

    assert sent(script)[2]["accounting"] == stated
    assert sent(script)[2]["guarantee"] == {"epsilon": "1"}
    assert made.accounting == stated


WEB_VISITS = DATASET | {
    "name": "web-visits",
    "guarantee": {"epsilon": "1", "delta": "0.000001"},
    "budget_rho": "0.028",
    "budget_units": 30_000_000_000,
    "mu": 0.2367,
    "limit_floor_rho": "0.028",
    "capacity": 50_000,
    "epoch": 1,
    "sequence": 0,
    "individuals": 2,
    "rows": {"people": 2},
}


def test_create_a_dataset(client: Client, script: Any) -> None:
    """Decimals are sent as text, so that a guarantee is not rounded."""
    tables = {"people": {"kind": "individuals", "key": "person_id", "columns": {}}}
    script.steps = [httpx.Response(201, json=WEB_VISITS | {"tables": tables})]

    made = client.datasets.create(name="web-visits", epsilon=1, delta="1e-6", capacity=50_000, tables=tables)

    assert sent(script) == (
        "POST",
        "/v1/datasets",
        {
            "name": "web-visits",
            "guarantee": {"epsilon": "1", "delta": "1e-6"},
            "capacity": 50_000,
            "tables": tables,
            "rule": "skip",
        },
    )
    assert made == sparing.Dataset(
        name="web-visits",
        guarantee=sparing.Guarantee(epsilon=Decimal(1), delta=Decimal("0.000001")),
        budget_rho=Decimal("0.028"),
        budget_units=30_000_000_000,
        mu=0.2367,
        limit_floor_rho=Decimal("0.028"),
        capacity=50_000,
        rule="skip",
        epoch=1,
        tables=tables,
        sequence=0,
        individuals=2,
        rows={"people": 2},
    )


@pytest.mark.parametrize("guarantee", [{}, {"delta": 0.1}, {"epsilon": 1, "delta": 0.1, "rho": 1}])
def test_a_guarantee_is_stated_in_one_of_two_ways(guarantee: dict[str, Any], client: Client) -> None:
    """A partial guarantee is refused before a request is sent."""
    with pytest.raises(ValueError, match="epsilon and delta, or rho"):
        client.datasets.create(name="d", tables={}, **guarantee)


def test_read_datasets_as_an_analyst(client: Client, script: Any) -> None:
    """The counts are for curators; an analyst's view has None there."""
    row = {name: value for name, value in DATASET.items() if name != "tables"} | {"table_names": ["people"]}
    script.steps = [httpx.Response(200, json=DATASET), httpx.Response(200, json={"items": [row], "next": None})]

    one, (listed,) = client.datasets.get(dataset="web-visits"), client.datasets.list()

    assert (listed.name, listed.budget_rho, listed.table_names) == (one.name, one.budget_rho, ("people",))
    assert (one.individuals, one.rows, one.sequence) == (None, None, None)
    assert (listed.individuals, listed.sequence) == (None, None)


CSV = b"person_id,area\n1,1000\n"


@pytest.mark.parametrize(
    ("name", "content", "content_type"),
    [
        ("rows.csv", CSV, "text/csv"),
        ("rows.csv.gz", gzip.compress(CSV, mtime=0), "text/csv"),
        ("rows.CSV", CSV, "text/csv"),
        ("rows.ndjson", b"{}", "application/x-ndjson"),
        ("rows.parquet", b"PAR1...", "application/vnd.apache.parquet"),
        ("rows.arrows", b"\xff\xff\xff\xff", "application/vnd.apache.arrow.stream"),
        ("rows", CSV, "text/csv"),
        ("rows", b'{"a": 1}\n', "application/x-ndjson"),
        ("rows", b"PAR1...", "application/vnd.apache.parquet"),
        ("rows", gzip.compress(b'{"a": 1}\n', mtime=0), "application/x-ndjson"),
    ],
)
def test_upload_a_file_in_any_shape(
    name: str, content: bytes, content_type: str, client: Client, script: Any, tmp_path: Path
) -> None:
    """A path, bytes and an open file send the same bytes, unpacked."""
    script.steps = [httpx.Response(200, json={"rows": 1, "individuals": 1, "nulls": {"area": 2}})] * 3
    where = tmp_path / name
    where.write_bytes(content)

    for file in (where, content, io.BytesIO(content)):
        report = client.datasets.upload(dataset="web-visits", table="visits", file=file)
        assert report == sparing.UploadReport(rows=1, individuals=1, nulls={"area": 2})

    plain = gzip.decompress(content) if content[:1] == b"\x1f" else content
    assert script.bodies == [plain] * 3
    assert [request.headers["Content-Type"] for request in script.requests] == [content_type] * 3
    assert script.requests[0].url.path == "/v1/datasets/web-visits/tables/visits/rows"


def test_every_try_of_an_upload_carries_one_key(client: Client, script: Any) -> None:
    """After a time-out and a 503 too; a fresh key for each upload, or the given one; the exception carries it."""
    report = {"rows": 1, "individuals": 1}
    script.steps = [httpx.ReadTimeout("late"), httpx.Response(503), *[httpx.Response(200, json=report)] * 2]
    for _ in range(2):
        client.datasets.upload(dataset="d", table="t", file=CSV, content_type="text/csv; charset=utf-8")
    keys = [request.headers["Idempotency-Key"] for request in script.requests]
    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert {request.headers["Content-Type"] for request in script.requests} == {"text/csv; charset=utf-8"}

    script.steps += [httpx.Response(422, json={"type": "urn:sparing:problem:idempotency-key-reused"})]
    with pytest.raises(sparing.InvalidRequestError) as refused:
        client.datasets.upload(dataset="d", table="t", file=CSV, idempotency_key="mine")
    assert (refused.value.idempotency_key, script.requests[4].headers["Idempotency-Key"]) == ("mine", "mine")


def test_budgets_turn_their_pages_by_themselves(client: Client, script: Any) -> None:
    """Pages are fetched as they are consumed, each with the cursor of the one before."""
    row = ACCOUNT | {"queries_charged": 7, "queries_left_out": 2}
    script.steps = [
        httpx.Response(200, json={"items": [row | {"key": "1"}, row | {"key": "2"}], "next": "c&1"}),
        httpx.Response(200, json={"items": [row | {"key": "3"}], "next": None}),
    ]

    rows = client.datasets.budgets(dataset="d", page_size=2)
    assert script.requests == []
    assert next(rows).key == "1"
    assert len(script.requests) == 1
    rest = [(row.key, row.queries_charged, row.queries_left_out) for row in rows]
    assert rest == [("2", 7, 2), ("3", 7, 2)]

    assert [sent(script, number)[1] for number in (0, 1)] == [
        "/v1/datasets/d/budgets?limit=2",
        "/v1/datasets/d/budgets?limit=2&cursor=c%261",
    ]


Act = Callable[[Client], Any]


def page(item: Json) -> Json:
    """A listing of one item."""
    return {"items": [item], "next": None}


READ: dict[str, tuple[Act, Any, dict[str, object]]] = {
    "the act of an individual": (
        lambda c: next(c.datasets.acts(dataset="d")),
        page(ACT | {"act": "limit", "individual": "ann", "detail": {"limit_rho": "0.5"}}),
        {"number": 1, "act": "limit", "sequence": 1, "at": AT, "individual": "ann", "detail": {"limit_rho": "0.5"}},
    ),
    "an act of an unknown kind": (
        lambda c: next(c.datasets.acts(dataset="d")),
        page(ACT | {"act": "new", "individual": None, "detail": {}}),
        {"act": "new", "individual": None, "detail": {}},
    ),
    "a summary": (
        lambda c: c.datasets.budget_summary(dataset="d"),
        {
            "sequence": 9,
            "individuals": 3,
            "exhausted": 1,
            "remaining_share_histogram": [{"low": 0, "high": 0.1, "individuals": 3}],
            "quantiles": {"0.5": 0.25},
            "paused": 2,
        },
        {
            "sequence": 9,
            "individuals": 3,
            "exhausted": 1,
            "remaining_share_histogram": (sparing.ShareBin(low=0.0, high=0.1, individuals=3),),
            "quantiles": {"0.5": 0.25},
            "paused": 2,
        },
    ),
    "the ledger of a curator": (
        lambda c: next(c.datasets.ledger(dataset="d")),
        page(ENTRY | {"sigma": 18, "worst_case_rho": "0.001", "charged": 10, "left_out": 2}),
        {"worst_case_rho": Decimal("0.001"), "sigma": 18.0, "charged": 10, "left_out": 2, "asked_at": AT},
    ),
    "the ledger of an auditor": (
        lambda c: next(c.datasets.ledger(dataset="d")),
        page(ENTRY | {"words": "count of people", "hash": "01"}),
        {"charged": None, "left_out": None, "hash": "01", "words": "count of people"},
    ),
    "an epoch": (lambda c: c.datasets.open_epoch(dataset="d"), {"epoch": 2}, {"real": 2}),
    "an account": (
        lambda c: c.datasets.account(dataset="d", individual="a"),
        ACCOUNT | {"spent_rho": "0.5"},
        {"spent_rho": Decimal("0.5")},
    ),
    "an extended dataset": (
        lambda c: c.datasets.extend(dataset="d", capacity=10),
        DATASET | {"version": 2, "archived": True},
        {"version": 2, "archived": True},
    ),
    "a correction": (
        lambda c: c.datasets.correct(dataset="d", individual="a", values={"age": 300}),
        REPORT | {"clipped": {"age": 1}, "out_of_domain": {}, "nulls": {}},
        {"clipped": {"age": 1}},
    ),
    "an alarm that rang": (
        lambda c: c.datasets.set_alarm(dataset="d", share=None),
        ALARM | {"share": None, "rang_at_sequence": 7},
        {"share": None, "rang_at_sequence": 7},
    ),
    "a forecast of two items": (
        lambda c: c.datasets.forecast({"dataset": "d", "sigma": 1}),
        FORECAST | {"sigma": [5, 2000]},
        {"sigma": (5.0, 2000.0)},
    ),
    "a principal": (
        lambda c: c.principals.create(role="analyst", name="Ann"),
        KEY | {"id": "p1", "dataset": "d", "allowance_rho": "0.1", "individual": None},
        {"id": "p1", "role": "analyst", "name": "Ann", "key": "k", "dataset": "d", "allowance_rho": Decimal("0.1")},
    ),
    "facts of a principal": (
        lambda c: c.principals.change(principal="p", organisation="Institute"),
        PRINCIPAL | {"purpose": "health"},
        {"purpose": "health", "created_at": AT},
    ),
    "keys of individuals": (
        lambda c: c.principals.create_for(dataset="d", individuals=["ø"])[0],
        [{"individual": "ø", "api_key": "secret"}],
        {"individual": "ø", "api_key": "secret"},
    ),
    "a preview": (
        lambda c: c.queries.preview(dataset="d", sigma=2),
        PREVIEW | {"half_width_95": 3.9, "public_cost": {"time_ms": 2.5, "memory_bytes": 1000, "delay_ms": 10}},
        {"half_width_95": 3.9, "public_cost": sparing.PublicCost(time_ms=2.5, memory_bytes=1000, delay_ms=10.0)},
    ),
    "a release": (lambda c: next(c.queries.list()), page(RELEASE), {"id": "q", "released_at": AT}),
    "no allowance": (
        lambda c: c.allowances.list()[0],
        [{"dataset": "d", "allowance_rho": None, "spent_rho": "0.125", "left_rho": None}],
        {"dataset": "d", "allowance_rho": None, "spent_rho": Decimal("0.125"), "left_rho": None},
    ),
    "an own account": (
        lambda c: c.me.budgets()[0],
        [MINE | {"remaining_rho": "0.4", "promise_rho": "0.7", "promise_epsilon": 4.5}],
        {
            "remaining_rho": Decimal("0.4"),
            "delta": Decimal("0.000001"),
            "promise_rho": Decimal("0.7"),
            "promise_epsilon": 4.5,
            "promise_of": "largest_limit",
            "epsilon_so_far_time_uniform": None,
            "paused": False,
            "queries_charged": 0,
            "queries_left_out": 0,
            "promise_epsilon_advisory": None,
        },
    ),
    "an own account that is paused": (
        lambda c: c.me.pause(dataset="d"),
        MINE | {"paused": True, "queries_charged": 7, "queries_left_out": 2},
        {"paused": True, "queries_charged": 7, "queries_left_out": 2},
    ),
    "an own receipt": (
        lambda c: next(c.me.receipts()),
        page(RECEIPT),
        {"outcome": "charged", "charged_rho": Decimal("0.1")},
    ),
}


@pytest.mark.parametrize(("act", "reply", "facts"), READ.values(), ids=READ)
def test_a_reply_is_read(act: Act, reply: Any, facts: dict[str, object], client: Client, script: Any) -> None:
    """Decimals are exact, times have their zone, and what the service may leave out has its default."""
    script.steps = [httpx.Response(200, json=reply)]
    found = act(client)

    assert {name: getattr(found, name) for name in facts} == facts
    assert "secret" not in repr(found)


def test_ask(client: Client, script: Any, answer: Any) -> None:
    """A query on the wire, and its whole answer."""
    script.steps = [httpx.Response(200, json=answer), httpx.Response(200, json=answer)]

    found = client.queries.ask(dataset="d", where=col("age") >= 40, sigma=20, idempotency_key="k1")

    assert sent(script) == (
        "POST",
        "/v1/datasets/d/queries",
        {"version": 1, "select": [{"count": {}}], "where": {"ge": [{"col": "age"}, 40]}, "noise": {"sigma": 20}},
    )
    assert found == sparing.Answer(
        id="0190-a",
        sequence=7,
        values=(41.5,),
        labels=({"select": "count"},),
        axes=({"select": [{"select": "count", "offset": 0, "size": 1}]},),
        sigma=20.0,
        grid=0.5,
        dimension=1,
        half_width_95=39.2,
        worst_case_rho=Decimal("0.00125"),
        coverage_certified=True,
        reused=False,
        epoch=1,
        released_at=datetime(2026, 11, 21, 9, tzinfo=UTC),
        table="people",
        idempotency_key="k1",
    )
    assert client.queries.get(query="0190-a").idempotency_key is None
    assert sent(script, 1)[:2] == ("GET", "/v1/queries/0190-a")


def test_a_vector_has_no_single_value(client: Client, script: Any, answer: Any) -> None:
    """`.value` is for answers with one coordinate; it never picks one."""
    axes = [{"column": "group", "size": 2}, *answer["axes"]]
    script.steps = [httpx.Response(200, json=answer | {"values": [1, 2.5], "dimension": 2, "labels": [], "axes": axes})]

    found = client.queries.ask(dataset="d", sigma=1)

    assert found.values == (1.0, 2.5)
    with pytest.raises(ValueError, match="2 values"):
        _ = found.value


@pytest.mark.parametrize("given", [{}, {"limit_rho": 0, "pause": True}])
def test_lower_takes_a_limit_or_a_pause(given: dict[str, Any], client: Client) -> None:
    """Zero is a limit, not an absent one."""
    with pytest.raises(ValueError, match="either limit_rho or pause"):
        client.me.lower(dataset="d", **given)


Wrong = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda body: {k: v for k, v in body.items() if k != "sigma"}, "sigma is missing"),
        (lambda body: body | {"values": 3}, "values is a int"),
        (lambda body: body | {"values": ["1"]}, "values is a str"),
        (lambda body: body | {"sequence": True}, "sequence is a bool"),
        (lambda body: body | {"worst_case_rho": "much"}, "worst_case_rho is not a number"),
        (lambda body: body | {"released_at": "yesterday"}, "released_at is not a time"),
        (lambda body: body | {"reused": 1}, "reused is a int"),
    ],
)
def test_a_misshapen_response_names_the_member(
    change: Wrong, complaint: str, client: Client, script: Any, answer: Any
) -> None:
    """A response is as documented, or an error that names the place."""
    script.steps = [httpx.Response(200, json=change(answer))]

    with pytest.raises(sparing.APIReplyError, match=complaint):
        client.queries.ask(dataset="d", sigma=1)


def test_an_individual_reads_its_record(client: Client, script: Any) -> None:
    """The record is as the service sends it."""
    record = {"dataset": "d", "individual": "ann", "tables": {"people": {"count": 1, "rows": [{"age": 40}]}}}
    script.steps = [httpx.Response(200, json=record)]
    assert client.me.record(dataset="d") == record


@pytest.mark.parametrize(
    ("form", "kind"), [("csv", "text/csv; charset=utf-8"), ("parquet", "application/vnd.apache.parquet")]
)
def test_accounts_are_exported_as_a_file(client: Client, script: Any, form: Any, kind: str) -> None:
    """Its bytes as they are; another form is refused before anything is sent."""
    script.steps = [httpx.Response(200, content=b"key,\xff", headers={"Content-Type": kind}), httpx.Response(204)]

    assert client.datasets.export_budgets(dataset="d", form=form) == b"key,\xff"
    assert script.requests[0].headers["Accept"] == kind.partition(";")[0]
    with pytest.raises(sparing.APIReplyError, match="not a file"):
        client.datasets.export_budgets(dataset="d")
    with pytest.raises(ValueError, match="csv or parquet, got 'xlsx'"):
        client.datasets.export_budgets(dataset="d", form="xlsx")  # type: ignore[arg-type]
