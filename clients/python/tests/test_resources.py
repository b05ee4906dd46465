"""Each verb sends the documented request and reads the documented response."""

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
from sparing import Client, col

DATASET = {
    "name": "web-visits",
    "guarantee": {"epsilon": "1", "delta": "0.000001"},
    "budget_rho": "0.028",
    "budget_units": 30_000_000_000,
    "mu": 0.2367,
    "limit_floor_rho": "0.028",
    "capacity": 50_000,
    "rule": "skip",
    "epoch": 1,
    "tables": {"people": {"kind": "individuals", "key": "person_id", "columns": {}}},
    "sequence": 0,
    "individuals": 2,
    "rows": {"people": 2},
}


def sent(script: Any, number: int = 0) -> tuple[str, str, Any]:
    """Method, path with query, and JSON body of the n-th request."""
    request = script.requests[number]
    body = script.bodies[number]
    return request.method, request.url.raw_path.decode(), json.loads(body) if body else None


@pytest.mark.parametrize("stated", ["gdp", {"kind": "rdp", "order": 16.0, "conversion": "optimal"}])
def test_a_dataset_of_any_accounting_is_registered_and_read(client: Client, script: Any, stated: Any) -> None:
    """A word, or an object; pure differential privacy has an epsilon alone."""
    script.steps = [httpx.Response(201, json={**DATASET, "accounting": stated, "guarantee": {"epsilon": "1"}})]
    made = client.datasets.create(name="web-visits", epsilon=1, tables={}, accounting=stated)

    assert sent(script)[2]["accounting"] == stated
    assert sent(script)[2]["guarantee"] == {"epsilon": "1"}
    assert made.accounting == stated


def test_create_a_dataset(client: Client, script: Any) -> None:
    """Decimals are sent as text, so that a guarantee is not rounded."""
    script.steps = [httpx.Response(201, json=DATASET)]
    tables = {"people": {"kind": "individuals", "key": "person_id", "columns": {}}}

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


@pytest.mark.parametrize("stated", ["gdp", {"kind": "zcdp", "conversion": "optimal"}, {"kind": "rdp", "order": 16.0}])
def test_an_accounting_is_read_as_a_word_or_an_object(stated: Any, client: Client, script: Any) -> None:
    """The service states the default by its name and every other one with its kind."""
    script.steps = [httpx.Response(200, json={**DATASET, "accounting": stated})]

    assert client.datasets.get(dataset="web-visits").accounting == stated


@pytest.mark.parametrize("guarantee", [{}, {"delta": 0.1}, {"epsilon": 1, "delta": 0.1, "rho": 1}])
def test_a_guarantee_is_stated_in_one_of_two_ways(guarantee: dict[str, Any], client: Client) -> None:
    """A partial guarantee is refused before a request is sent."""
    with pytest.raises(ValueError, match="epsilon and delta, or rho"):
        client.datasets.create(name="d", tables={}, **guarantee)


def test_read_datasets_as_an_analyst(client: Client, script: Any) -> None:
    """The counts are for curators; an analyst's view has None there."""
    public = {name: value for name, value in DATASET.items() if name not in ("sequence", "individuals", "rows")}
    row = {name: value for name, value in public.items() if name != "tables"} | {"table_names": ["people"]}
    script.steps = [httpx.Response(200, json=public), httpx.Response(200, json={"items": [row], "next": None})]

    one, (listed,) = client.datasets.get(dataset="web-visits"), client.datasets.list()

    assert (listed.name, listed.budget_rho, listed.table_names) == (one.name, one.budget_rho, ("people",))
    assert (one.individuals, one.rows, one.sequence) == (None, None, None)
    assert (listed.individuals, listed.sequence) == (None, None)
    assert [sent(script, number)[1] for number in (0, 1)] == ["/v1/datasets/web-visits", "/v1/datasets?limit=500"]


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


def test_an_upload_tried_again_starts_anew(client: Client, script: Any, tmp_path: Path) -> None:
    """The second try sends the whole file, not the rest left by the first; a plain file's length is announced."""
    script.steps = [httpx.ConnectError("refused"), httpx.Response(200, json={"rows": 1, "individuals": 1})]
    where = tmp_path / "rows.csv"
    where.write_bytes(CSV)

    client.datasets.upload(dataset="d", table="t", file=where, content_type="text/csv; charset=utf-8")

    assert script.bodies == [CSV] * 2
    assert script.requests[1].headers["Content-Length"] == str(len(CSV))
    assert script.requests[1].headers["Content-Type"] == "text/csv; charset=utf-8"


def test_every_try_of_an_upload_carries_one_key(client: Client, script: Any) -> None:
    """After a time-out and a 503 too; a fresh key for each upload, or the given one; the exception carries it."""
    report = {"rows": 1, "individuals": 1}
    script.steps = [httpx.ReadTimeout("late"), httpx.Response(503), *[httpx.Response(200, json=report)] * 2]
    client.datasets.upload(dataset="d", table="t", file=CSV)
    client.datasets.upload(dataset="d", table="t", file=CSV)
    keys = [request.headers["Idempotency-Key"] for request in script.requests]
    assert keys[0] == keys[1] == keys[2] != keys[3]

    script.steps += [httpx.Response(422, json={"type": "urn:sparing:problem:idempotency-key-reused"})]
    with pytest.raises(sparing.InvalidRequestError) as refused:
        client.datasets.upload(dataset="d", table="t", file=CSV, idempotency_key="mine")
    assert (refused.value.idempotency_key, script.requests[4].headers["Idempotency-Key"]) == ("mine", "mine")


def test_budgets_turn_their_pages_by_themselves(client: Client, script: Any) -> None:
    """Pages are fetched as they are consumed, each with the cursor of the one before."""
    row = {"budget_rho": "0.5", "spent_rho": "0.1", "remaining_rho": "0.4", "spent_units": 1, "budget_units": 5}
    counted = {"queries_charged": 7, "queries_left_out": 2}
    script.steps = [
        httpx.Response(200, json={"items": [{"key": "1", **row}, {"key": "2", **row}], "next": "c&1"}),
        httpx.Response(200, json={"items": [{"key": "3", **row, **counted}], "next": None}),
    ]

    rows = client.datasets.budgets(dataset="d", page_size=2)
    assert script.requests == []
    assert next(rows).key == "1"
    assert len(script.requests) == 1
    rest = [(row.key, row.queries_charged, row.queries_left_out) for row in rows]
    assert rest == [("2", None, None), ("3", 7, 2)]

    assert [sent(script, number)[1] for number in (0, 1)] == [
        "/v1/datasets/d/budgets?limit=2",
        "/v1/datasets/d/budgets?limit=2&cursor=c%261",
    ]


def test_acts_turn_their_pages_by_themselves(client: Client, script: Any) -> None:
    """Newest first, for known and unknown kinds of acts."""
    limit = {"number": 3, "act": "limit", "sequence": 8, "at": "2026-11-21T09:30:00Z", "individual": "ann"}
    erasure = {"number": 2, "act": "erase", "sequence": 7, "at": "2026-11-21T09:29:00Z", "individual": None}
    script.steps = [
        httpx.Response(200, json={"items": [{**limit, "detail": {"limit_rho": "0.5"}}], "next": "c"}),
        httpx.Response(200, json={"items": [{**erasure, "detail": {}}], "next": None}),
    ]

    first, second = client.datasets.acts(dataset="d", page_size=1)

    assert first == sparing.ActRow(
        number=3,
        act="limit",
        sequence=8,
        at=datetime(2026, 11, 21, 9, 30, tzinfo=UTC),
        individual="ann",
        detail={"limit_rho": "0.5"},
    )
    assert (second.act, second.individual, second.detail) == ("erase", None, {})
    assert [sent(script, number)[1] for number in (0, 1)] == [
        "/v1/datasets/d/acts?limit=1",
        "/v1/datasets/d/acts?limit=1&cursor=c",
    ]


def test_budget_summary(client: Client, script: Any) -> None:
    """The JSON members `from` and `to` are renamed, since `from` is a Python keyword."""
    script.steps = [
        httpx.Response(
            200,
            json={
                "sequence": 9,
                "individuals": 3,
                "exhausted": 1,
                "remaining_share_histogram": [{"low": 0, "high": 0.1, "individuals": 3}],
                "quantiles": {"0.5": 0.25},
                "paused": 2,
            },
        )
    ]

    assert client.datasets.budget_summary(dataset="d") == sparing.BudgetSummary(
        sequence=9,
        individuals=3,
        exhausted=1,
        remaining_share_histogram=(sparing.ShareBin(low=0.0, high=0.1, individuals=3),),
        quantiles={"0.5": 0.25},
        paused=2,
    )


def test_ledger(client: Client, script: Any) -> None:
    """Times are timezone-aware, charges exact."""
    row = {
        "sequence": 1,
        "query_id": "q",
        "analyst": "Ann",
        "query": {"version": 1},
        "sigma": 18,
        "grid": 1.0,
        "dimension": 1,
        "worst_case_rho": "0.001",
        "charged": 10,
        "left_out": 2,
        "asked_at": "2026-11-21T09:00:00Z",
        "epoch": 1,
        "previous_hash": "00",
        "hash": "ff",
    }
    script.steps = [httpx.Response(200, json={"items": [row], "next": None})]

    (found,) = client.datasets.ledger(dataset="d")

    assert (found.worst_case_rho, found.sigma, found.left_out) == (Decimal("0.001"), 18.0, 2)
    assert found.asked_at == datetime(2026, 11, 21, 9, tzinfo=UTC)


def test_an_auditor_reads_the_ledger(client: Client, script: Any) -> None:
    """Without the numbers of people, and without a hash that commits to them."""
    row = {
        "sequence": 1,
        "query_id": "q",
        "analyst": "Ann",
        "query": {"version": 1},
        "words": "count of people",
        "sigma": 18,
        "grid": 1.0,
        "dimension": 1,
        "worst_case_rho": "0.001",
        "asked_at": "2026-11-21T09:00:00Z",
        "epoch": 1,
        "previous_hash": "00",
        "hash": "01",
        "is_checkable": True,
    }
    script.steps = [httpx.Response(200, json={"items": [row], "next": None})]

    (found,) = client.datasets.ledger(dataset="d")

    assert (found.charged, found.left_out, found.hash, found.words) == (None, None, "01", "count of people")


def test_epochs_and_erasure(client: Client, script: Any) -> None:
    """An individual's key may hold any character; it stays one parameter."""
    script.steps = [httpx.Response(201, json={"epoch": 2}), httpx.Response(204)]

    assert client.datasets.open_epoch(dataset="d") == 2
    client.datasets.erase(dataset="d", individual="a/b ?#")

    assert sent(script, 0) == ("POST", "/v1/datasets/d/epochs", None)
    assert sent(script, 1) == ("DELETE", "/v1/datasets/d/individual?individual=a%2Fb+%3F%23", None)


EXTENDED = {
    "name": "d",
    "guarantee": {"rho": "1"},
    "budget_rho": "1",
    "budget_units": 1,
    "mu": 1.4,
    "capacity": 10,
    "rule": "skip",
    "tables": {},
    "version": 2,
    "archived": True,
}


def test_changes_of_a_dataset(client: Client, script: Any) -> None:
    """An argument that is not given is not sent; a correction is sent as it is."""
    report = {"rows": 1, "individuals": 0, "clipped": {"age": 1}, "out_of_domain": {}, "nulls": {}}
    script.steps = [httpx.Response(200, json=each) for each in (EXTENDED, report, EXTENDED)] + [httpx.Response(204)]

    assert client.datasets.extend(dataset="d", capacity=10).version == 2
    assert client.datasets.correct(dataset="d", individual="a/b", values={"age": 300}).clipped == {"age": 1}
    assert client.datasets.archive(dataset="d", rows="keep").archived
    client.datasets.delete(dataset="d")

    assert sent(script, 0) == ("PATCH", "/v1/datasets/d", {"capacity": 10})
    assert sent(script, 1) == ("PATCH", "/v1/datasets/d/individual?individual=a%2Fb", {"age": 300})
    assert sent(script, 2) == ("POST", "/v1/datasets/d/archive", {"rows": "keep"})
    assert sent(script, 3) == ("DELETE", "/v1/datasets/d", None)


def test_principals(client: Client, script: Any) -> None:
    """Missing arguments are not sent: the service decides what each role needs."""
    made = {"id": "p1", "role": "analyst", "name": "Ann", "key": "k", "dataset": "d", "allowance_rho": "0.1"}
    script.steps = [httpx.Response(201, json={**made, "individual": None}), httpx.Response(204)]

    key = client.principals.create(role="analyst", name="Ann", dataset="d", allowance_rho="0.1")
    client.principals.revoke(principal=key.id)

    assert key == sparing.PrincipalKey(
        id="p1", role="analyst", name="Ann", key="k", dataset="d", allowance_rho=Decimal("0.1")
    )
    assert sent(script, 0) == (
        "POST",
        "/v1/principals",
        {"role": "analyst", "name": "Ann", "dataset": "d", "allowance_rho": "0.1"},
    )
    assert sent(script, 1) == ("DELETE", "/v1/principals/p1", None)


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


def test_preview_list_and_allowances(client: Client, script: Any) -> None:
    """The analyst's other calls; none of them needs an idempotency key."""
    preview = {"dimension": 1, "grid": 1, "sigma": 2, "half_width_95": 3.9, "worst_case_rho": "0.125", "canonical": {}}
    cost = {"time_ms": 2.5, "memory_bytes": 1000, "delay_ms": 10}
    release = {
        "id": "q",
        "dataset": "d",
        "sequence": 1,
        "query": {},
        "sigma": 2,
        "dimension": 1,
        "worst_case_rho": "0.125",
        "released_at": "2026-11-21T09:00:00Z",
        "epoch": 1,
    }
    allowance = {"dataset": "d", "allowance_rho": None, "spent_rho": "0.125", "left_rho": None}
    script.steps = [
        httpx.Response(200, json={**preview, "public_cost": cost}),
        httpx.Response(200, json={"items": [release], "next": None}),
        httpx.Response(200, json=[allowance]),
    ]

    found = client.queries.preview(dataset="d", sigma=2)
    assert found.half_width_95 == 3.9
    assert found.public_cost == sparing.PublicCost(time_ms=2.5, memory_bytes=1000, delay_ms=10.0)
    assert [row.id for row in client.queries.list(page_size=10)] == ["q"]
    assert client.allowances.list() == (sparing.Allowance(dataset="d", spent_rho=Decimal("0.125")),)

    assert [sent(script, number)[1] for number in range(3)] == [
        "/v1/datasets/d/queries/preview",
        "/v1/queries?limit=10",
        "/v1/allowances",
    ]
    assert script.keys == [None] * 3


def test_my_own_account(client: Client, script: Any) -> None:
    """An individual reads the account, the receipts, and can only ever lower the limit."""
    budget = {
        "dataset": "d",
        "budget_rho": "0.5",
        "spent_rho": "0.1",
        "remaining_rho": "0.4",
        "share_spent": 0.2,
        "promise_rho": "0.7",
        "promise_epsilon": 4.5,
        "promise_epsilon_replace_one": 10.5,
        "promise_of": "largest_limit",
        "epsilon_so_far_time_uniform": None,
        "delta": "1e-6",
    }
    receipt = {"query_id": "q", "asked": {}, "at": "2026-11-21T09:00:00Z", "charged_rho": "0.1", "outcome": "charged"}
    script.steps = [
        httpx.Response(200, json=[budget]),
        httpx.Response(200, json={"items": [receipt], "next": None}),
        httpx.Response(200, json=budget),
        httpx.Response(200, json=budget | {"paused": True, "queries_charged": 7, "queries_left_out": 2}),
        httpx.Response(200, json=budget | {"paused": False}),
    ]

    (mine,) = client.me.budgets()
    (cost,) = client.me.receipts()
    client.me.lower(dataset="d", limit_rho=Decimal("0.2"))
    paused, resumed = client.me.lower(dataset="d", pause=True), client.me.resume(dataset="d")

    assert (mine.paused, paused.paused, resumed.paused) == (False, True, False)
    assert (mine.queries_charged, mine.queries_left_out, mine.promise_epsilon_advisory) == (None, None, None)
    assert (paused.queries_charged, paused.queries_left_out) == (7, 2)
    assert (mine.remaining_rho, mine.delta) == (Decimal("0.4"), Decimal("0.000001"))
    assert (mine.promise_rho, mine.promise_epsilon, mine.promise_of) == (Decimal("0.7"), 4.5, "largest_limit")
    assert mine.epsilon_so_far_time_uniform is None
    assert (cost.outcome, cost.charged_rho) == ("charged", Decimal("0.1"))
    assert sent(script, 2) == ("POST", "/v1/me/budgets/d/lower", {"limit_rho": "0.2"})
    assert sent(script, 3) == ("POST", "/v1/me/budgets/d/lower", {"pause": True})
    assert script.requests[4].url.path == "/v1/me/budgets/d/resume"
    assert script.requests[4].content == b""


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


def test_a_curator_describes_changes_and_hands_out_principals(client: Client, script: Any) -> None:
    """Facts not given are not sent; None is sent as null; keys come back once and not in a repr."""
    at = datetime(2027, 1, 1, tzinfo=UTC)
    made = {"id": "p", "role": "analyst", "name": "Ann", "key": "secret"}
    row = {"id": "p", "role": "analyst", "name": "Ann", "created_at": "2026-11-23T09:00:00Z", "purpose": "health"}
    script.steps = [
        httpx.Response(201, json=made),
        httpx.Response(200, json=row),
        httpx.Response(201, json=made),
        httpx.Response(200, json={"items": [row], "next": None}),
        httpx.Response(201, json=[{"individual": "ø", "api_key": "secret"}]),
    ]

    client.principals.create(role="analyst", name="Ann", purpose="health", allowance_rho=1, expires_at=at)
    changed = client.principals.change(principal="p", allowance_rho=None, organisation="Institute")
    client.principals.replace_key(principal="p")
    (listed,) = client.principals.list()
    (key,) = client.principals.create_for(dataset="d", individuals=["ø"], expires_at=at)

    assert sent(script, 0)[2] == {
        "role": "analyst",
        "name": "Ann",
        "purpose": "health",
        "allowance_rho": "1",
        "expires_at": "2027-01-01T00:00:00+00:00",
    }
    assert sent(script, 1) == ("PATCH", "/v1/principals/p", {"allowance_rho": None, "organisation": "Institute"})
    assert script.requests[2].url.path == "/v1/principals/p/key"
    assert changed == listed
    assert changed.purpose == "health"
    assert sent(script, 4)[2] == ["ø"]
    assert script.requests[4].url.path == "/v1/datasets/d/individuals/keys"
    assert script.requests[4].url.params["expires_at"] == "2027-01-01T00:00:00+00:00"
    assert (key.individual, key.api_key) == ("ø", "secret")
    assert "secret" not in repr(key)


def test_an_individual_reads_its_record_and_asks_to_be_erased(client: Client, script: Any) -> None:
    """The request may be sent again: repeating it changes nothing."""
    record = {"dataset": "d", "individual": "ann", "tables": {"people": {"count": 1, "rows": [{"age": 40}]}}}
    script.steps = [
        httpx.Response(200, json=record),
        httpx.Response(503),
        httpx.Response(202, json={"requested": True}),
    ]
    assert client.me.record(dataset="d") == record
    client.me.request_erasure(dataset="d")
    assert [request.url.path for request in script.requests[1:]] == ["/v1/me/erasure/d"] * 2


def test_a_curator_reads_one_account(client: Client, script: Any) -> None:
    """A key may hold a slash."""
    row = {"key": "a/b", "budget_rho": "1", "spent_rho": "0.5", "remaining_rho": "0.5", "spent_units": 1}
    script.steps = [httpx.Response(200, json=row | {"budget_units": 2})]
    assert client.datasets.account(dataset="d", individual="a/b").spent_rho == Decimal("0.5")
    assert script.requests[0].url.raw_path == b"/v1/datasets/d/individual?individual=a%2Fb"


def test_what_a_curator_watches_is_asked_for_as_documented(client: Client, script: Any) -> None:
    """The alarm is put, a forecast and a verification are posted, and listings carry their filters."""
    alarm = {"share": None, "rang_at_sequence": 7}
    none: dict[str, Any] = {"items": [], "next": None}
    forecast = {"sequence": 1, "words": "", "sigma": [5, 2000], "worst_case_rho": "1", "touched": 2, "active": 1}
    replies = [alarm, forecast | {"curve": [], "dropped_after": []}, {"state": "running"}, none, none, none]
    script.steps = [httpx.Response(200, json=reply) for reply in replies]

    found = client.datasets.set_alarm(dataset="d", share=None)
    future = client.datasets.forecast(client.dataset("d").query().count().sum("spend").noise(sigma=[5, 2000]))
    client.datasets.verify(dataset="d")
    assert list(client.datasets.receipts(dataset="d", individual=7, page_size=9)) == []
    assert list(client.datasets.ledger(dataset="d", search="spend", page_size=9)) == []
    assert list(client.principals.list(role="analyst", dataset="d", search="Ann", page_size=9)) == []

    assert (found.share, found.rang_at_sequence, future.sigma) == (None, 7, (5.0, 2000.0))
    document = client.dataset("d").query().count().sum("spend").noise(sigma=[5, 2000]).json
    assert [sent(script, number) for number in range(6)] == [
        ("PUT", "/v1/datasets/d/alarm", {"share": None}),
        ("POST", "/v1/datasets/d/forecast", document),
        ("POST", "/v1/datasets/d/verification", None),
        ("GET", "/v1/datasets/d/receipts?individual=7&limit=9", None),
        ("GET", "/v1/datasets/d/ledger?search=spend&limit=9", None),
        ("GET", "/v1/principals?role=analyst&dataset=d&search=Ann&limit=9", None),
    ]


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
