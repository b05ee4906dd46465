"""Every verb through both clients: the same requests, the same waits and the same outcome, whatever goes wrong."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparing import (
    ActRow,
    Alarm,
    Allowance,
    AnalystRow,
    Answer,
    AsyncClient,
    BudgetRow,
    BudgetSummary,
    Chain,
    Client,
    Dataset,
    DatasetRow,
    Forecast,
    IndividualBudget,
    IndividualKey,
    LedgerRow,
    Preview,
    PrincipalKey,
    PrincipalRow,
    Receipt,
    ReleaseRow,
    RunDivergence,
    SummaryHistory,
    UploadReport,
    Verification,
)

Json = dict[str, Any]

AT = "2026-11-21T09:00:00Z"
RHO: Json = {"budget_rho": "1", "spent_rho": "0", "remaining_rho": "1"}
NOISY: Json = {"sigma": 1, "grid": 1, "dimension": 1, "worst_case_rho": "0.1"}
ANSWER: Json = (
    {"id": "q", "sequence": 1, "values": [1.5], "labels": [{"select": "count"}], "half_width_95": 2}
    | {"axes": [{"select": [{"select": "count", "offset": 0, "size": 1}]}]}
    | {"coverage_certified": True, "reused": False, "epoch": 1, "released_at": AT}
    | NOISY
)
PREVIEW: Json = {"half_width_95": 2} | NOISY
RELEASE: Json = {"id": "q", "dataset": "d", "sequence": 1, "query": {}, "released_at": AT, "epoch": 1} | NOISY
TABLES: Json = {"t": {"kind": "individuals", "key": "id", "columns": {"age": {}}}}
DATASET: Json = {"name": "d", "guarantee": {}, "budget_rho": "1", "budget_units": 1, "mu": 1} | {
    "capacity": 9,
    "rule": "skip",
    "tables": TABLES,
}
ACCOUNT: Json = {"key": "a", "spent_units": 0, "budget_units": 1} | RHO
SUMMARY: Json = {"sequence": 1, "individuals": 1, "exhausted": 0, "remaining_share_histogram": [], "quantiles": {}}
ENTRY: Json = (
    {"sequence": 1, "query_id": "q", "analyst": "Ann", "query": {}, "asked_at": AT, "epoch": 1, "is_checkable": True}
    | dict.fromkeys(["format", "kind", "mechanism", "grid_log2", "analyst_id", "query_sha256", "query_hash"], 1)
    | dict.fromkeys(["worst_case_units", "worst_case_total_units", "values_sha256"], "1")
    | dict.fromkeys(["previous_hash", "hash", "private_digest"], "00")
    | NOISY
)
ACT: Json = {"number": 1, "act": "epoch", "sequence": 1, "at": AT}
PRINCIPAL: Json = {"id": "p", "role": "analyst", "name": "Ann", "created_at": AT}
KEY: Json = {"id": "p", "role": "analyst", "name": "Ann", "key": "k"}
MINE: Json = (
    {"dataset": "d", "share_spent": 0, "promise_rho": "1", "promise_epsilon": 1, "promise_epsilon_replace_one": 2}
    | {"promise_of": "largest_limit", "epsilon_so_far_time_uniform": None, "delta": "1e-6"}
    | RHO
)
DIVERGENCE: Json = {"notice": "No.", "individual": "a", "sequence": 1, "unit": "rho", "spent_rho": "0.1"} | {
    "epsilon": 0.4,
    "delta": "1e-6",
}
RECEIPT: Json = {"query_id": "q", "asked": {}, "at": AT, "charged_rho": "0.1", "outcome": "charged"}
HISTORY: Json = {
    "quantiles": [0.5],
    "points": [
        {"seq": 1, "at": AT, "cannot_afford": None, "quantiles": [0.9]}
        | dict.fromkeys(["individuals", "exhausted", "paused"], 1)
    ],
}
FORECAST: Json = (
    {"sequence": 1, "words": "", "touched": 2, "active": 1}
    | NOISY
    | {"curve": [{"queries": 0, "share": 0.5}], "dropped_after": [{"share": 0.5, "queries": None}]}
)
ALARM: Json = {"share": 0.1, "rang_at_sequence": None}
ANALYST: Json = {"id": "p", "name": "Ann", "worst_case_spent_rho": "0.1"}
REPORT: Json = {"rows": 1, "individuals": 1}
REFUSED: Json = {"type": "urn:sparing:problem:invalid-request", "title": "No.", "status": 422, "detail": "No."}
ONE: Any = {"dataset": "d", "sigma": 1}
CSV: Json = {"dataset": "d", "table": "t", "data": b"ID,age\na,1\n", "columns": {"ID": "id"}, "idempotency_key": "k"}
PARTS: Json = {
    "dataset": "d",
    "table": "t",
    "data": b"ID,age\na,1\nb,2\n",
    "columns": {"ID": "id"},
    "rows": 1,
    "run": "r",
}

Verb = tuple[Callable[[Client], Any], list[object], type]


def pages(item: object) -> list[object]:
    """A listing of three items in two pages."""
    return [{"items": [item, item], "next": "c"}, {"items": [item], "next": None}]


# By verb: how it is called, the documents of the replies, and the type of the result, or of the first of its items.
VERBS: dict[str, Verb] = {
    "queries.ask": (lambda c: c.queries.ask(**ONE, idempotency_key="k"), [ANSWER], Answer),
    "queries.preview": (lambda c: c.queries.preview(**ONE), [PREVIEW], Preview),
    "queries.batch": (
        lambda c: list(c.queries.batch([ONE] * 3, idempotency_keys=["a", "b", "c"], batch_size=2)),
        [{"answers": [ANSWER, REFUSED]}, {"answers": [ANSWER]}],
        Answer,
    ),
    "queries.get": (lambda c: c.queries.get(query="q"), [ANSWER], Answer),
    "queries.list": (lambda c: list(c.queries.list()), pages(RELEASE), ReleaseRow),
    "queries.cancel": (lambda c: c.queries.cancel(dataset="d", idempotency_key="k"), [None], type(None)),
    "datasets.create": (lambda c: c.datasets.create(name="d", tables={}, rho=1), [DATASET], Dataset),
    "datasets.list": (lambda c: list(c.datasets.list()), pages(DATASET | {"table_names": ["people"]}), DatasetRow),
    "datasets.get": (lambda c: c.datasets.get(dataset="d"), [DATASET], Dataset),
    "datasets.upload": (lambda c: c.datasets.upload(**CSV), [DATASET, REPORT], UploadReport),
    "datasets.upload_parts": (lambda c: c.datasets.upload_parts(**PARTS), [DATASET, REPORT] * 2, UploadReport),
    "datasets.budgets": (lambda c: list(c.datasets.budgets(dataset="d")), pages(ACCOUNT), BudgetRow),
    "datasets.budget_summary": (lambda c: c.datasets.budget_summary(dataset="d"), [SUMMARY], BudgetSummary),
    "datasets.budget_history": (lambda c: c.datasets.budget_history(dataset="d"), [HISTORY], SummaryHistory),
    "datasets.export_budgets": (lambda c: c.datasets.export_budgets(dataset="d"), [b"key\n"], bytes),
    "datasets.forecast": (lambda c: c.datasets.forecast(ONE), [FORECAST], Forecast),
    "datasets.alarm": (lambda c: c.datasets.alarm(dataset="d"), [ALARM], Alarm),
    "datasets.set_alarm": (lambda c: c.datasets.set_alarm(dataset="d", share=0.1), [ALARM], Alarm),
    "datasets.verify": (lambda c: c.datasets.verify(dataset="d"), [{"state": "running"}], Verification),
    "datasets.verification": (lambda c: c.datasets.verification(dataset="d"), [{"state": "clean"}], Verification),
    "datasets.receipts": (lambda c: list(c.datasets.receipts(dataset="d", individual="a")), pages(RECEIPT), Receipt),
    "datasets.divergence": (lambda c: c.datasets.divergence(dataset="d", individual="a"), [DIVERGENCE], RunDivergence),
    "datasets.erasure_requests": (lambda c: c.datasets.erasure_requests(dataset="d"), [["a"]], str),
    "datasets.analysts": (lambda c: c.datasets.analysts(dataset="d"), [[ANALYST]], AnalystRow),
    "datasets.ledger": (lambda c: list(c.datasets.ledger(dataset="d")), pages(ENTRY), LedgerRow),
    "datasets.audit": (lambda c: c.datasets.audit(dataset="d"), pages(ENTRY), Chain),
    "datasets.account": (lambda c: c.datasets.account(dataset="d", individual="a"), [ACCOUNT], BudgetRow),
    "datasets.acts": (lambda c: list(c.datasets.acts(dataset="d")), pages(ACT), ActRow),
    "datasets.open_epoch": (lambda c: c.datasets.open_epoch(dataset="d"), [{"epoch": 2}], int),
    "datasets.extend": (lambda c: c.datasets.extend(dataset="d", capacity=10), [DATASET], Dataset),
    "datasets.correct": (
        lambda c: c.datasets.correct(dataset="d", individual="a", values={"age": 3}),
        [REPORT],
        UploadReport,
    ),
    "datasets.archive": (lambda c: c.datasets.archive(dataset="d", rows="keep"), [DATASET], Dataset),
    "datasets.delete": (lambda c: c.datasets.delete(dataset="d"), [None], type(None)),
    "datasets.erase": (lambda c: c.datasets.erase(dataset="d", individual="a"), [None], type(None)),
    "principals.create": (lambda c: c.principals.create(role="auditor", name="Ann"), [KEY], PrincipalKey),
    "principals.create_for": (
        lambda c: c.principals.create_for(dataset="d", individuals=["a"]),
        [[{"individual": "a", "api_key": "k"}]],
        IndividualKey,
    ),
    "principals.list": (lambda c: list(c.principals.list()), pages(PRINCIPAL), PrincipalRow),
    "principals.change": (lambda c: c.principals.change(principal="p", name="Bo"), [PRINCIPAL], PrincipalRow),
    "principals.replace_key": (lambda c: c.principals.replace_key(principal="p"), [KEY], PrincipalKey),
    "principals.revoke": (lambda c: c.principals.revoke(principal="p"), [None], type(None)),
    "allowances.list": (lambda c: c.allowances.list(), [[{"dataset": "d", "spent_rho": "0"}]], Allowance),
    "me.budgets": (lambda c: c.me.budgets(), [[MINE]], IndividualBudget),
    "me.receipts": (lambda c: list(c.me.receipts()), pages(RECEIPT), Receipt),
    "me.lower": (lambda c: c.me.lower(dataset="d", pause=True), [MINE], IndividualBudget),
    "me.pause": (lambda c: c.me.pause(dataset="d"), [MINE], IndividualBudget),
    "me.erasure_requested": (lambda c: c.me.erasure_requested(dataset="d"), [{"requested": True}], bool),
    "me.resume": (lambda c: c.me.resume(dataset="d"), [MINE], IndividualBudget),
    "me.record": (lambda c: c.me.record(dataset="d"), [{"tables": {}}], dict),
    "me.request_erasure": (lambda c: c.me.request_erasure(dataset="d"), [{}], type(None)),
    "sql": (lambda c: c.sql("SELECT COUNT(*) FROM t", **ONE, idempotency_key="k"), [ANSWER], Answer),
    "query.preview": (lambda c: c.dataset("d").query().noise(sigma=1).preview(), [PREVIEW], Preview),
    "query.run": (lambda c: c.dataset("d").query().noise(sigma=1).run(idempotency_key="k"), [ANSWER], Answer),
    "dataset.describe": (lambda c: c.dataset("d").describe(), [DATASET], Dataset),
}
LOST = [
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.ReadTimeout,
    httpx.ReadError,
    httpx.RemoteProtocolError,
    httpx.WriteError,
    httpx.PoolTimeout,
    httpx.TooManyRedirects,
]
STATUSES = [301, 400, 401, 403, 404, 409, 410, 413, 422, 429, 500, 502, 503, 504]
Refusal = tuple[int, str | None]
Fault = type[httpx.RequestError] | Refusal | bytes | None
FAULTS: st.SearchStrategy[Fault] = st.one_of(
    st.none(),
    st.sampled_from([503, 429]).map(lambda status: (status, None)),
    st.tuples(st.sampled_from(STATUSES), st.sampled_from([None, "2", "86400", "soon"])),
    st.sampled_from(LOST),
    st.sampled_from([b"", b"<html>", b"[]", b"{}", b'{"items": 1}']),
)


class Service:
    """Fails as told, in order, and answers all other requests with the documents."""

    def __init__(self, faults: Iterable[Fault], documents: Iterable[object]) -> None:
        self._faults, self._documents = iter(faults), iter(documents)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        fault = next(self._faults, None)
        match fault:
            case None:
                document = next(self._documents, None)
                if isinstance(document, bytes):
                    return httpx.Response(200, content=document, headers={"Content-Type": "text/csv"})
                return httpx.Response(204) if document is None else httpx.Response(200, json=document)
            case bytes():
                return httpx.Response(200, content=fault)
            case (status, retry_after):
                return httpx.Response(status, headers={} if retry_after is None else {"Retry-After": retry_after})
            case _:
                raise fault("lost", request=request)


def told(outcome: Any) -> Any:
    """An outcome as something that can be compared: exceptions by all that they tell."""
    if isinstance(outcome, list):
        return [told(each) for each in outcome]
    if not isinstance(outcome, Exception):
        return outcome
    return (type(outcome), str(outcome), vars(outcome), type(outcome.__cause__))


def seen(script: Any) -> list[tuple[Any, ...]]:
    """All that the service saw, and the waits."""
    requests = zip(script.requests, script.bodies, strict=True)
    sent = [(request.method, str(request.url), dict(request.headers), body) for request, body in requests]
    return [*sent, tuple(script.slept_s)]


def played(play: Any, verb: str, faults: Sequence[Fault], kind: type, **options: Any) -> tuple[Any, Any]:
    """One verb against such a service: the outcome and what was seen."""
    act, documents, _ = VERBS[verb]
    service = Service(faults, documents)
    outcome, script = play(kind, [service] * 100, act, **{"rng": random.Random(7).random, **options})
    return told(outcome), seen(script)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_its_result(verb: str, client: Client, script: Any) -> None:
    """As many requests as there are documents, none of which is left over."""
    act, documents, expected = VERBS[verb]
    service = Service([], documents)
    script.steps = [service] * 9

    found = act(client)

    assert isinstance(found[0] if isinstance(found, list | tuple) else found, expected)
    assert len(script.requests) == len(documents)


def test_no_verb_is_missing() -> None:
    """The table above has every public method of every resource."""
    with Client(base_url="https://sparing.test", api_key="k", environ={}) as client:
        resources = {name: found for name, found in vars(client).items() if not name.startswith("_")}
    assert set(resources) == {"queries", "datasets", "principals", "allowances", "me"}
    verbs = {f"{name}.{verb}" for name, found in resources.items() for verb in dir(found) if not verb.startswith("_")}
    assert verbs == {verb for verb in VERBS if verb.partition(".")[0] in resources}


@pytest.mark.parametrize("verb", VERBS)
@settings(max_examples=30)
@given(faults=st.lists(FAULTS, max_size=8))
def test_both_clients_do_the_same_whatever_goes_wrong(verb: str, play: Any, faults: list[Fault]) -> None:
    """The same requests, headers and bodies, the same waits, and the same result or exception."""
    assert played(play, verb, faults, Client) == played(play, verb, faults, AsyncClient)


@pytest.mark.parametrize("other", [{"max_retries": 3}, {"rng": lambda: 0.5}, {"api_key": "other"}])
def test_another_policy_would_be_noticed(other: dict[str, Any], play: Any) -> None:
    """The law above compares what it says."""
    faults: list[Fault] = [httpx.ReadError, (503, "2"), (503, None), (502, None), (409, None)]
    one, same, another = (
        played(play, "queries.ask", faults, kind, **options)
        for kind, options in ((Client, {}), (AsyncClient, {}), (AsyncClient, other))
    )
    assert one == same
    assert one[1] != another[1]
