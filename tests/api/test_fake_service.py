"""`sparing.testing.FakeService` answers an analyst as the service does: both are asked, document by document."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from service.api.problems import PROBLEMS
from service.engine.ingest.reader import read_rows
from sparing import (
    Client,
    QueryBuilder,
    active,
    col,
    connect,
    count,
    count_individuals,
    dbapi,
    feature,
    gradient,
    histogram,
    linear,
    moments,
    one_hot,
    sum_,
)
from sparing._testing_http import ANALYSTS, OTHERS, TITLES
from sparing._testing_rows import coded
from tests.api.route_table import ROUTES
from tests.api.twins import Twins, differences, ndjson, twins
from tests.engine import worlds
from tests.query import samples

PAGE = (Path(__file__).parents[2] / "docs" / "query-language.md").read_text(encoding="utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"^```json (\w+)\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
TABLES: dict[str, Any] = next(json.loads(text) for kind, text in BLOCKS if kind == "schema")
ROWS: dict[str, list[dict[str, Any]]] = {
    "people": [
        {
            "person_id": f"p{number}",
            "country": ["NO", "SE", None, "DK"][number % 4],
            "age": [17, 40, 133, None][number % 4],
            "spend": number * 12.5 + 0.1,
            "member": [True, False, None][number % 3],
            "joined": f"202{number % 7}-0{number % 9 + 1}-15",
            "limit_rho": None,
        }
        for number in range(12)
    ],
    "visits": [{"person_id": f"p{number % 5}", "day": number * 9, "item": number % 7} for number in range(30)],
}
CLIP = {"from_": "visits", "l2_clip": 5}
TWO = [count(), sum_("spend")]
AGES: list[dict[Any, float]] = [{40: 1}, {40: -2, 17: 3}]
DAYS: list[dict[Any, float]] = [{0: 1, 9: 2}, {18: -1.5}]
SCALED = feature((col("age") - 60) * 0.02, fill=0)
MEMBER: dict[str, Any] = {"target": "member", "features": [SCALED, one_hot("country")]}
COUNTRY: dict[str, Any] = {"target": "country", "features": [SCALED]}


@pytest.fixture(scope="module")
def both() -> Iterator[Twins]:
    """Both services with the dataset of docs/query-language.md; a test that asks does so once."""
    with twins({"shop": (TABLES, ROWS), "bare": (samples.TABLES, {})}, epsilon="50", delta="1e-6") as found:
        yield found


def ask(key: str, **question: Any) -> Callable[[Client], Any]:
    """One query of the dataset."""
    return lambda client: client.queries.ask(dataset="shop", idempotency_key=key, **question)


def spending(client: Client) -> QueryBuilder:
    """A query by country that costs at most a tenth of the budget."""
    return client.dataset("shop").query().group_by("country").noise(share=0.1)


CALLS: list[tuple[str, Callable[[Client], Any]]] = [
    ("analyst", lambda client: list(client.datasets.list())),
    ("one", lambda client: list(client.datasets.list())),
    ("analyst", lambda client: list(client.datasets.list(page_size=1))),
    ("analyst", lambda client: list(client.datasets.list(page_size=0))),
    ("analyst", lambda client: client.datasets.get(dataset="bare")),
    ("analyst", ask("a", sigma=20)),
    ("analyst", ask("a", sigma=20)),  # a replay
    ("analyst", ask("a", sigma=21)),  # another query under the same key
    ("one", ask("a", sigma=20)),  # reused
    ("analyst", ask("b", sigma=20, reuse=False)),
    ("analyst", ask("c", select=TWO, where=col("age") >= 40, group_by="country", sigma=600)),  # uneven
    ("analyst", ask("d", select=TWO, l2_clip=[3, 40], rho=0.01)),
    ("analyst", ask("d1", select=TWO, group_by="country", sigma=[600, 300_000])),
    ("analyst", ask("d2", select=TWO, half_width=[10, 5000], confidence=0.9, where=col("age") >= 40)),
    ("analyst", ask("d3", select=[*TWO, linear("age", AGES)], share=0.2, weights=[3, 1, 0.5])),
    ("analyst", ask("d4", select=[count(), histogram("member")], rho=0.02)),
    ("analyst", ask("d5", select=TWO, rho=0.02, l2_clip=3)),  # one clip for two items
    ("analyst", ask("d6", sigma=[20], l2_clip=[1])),  # the numbers themselves
    ("analyst", lambda client: client.queries.preview(dataset="shop", select=TWO, l2_clip=[3, 40], rho=0.01)),
    ("analyst", lambda client: client.queries.preview(dataset="shop", select=TWO, sigma=40)),  # uneven
    ("analyst", lambda client: spending(client).mean("spend").count().stddev("age").run(idempotency_key="d7")),
    ("analyst", lambda client: spending(client).quantile("spend", 0.5).run(idempotency_key="d8")),
    ("analyst", ask("e", select=histogram("member"), group_by=[col("joined").by("quarter")], share=0.3)),
    ("analyst", ask("f", select=sum_(col("spend") * col("age").clip(18, 65)), half_width=50_000, confidence=0.9)),
    ("analyst", ask("g", group_by=[col("age").bins([0, 18, 65]), col("spend").bins(width=100)], sigma=2)),
    ("analyst", ask("h", select=[count(), count_individuals()], where=col("people.age") < 50, sigma=4, **CLIP)),
    ("analyst", ask("i", select=linear("day", DAYS), group_by="people.country", sigma=6, **CLIP)),
    ("analyst", ask("j", select=[count(), sum_("day")], rows=3, from_="visits", sigma=900)),
    ("analyst", ask("k", select=histogram("item"), sigma=40, **CLIP)),
    (
        "analyst",
        lambda client: client.sql(
            "SELECT YEAR(joined), COUNT(*) FROM people WHERE age * 2 + 1 = 81 GROUP BY YEAR(joined)",
            dataset="shop",
            sigma=4,
        ),
    ),
    ("analyst", ask("l", select=active(share=0.9), group_by="country", sigma=20)),
    ("analyst", ask("l1", select=active(share=0.9), group_by="country", sigma=20)),  # anew
    ("analyst", ask("l1", select=active(share=0.9), group_by="country", sigma=20, reuse=False)),  # a replay
    ("analyst", ask("l2", select=active(share=0.9), sigma=20, reuse=True)),
    ("analyst", ask("l3", select=active(share=0.001), sigma=0.5)),  # less than it costs
    ("analyst", ask("l4", select=[count(), active(share=0.9)], sigma=20)),
    ("analyst", lambda client: client.queries.preview(dataset="shop", select=active(0.5), share=0.1)),
    ("analyst", ask("m", select=moments([SCALED, one_hot("country")], intercept=True), share=0.05)),
    ("analyst", ask("m1", select=gradient("logistic", parameters=[1, -2, 3], **MEMBER), share=0.05, rule="clip")),
    ("analyst", ask("m2", select=gradient("logistic", parameters=[1, -2], **MEMBER), share=0.05)),  # too few
    ("analyst", ask("m3", select=gradient("softmax", parameters=[[0]] * 2, **COUNTRY), share=0.05, l2_clip=0.5)),
    ("analyst", ask("m4", select=[count(), moments(["age"])], share=0.05)),  # not alone
    ("sparse", ask("a", select=count(), sigma=30)),
    ("sparse", ask("b", select=sum_("age"), sigma=30)),  # above its allowance
    ("sparse", lambda client: client.allowances.list()),
    ("analyst", lambda client: client.allowances.list()),
    ("one", lambda client: client.allowances.list()),
    ("analyst", lambda client: list(client.queries.list(page_size=1000))),
    ("stranger", lambda client: list(client.datasets.list())),
    ("one", lambda client: client.datasets.get(dataset="bare")),
    ("one", lambda client: client.datasets.get(dataset="shpo")),
    ("analyst", lambda client: client.datasets.get(dataset="baer")),
    ("analyst", lambda client: client.queries.ask(dataset="nowhere", sigma=1)),
    ("one", lambda client: client.queries.ask(dataset="bare", sigma=1)),
    ("analyst", lambda client: client.queries.get(query="0190b3a0-0000-7000-8000-000000000000")),
    ("analyst", lambda client: client.queries.get(query="no-id")),
    ("analyst", lambda client: list(client.queries.list(page_size=0))),
]


def test_every_call_gets_the_same_documents(both: Twins) -> None:
    """Keys, types, labels, axes, dimension, sigma, half width, charges, problems; and values but for noise."""
    statuses = [status for by, call in CALLS for status, _, _ in both.compare(call, by=by)]

    assert {200, 401, 403, 404, 422} <= {*statuses}


def test_a_batch_gets_the_same_outcomes(both: Twins) -> None:
    """Answers and refusals, in order."""
    questions: list[Any] = [
        {"dataset": "shop", "select": count(), "sigma": 25},
        {"dataset": "shop", "select": sum_("country"), "sigma": 25},
        {"dataset": "shop", "select": count(), "sigma": 25},
    ]
    [(status, _, document)] = both.compare(
        lambda client: list(client.queries.batch(questions, idempotency_keys=["x", "y", "z"]))
    )

    assert status == 200
    assert [each.get("status", 200) for each in document["answers"]] == [200, 422, 200]
    assert [each.get("reused") for each in document["answers"]] == [False, None, True]


@pytest.mark.parametrize(
    "change",
    [
        {"dimension": 2},
        {"sigma": 20.1},
        {"sigma": 20},
        {"values": [13]},
        {"labels": []},
        {"reused": 0},
        {"id": 3},
        {"more": None},
    ],
)
def test_a_difference_would_be_found(both: Twins, change: dict[str, Any]) -> None:
    """One of each kind, planted in an answer."""
    ((_, _, answer),) = both.compare(ask("planted", select=count(), where=col("age") > 17, sigma=20))

    assert [*differences(answer, answer)] == []
    assert len([*differences(answer, answer | change)]) == 1


def test_a_release_is_fetched_as_it_was_answered(both: Twins) -> None:
    """By its id, which the two make for themselves."""
    for side in (both.real, both.fake):
        with side.client("analyst") as client:
            answer = client.queries.ask(dataset="shop", sigma=31)
            fetched = client.queries.get(query=answer.id)
            assert (fetched.id, fetched.values, fetched.sequence) == (answer.id, answer.values, answer.sequence)


def test_a_table_is_read_alike(both: Twins) -> None:
    """Through `sparing.connect`: columns, types, groups in order and half widths; with a warning."""
    text = "SELECT country, BINS(age, 0, 18, 65) AS ages, COUNT(*) AS n, SUM(spend) FROM people"
    text += " WHERE joined >= ? GROUP BY country, ages ORDER BY ages DESC, country LIMIT 3"
    found = []
    for side in (both.real, both.fake):
        side.replies.clear()
        with side.client("analyst") as client, connect(dataset="shop", share=0.3, client=client) as connection:
            with pytest.warns(dbapi.Warning) as caught:
                cursor = connection.cursor().execute(text, (date(2022, 1, 1),))
            assert [str(each.message)[:20] for each in caught] == ["The longest vectors ", "People may be missin"]
            assert len(side.replies) == 2  # the schema, and the answer
            rows = [(*keys, widths) for *keys, _, first, _, second in cursor for widths in [(first, second)]]
            found.append((cursor.description, rows, sorted(connection.tables())))

    assert found[0] == found[1]
    assert [row[:2] for row in found[0][1]] == [("NO", "[18, 65]"), ("SE", "[18, 65]"), ("NO", "[0, 18)")]


QUERIES = [text for (kind, text), _ in pairwise(BLOCKS) if kind == "query"]


@pytest.mark.parametrize("text", QUERIES, ids=[f"query {number}" for number in range(len(QUERIES))])
def test_an_example_of_the_language_is_previewed_alike(both: Twins, text: str) -> None:
    """Those that are refused too."""
    status, _, document = both.compare_raw("analyst", "POST", "/v1/datasets/shop/queries/preview", content=text)

    assert status == (422 if "errors" in document else 200)


WRONG: list[dict[str, Any]] = [
    {"version": 2},
    {"select": [{"cuont": {}}]},
    {"from": "visit"},
    {"where": {"ge": [{"col": "people.agee"}, 40]}, "from": "visits"},
    {"group_by": ["country", "country"]},
    {"noise": {"rho": 1e-30}},
    {"select": [{"count": {}}, {"sum": {"column": "age"}}], "noise": {"sigma": 7}},
    {"reuse": 1},
    {"from": "visits", "noise": {"share": 0.1}},
]
"""Queries that are refused by the parser, by a name that is not there, by the plan, and by the price."""


@pytest.mark.parametrize("wrong", WRONG, ids=json.dumps)
def test_a_wrong_query_is_refused_alike(both: Twins, wrong: dict[str, Any]) -> None:
    """With 422, in the same words."""
    path, query = "/v1/datasets/shop/queries/preview", samples.query(**wrong)
    status, _, _ = both.compare_raw("analyst", "POST", path, json=query)

    assert status == 422


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": " "}, {"Idempotency-Key": "x" * 129}], ids=str)
def test_a_query_needs_its_key(both: Twins, headers: dict[str, str]) -> None:
    """400, before anything else is looked at."""
    for method in ("POST", "DELETE"):
        status, _, _ = both.compare_raw("analyst", method, "/v1/datasets/none/queries", headers=headers)
        assert status == 400


def test_no_query_waits(both: Twins) -> None:
    """So that none is cancelled; in a dataset that is not there, nothing is."""
    for dataset, refused in (("shop", 409), ("none", 404)):
        path = f"/v1/datasets/{dataset}/queries"
        status, _, _ = both.compare_raw("analyst", "DELETE", path, headers={"Idempotency-Key": "w"})
        assert status == refused


def test_a_route_of_another_role_is_refused_alike(both: Twins) -> None:
    """403, and 404 in another's dataset: the same text."""
    names = {"dataset": "shop", "table": "people", "query_id": "x", "principal": "x"}
    for route in ROUTES:
        if "analyst" not in route.roles:
            for by, dataset in (("analyst", "shop"), ("one", "bare"), ("stranger", "shop")):
                path = route.template.format(**{**names, "dataset": dataset})
                status, _, _ = both.compare_raw(by, route.method, path)
                assert status in {401, 403, 404}, route


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/nothing"), ("PUT", "/v1/queries"), ("DELETE", "/v1/allowances"), ("GET", "/v2/queries")],
)
def test_an_address_that_is_not_there_is_refused_alike(both: Twins, method: str, path: str) -> None:
    """404, or 405 for another method; also for a stranger."""
    for by in ("analyst", "stranger"):
        status, _, _ = both.compare_raw(by, method, path)
        assert status in {404, 405}


@pytest.mark.parametrize("query", ["limt=5", "limit=5&limit=5", "x"])
def test_a_parameter_that_would_be_misread_is_refused_alike(both: Twins, query: str) -> None:
    """422 by name."""
    for path in ("/v1/queries", "/v1/datasets"):
        status, _, _ = both.compare_raw("analyst", "GET", f"{path}?{query}")
        assert status == 422


@pytest.mark.parametrize("cursor", ["AA", "QQ", "!", "Y2FyZQo", "YQ", "p1", ""])
def test_a_cursor_of_the_datasets_is_read_alike(both: Twins, cursor: str) -> None:
    """NUL, a capital, no base64, a line's end, a name that no dataset has, a cursor of the fake's other listing."""
    status, _, _ = both.compare_raw("analyst", "GET", f"/v1/datasets?cursor={cursor}")
    assert status == (200 if cursor == "YQ" else 422)


def test_the_fake_knows_every_route() -> None:
    """Those of analysts, and those of others; sign-ins are for browsers."""
    known = {name.replace(" /", " /v1/").replace("{query}", "{query_id}") for name in (*ANALYSTS, *OTHERS)}
    served = {str(route) for route in ROUTES if not route.template.startswith("/v1/session")}

    assert known == served


def test_the_fake_refuses_with_the_statuses_and_titles_of_the_service() -> None:
    """All but the one that is its own."""
    own = {"not-in-fake"}

    assert {slug: (PROBLEMS[slug].status, PROBLEMS[slug].title) for slug in TITLES.keys() - own} == {
        slug: said for slug, said in TITLES.items() if slug not in own
    }


ROWS_READ = [
    (table, rows)
    for table, columns in worlds.VALUES.items()
    for rows in [[{name: values[place % len(values)] for name, values in columns.items()} for place in range(60)]]
]


@pytest.mark.parametrize(("table", "rows"), ROWS_READ, ids=[table for table, _ in ROWS_READ])
def test_rows_are_read_as_in_an_upload(table: str, rows: list[dict[str, Any]]) -> None:
    """Values in their domains, outside them, unknown and missing."""
    declared = worlds.SCHEMA.tables[table]
    keyed = [{"person_id": f"p{number}"} | row for number, row in enumerate(rows)]
    real = read_rows(ndjson(keyed), "application/x-ndjson", declared, budget_units=worlds.BUDGET)
    fake = coded(table, declared, keyed, "exact")

    assert list(fake.keys) == [row["person_id"] for row in keyed]
    assert {name: codes.tolist() for name, codes in fake.codes.items()} == {
        name: codes.tolist() for name, codes in real.codes.items()
    }
