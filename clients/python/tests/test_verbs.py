"""Every verb: its request, how far it is repeated, its result, and both clients alike whatever goes wrong."""

import random
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.python.tests.reply_documents import (
    ACCOUNT,
    ACT,
    ALARM,
    ANALYST,
    ANSWER,
    DATASET,
    DIVERGENCE,
    ENTRY,
    FORECAST,
    HISTORY,
    KEY,
    MINE,
    PREVIEW,
    PRINCIPAL,
    RECEIPT,
    REFUSED,
    RELEASE,
    REPORT,
    SUMMARY,
    TICKS,
    Json,
)
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
    ExhaustedCount,
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
from sparing._reply_words import REPLY_TO
from tests.rotation import times

ONE: Any = {"dataset": "d", "sigma": 1}
LATER = datetime(2027, 1, 1, tzinfo=UTC)
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
    "queries.list": (lambda c: list(c.queries.list(page_size=10)), pages(RELEASE), ReleaseRow),
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
    "datasets.forecast": (
        lambda c: c.datasets.forecast(c.dataset("d").query().count().sum("spend").noise(sigma=[5, 2000])),
        [FORECAST],
        Forecast,
    ),
    "datasets.alarm": (lambda c: c.datasets.alarm(dataset="d"), [ALARM], Alarm),
    "datasets.set_alarm": (lambda c: c.datasets.set_alarm(dataset="d", share=None), [ALARM], Alarm),
    "datasets.verify": (lambda c: c.datasets.verify(dataset="d"), [{"state": "running"}], Verification),
    "datasets.verification": (lambda c: c.datasets.verification(dataset="d"), [{"state": "clean"}], Verification),
    "datasets.receipts": (
        lambda c: list(c.datasets.receipts(dataset="d", individual=7, page_size=9)),
        pages(RECEIPT),
        Receipt,
    ),
    "datasets.divergence": (lambda c: c.datasets.divergence(dataset="d", individual="a"), [DIVERGENCE], RunDivergence),
    "datasets.erasure_requests": (lambda c: c.datasets.erasure_requests(dataset="d"), [["a"]], str),
    "datasets.analysts": (lambda c: c.datasets.analysts(dataset="d"), [[ANALYST]], AnalystRow),
    "datasets.ledger": (
        lambda c: list(c.datasets.ledger(dataset="d", search="spend", page_size=9)),
        pages(ENTRY),
        LedgerRow,
    ),
    "datasets.audit": (lambda c: c.datasets.audit(dataset="d"), pages(ENTRY), Chain),
    "datasets.record": (lambda c: c.datasets.record(dataset="d", individual="a/b"), [{"tables": {}}], dict),
    "datasets.account": (lambda c: c.datasets.account(dataset="d", individual="a/b"), [ACCOUNT], BudgetRow),
    "datasets.acts": (lambda c: list(c.datasets.acts(dataset="d", page_size=1)), pages(ACT), ActRow),
    "datasets.open_epoch": (lambda c: c.datasets.open_epoch(dataset="d"), [{"epoch": 2}], int),
    "datasets.extend": (lambda c: c.datasets.extend(dataset="d", capacity=10), [DATASET], Dataset),
    "datasets.correct": (
        lambda c: c.datasets.correct(dataset="d", individual="a/b", values={"age": 300}),
        [REPORT],
        UploadReport,
    ),
    "datasets.archive": (lambda c: c.datasets.archive(dataset="d", rows="keep"), [DATASET], Dataset),
    "datasets.delete": (lambda c: c.datasets.delete(dataset="d"), [None], type(None)),
    "datasets.erase": (lambda c: c.datasets.erase(dataset="d", individual="a/b ?#"), [None], type(None)),
    "principals.create": (
        lambda c: c.principals.create(role="analyst", name="Ann", purpose="health", allowance_rho=1, expires_at=LATER),
        [KEY],
        PrincipalKey,
    ),
    "principals.create_for": (
        lambda c: c.principals.create_for(dataset="d", individuals=["ø"], expires_at=LATER),
        [[{"individual": "a", "api_key": "k"}]],
        IndividualKey,
    ),
    "principals.list": (
        lambda c: list(c.principals.list(role="analyst", dataset="d", search="Ann", page_size=9)),
        pages(PRINCIPAL),
        PrincipalRow,
    ),
    "principals.change": (
        lambda c: c.principals.change(principal="p", allowance_rho=None, organisation="Institute"),
        [PRINCIPAL],
        PrincipalRow,
    ),
    "principals.replace_key": (lambda c: c.principals.replace_key(principal="p"), [KEY], PrincipalKey),
    "principals.revoke": (lambda c: c.principals.revoke(principal="p"), [None], type(None)),
    "allowances.list": (lambda c: c.allowances.list(), [[{"dataset": "d", "spent_rho": "0"}]], Allowance),
    "me.budgets": (lambda c: c.me.budgets(), [[MINE]], IndividualBudget),
    "me.receipts": (lambda c: list(c.me.receipts()), pages(RECEIPT), Receipt),
    "me.lower": (lambda c: c.me.lower(dataset="d", limit_rho=Decimal("0.2")), [MINE], IndividualBudget),
    "me.pause": (lambda c: c.me.pause(dataset="d"), [MINE], IndividualBudget),
    "me.erasure_requested": (lambda c: c.me.erasure_requested(dataset="d"), [{"requested": True}], bool),
    "me.resume": (lambda c: c.me.resume(dataset="d"), [MINE], IndividualBudget),
    "me.record": (lambda c: c.me.record(dataset="d"), [{"tables": {}}], dict),
    "me.request_erasure": (lambda c: c.me.request_erasure(dataset="d"), [{}], type(None)),
    "sql": (lambda c: c.sql("SELECT COUNT(*) FROM t", **ONE, idempotency_key="k"), [ANSWER], Answer),
    "query.preview": (lambda c: c.dataset("d").query().noise(sigma=1).preview(), [PREVIEW], Preview),
    "query.run": (lambda c: c.dataset("d").query().noise(sigma=1).run(idempotency_key="k"), [ANSWER], Answer),
    "dataset.describe": (lambda c: c.dataset("d").describe(), [DATASET], Dataset),
    "dataset.exhausted_curve": (lambda c: c.dataset("d").exhausted_curve(), [TICKS], ExhaustedCount),
}
REPEATED: Final = {"keyed": [429, 503, 409], "read": [429, 503], "once": [429]}
"""How far a request is repeated: the statuses after which it is sent again."""
COUNT: Final = '{"version":1,"select":[{"count":{}}],"noise":{"sigma":1}}'
BOTH: Final = '{"version":1,"select":[{"count":{}},{"sum":{"column":"spend"}}],"noise":{"sigma":[5,2000]}}'
UNTIL: Final = "2027-01-01T00%3A00%3A00%2B00%3A00"
ANN: Final = (
    '{"role":"analyst","name":"Ann","purpose":"health","allowance_rho":"1","expires_at":"2027-01-01T00:00:00+00:00"}'
)
IN_BATCH: Final = f'{{"queries":[{{"idempotency_key":"c","query":{COUNT}}}]}}'
REQUESTS: Final = {
    "queries.ask": f"keyed POST /v1/datasets/d/queries {COUNT}",
    "queries.preview": f"read POST /v1/datasets/d/queries/preview {COUNT}",
    "queries.batch": f"keyed POST /v1/datasets/d/queries/batch {IN_BATCH}",
    "queries.get": "read GET /v1/queries/q",
    "queries.list": "read GET /v1/queries?limit=10",
    "queries.cancel": "once DELETE /v1/datasets/d/queries",
    "datasets.create": 'once POST /v1/datasets {"name":"d","guarantee":{"rho":"1"},"tables":{},"rule":"skip"}',
    "datasets.list": "read GET /v1/datasets?limit=500",
    "datasets.get": "read GET /v1/datasets/d",
    "datasets.upload": "keyed POST /v1/datasets/d/tables/t/rows id,age\na,1",
    "datasets.upload_parts": "keyed POST /v1/datasets/d/tables/t/rows id,age\nb,2",
    "datasets.budgets": "read GET /v1/datasets/d/budgets?limit=500",
    "datasets.budget_summary": "read GET /v1/datasets/d/budgets/summary",
    "datasets.budget_history": "read GET /v1/datasets/d/budgets/history",
    "datasets.export_budgets": "read GET /v1/datasets/d/budgets/export",
    "datasets.forecast": f"read POST /v1/datasets/d/forecast {BOTH}",
    "datasets.alarm": "read GET /v1/datasets/d/alarm",
    "datasets.set_alarm": 'read PUT /v1/datasets/d/alarm {"share":null}',
    "datasets.verify": "read POST /v1/datasets/d/verification",
    "datasets.verification": "read GET /v1/datasets/d/verification",
    "datasets.receipts": "read GET /v1/datasets/d/receipts?individual=7&limit=9",
    "datasets.divergence": "read GET /v1/datasets/d/divergence?individual=a",
    "datasets.erasure_requests": "read GET /v1/datasets/d/erasure-requests",
    "datasets.analysts": "read GET /v1/datasets/d/analysts",
    "datasets.ledger": "read GET /v1/datasets/d/ledger?search=spend&limit=9",
    "datasets.audit": "read GET /v1/datasets/d/ledger?limit=500",
    "datasets.record": "read GET /v1/datasets/d/record?individual=a%2Fb",
    "datasets.account": "read GET /v1/datasets/d/individual?individual=a%2Fb",
    "datasets.acts": "read GET /v1/datasets/d/acts?limit=1",
    "datasets.open_epoch": "once POST /v1/datasets/d/epochs",
    "datasets.extend": 'read PATCH /v1/datasets/d {"capacity":10}',
    "datasets.correct": 'read PATCH /v1/datasets/d/individual?individual=a%2Fb {"age":300}',
    "datasets.archive": 'read POST /v1/datasets/d/archive {"rows":"keep"}',
    "datasets.delete": "once DELETE /v1/datasets/d",
    "datasets.erase": "read DELETE /v1/datasets/d/individual?individual=a%2Fb+%3F%23",
    "principals.create": f"once POST /v1/principals {ANN}",
    "principals.create_for": f'once POST /v1/datasets/d/individuals/keys?expires_at={UNTIL} ["ø"]',
    "principals.list": "read GET /v1/principals?role=analyst&dataset=d&search=Ann&limit=9",
    "principals.change": 'read PATCH /v1/principals/p {"allowance_rho":null,"organisation":"Institute"}',
    "principals.replace_key": "once POST /v1/principals/p/key",
    "principals.revoke": "read DELETE /v1/principals/p",
    "allowances.list": "read GET /v1/allowances",
    "me.budgets": "read GET /v1/me/budgets",
    "me.receipts": "read GET /v1/me/receipts?limit=500",
    "me.lower": 'read POST /v1/me/budgets/d/lower {"limit_rho":"0.2"}',
    "me.pause": 'read POST /v1/me/budgets/d/lower {"pause":true}',
    "me.erasure_requested": "read GET /v1/me/erasure/d",
    "me.resume": "read POST /v1/me/budgets/d/resume",
    "me.record": "read GET /v1/me/record/d",
    "me.request_erasure": "read POST /v1/me/erasure/d",
    "sql": 'keyed POST /v1/datasets/d/queries {"version":1,"select":[{"count":{}}],"from":"t","noise":{"sigma":1}}',
    "query.preview": f"read POST /v1/datasets/d/queries/preview {COUNT}",
    "query.run": f"keyed POST /v1/datasets/d/queries {COUNT}",
    "dataset.describe": "read GET /v1/datasets/d",
    "dataset.exhausted_curve": "read GET /v1/datasets/d/monitor",
}
"""By verb: how far its request is repeated, and its method, address and body."""
WITH_KEY: Final = {"queries.ask", "queries.cancel", "datasets.upload", "datasets.upload_parts", "sql", "query.run"}
"""The verbs whose key is a header; a batch has its keys in the body."""
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


def sent(script: Any) -> list[str]:
    """Method, address and body of each request."""
    requests = zip(script.requests, script.bodies, strict=True)
    return [f"{one.method} {one.url.raw_path.decode()} {body.decode()}".strip() for one, body in requests]


def told(outcome: Any) -> Any:
    """An outcome as something that can be compared: exceptions by all that they tell."""
    if isinstance(outcome, list):
        return [told(each) for each in outcome]
    if not isinstance(outcome, Exception):
        return outcome
    return (type(outcome), str(outcome), vars(outcome), type(outcome.__cause__))


def seen(script: Any) -> list[tuple[Any, ...]]:
    """All that the service saw, and the waits."""
    sent = [
        (request.method, str(request.url), {**request.headers, REPLY_TO.lower(): "random"}, body)
        for request, body in zip(script.requests, script.bodies, strict=True)
    ]
    return [*sent, tuple(script.slept_s)]


def played(play: Any, verb: str, faults: Sequence[Fault], kind: type, **options: Any) -> tuple[Any, Any]:
    """One verb against such a service: the outcome and what was seen."""
    act, documents, _ = VERBS[verb]
    service = Service(faults, documents)
    outcome, script = play(kind, [service] * 100, act, **{"rng": random.Random(7).random, **options})
    return told(outcome), seen(script)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_its_result(verb: str, client: Client, script: Any) -> None:
    """Each document is asked for once, and none is left over."""
    act, documents, expected = VERBS[verb]
    service = Service([], documents)
    script.steps = [service] * 9

    found = act(client)

    assert isinstance(found[0] if isinstance(found, list | tuple) else found, expected)
    assert len(script.requests) == len(documents)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_sends_its_request(verb: str, client: Client, script: Any) -> None:
    """Arguments that are not given are not sent; an individual's key is one parameter, whatever characters it has."""
    act, documents, _ = VERBS[verb]
    script.steps = [Service([], documents)] * 9

    act(client)

    assert sent(script)[-1].replace("&cursor=c", "") == REQUESTS[verb].partition(" ")[2]
    assert (script.keys[-1] is not None) == (verb in WITH_KEY)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_repeated_as_far_as_it_is_safe(verb: str, play: Any) -> None:
    """Requests with a key after a conflict too, those without an effect where the service is away, others after 429."""
    _, documents, _ = VERBS[verb]

    def is_repeated(status: int) -> bool:
        before: list[Fault] = [None] * (len(documents) - 1)
        _, requests = played(play, verb, [*before, (status, None)], Client)
        return len(requests) - 1 > len(documents)

    kind = REQUESTS[verb].partition(" ")[0]
    assert [status for status in (429, 503, 409) if is_repeated(status)] == REPEATED[kind]


def test_no_verb_is_missing() -> None:
    """The table above has every public method of every resource."""
    with Client(base_url="https://sparing.test", api_key="k", environ={}) as client:
        resources = {name: found for name, found in vars(client).items() if not name.startswith("_")}
    assert set(resources) == {"queries", "datasets", "principals", "allowances", "me"}
    verbs = {f"{name}.{verb}" for name, found in resources.items() for verb in dir(found) if not verb.startswith("_")}
    assert verbs == {verb for verb in VERBS if verb.partition(".")[0] in resources}


@pytest.mark.parametrize("verb", VERBS)
@settings(max_examples=times(10, 30))
@given(faults=st.lists(FAULTS, max_size=8))
def test_both_clients_do_the_same_whatever_goes_wrong(verb: str, play: Any, faults: list[Fault]) -> None:
    """The requests, headers and bodies, the waits, and the result or exception are the same."""
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
