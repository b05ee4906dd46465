"""The types of both clients: what a checker infers of each, and that each method has the signature of its twin."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Self, assert_type, get_args, get_origin

import httpx
import pytest

from sparing import (
    ActRow,
    Allowance,
    Answer,
    APIStatusError,
    AsyncClient,
    AsyncDatasetQueries,
    AsyncQueryBuilder,
    BudgetRow,
    BudgetSummary,
    Chain,
    Client,
    Dataset,
    DatasetQueries,
    DatasetRow,
    IndividualBudget,
    IndividualKey,
    LedgerRow,
    Preview,
    PrincipalKey,
    PrincipalRow,
    QueryBuilder,
    QueryRequest,
    Receipt,
    ReleaseRow,
    UploadReport,
    col,
)

GIVEN: Any = {"base_url": "https://sparing.test", "api_key": "k", "environ": {}}
CLOSING = {"close", "aclose"}
# The methods that send nothing return these, and those of the asynchronous client are not awaited either.
TWINS: dict[object, object] = {Self: Self, DatasetQueries: AsyncDatasetQueries, QueryBuilder: AsyncQueryBuilder}
QUESTIONS: list[QueryRequest] = [{"dataset": "d", "sigma": 1}]


def types_of_the_client(client: Client) -> None:
    """The verbs. `make check` holds them to each `assert_type`; they never run."""
    assert_type(client.with_options(timeout=1), Client)
    assert_type(client.queries.ask(dataset="d", sigma=1), Answer)
    assert_type(client.queries.preview(dataset="d", sigma=1), Preview)
    assert_type(client.queries.batch(QUESTIONS), Iterator[Answer | APIStatusError])
    assert_type(client.queries.get(query="q"), Answer)
    assert_type(client.queries.list(), Iterator[ReleaseRow])
    assert_type(client.sql("SELECT COUNT(*) FROM t", dataset="d", sigma=1), Answer)
    assert_type(client.datasets.create(name="d", tables={}, rho=1), Dataset)
    assert_type(client.datasets.list(), Iterator[DatasetRow])
    assert_type(client.datasets.upload(dataset="d", table="t", file="rows.csv"), UploadReport)
    assert_type(client.datasets.budgets(dataset="d"), Iterator[BudgetRow])
    assert_type(client.datasets.budget_summary(dataset="d"), BudgetSummary)
    assert_type(client.datasets.ledger(dataset="d"), Iterator[LedgerRow])
    assert_type(client.datasets.audit(dataset="d"), Chain)
    assert_type(client.datasets.acts(dataset="d"), Iterator[ActRow])
    assert_type(client.datasets.open_epoch(dataset="d"), int)
    assert_type(client.principals.create(role="analyst", name="Ann"), PrincipalKey)
    assert_type(client.principals.create_for(dataset="d", individuals=["a"]), tuple[IndividualKey, ...])
    assert_type(client.principals.list(), Iterator[PrincipalRow])
    assert_type(client.allowances.list(), tuple[Allowance, ...])
    assert_type(client.me.budgets(), tuple[IndividualBudget, ...])
    assert_type(client.me.receipts(), Iterator[Receipt])
    assert_type(client.me.record(dataset="d"), Mapping[str, object])


@pytest.fixture
def options(answer: dict[str, Any]) -> dict[str, Any]:
    """Options of a client whose service has one answer to everything."""
    preview = {"dimension": 1, "grid": 1, "sigma": 2, "half_width_95": 3.9, "worst_case_rho": "0.125"}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=answer | preview))
    return {"base_url": "https://sparing.test", "api_key": "k", "transport": transport, "environ": {}}


def test_a_query_step_by_step_keeps_its_type(options: dict[str, Any]) -> None:
    """To the end, where it is sent."""
    with Client(**options) as client:
        dataset = assert_type(client.dataset("d"), DatasetQueries)
        assert_type(dataset.sql("SELECT COUNT(*) FROM t"), QueryBuilder)
        query = assert_type(dataset.query().where(col("a") > 1).group_by("b").count().noise(sigma=1), QueryBuilder)
        assert isinstance(assert_type(query.preview(), Preview), Preview)
        assert isinstance(assert_type(query.run(), Answer), Answer)


async def test_an_asynchronous_query_keeps_its_type(options: dict[str, Any]) -> None:
    """To the end, where it is awaited."""
    async with AsyncClient(**options) as client:
        dataset = assert_type(client.dataset("d"), AsyncDatasetQueries)
        assert_type(dataset.sql("SELECT COUNT(*) FROM t"), AsyncQueryBuilder)
        query = assert_type(dataset.query().where(col("a") > 1).group_by("b").count().noise(sigma=1), AsyncQueryBuilder)
        assert isinstance(assert_type(await query.preview(), Preview), Preview)
        assert isinstance(assert_type(await query.run(), Answer), Answer)


def classes(client: Any) -> list[type]:
    """The classes of the client, of its resources, and of a query step by step."""
    resources = [found for name, found in sorted(vars(client).items()) if not name.startswith("_")]
    return [type(found) for found in (client, *resources, client.dataset("d"), client.dataset("d").query())]


def methods(found: type) -> dict[str, Any]:
    """The public methods of a class, those for closing aside."""
    members = {name: getattr(found, name) for name in dir(found) if not name.startswith("_")}
    return {name: member for name, member in members.items() if inspect.isfunction(member) and name not in CLOSING}


def test_each_method_has_the_signature_of_its_twin() -> None:
    """It has the same parameters, defaults and annotations; a coroutine of the result, or an asynchronous iterator."""
    pairs = list(zip(classes(Client(**GIVEN)), classes(AsyncClient(**GIVEN)), strict=True))
    compared = [(one, other, name) for one, other in pairs for name in {**methods(one), **methods(other)}]
    assert len(compared) > 45
    for one, other, name in compared:
        ours, twins = (inspect.signature(getattr(found, name)) for found in (one, other))
        expected, is_awaited = ours.return_annotation, inspect.iscoroutinefunction(getattr(other, name))
        assert ours.parameters == twins.parameters, (other, name)
        if get_origin(expected) is Iterator:
            returned = twins.return_annotation
            assert (get_origin(returned), get_args(returned)) == (AsyncIterator, get_args(expected)), (other, name)
            assert not is_awaited, (other, name)
        else:
            assert twins.return_annotation == TWINS.get(expected, expected), (other, name)
            assert is_awaited is (expected not in TWINS), (other, name)


def test_the_constructors_take_the_same_arguments() -> None:
    """In the same order, with the same defaults, the sleep aside."""
    one, other = inspect.signature(Client).parameters, inspect.signature(AsyncClient).parameters
    assert list(one) == list(other)
    assert [name for name in one if one[name].default != other[name].default] == ["sleep"]
    assert other["sleep"].default is asyncio.sleep
