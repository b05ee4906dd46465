"""Queries written step by step are the same documents as those of keyword arguments."""

import json
from typing import Any

import httpx
import pytest

from clients.python.tests.reply_documents import PREVIEW, REFUSED
from sparing import Answer, APIReplyError, Client, InvalidRequestError, col, count, histogram
from sparing._query import question_json


def test_each_step_is_a_keyword(client: Client) -> None:
    """Conditions are joined, keys and items follow each other, and the last noise counts."""
    written = (
        client.dataset("shop")
        .query("visits")
        .where(col("age") > 40)
        .where(col("country").is_in(["NO"]) | col("vip").is_null())
        .group_by("country")
        .group_by(col("day").by("month"), "vip")
        .count()
        .count_individuals()
        .sum(col("price") * 2)
        .histogram("item")
        .clip(3)
        .rows(5)
        .noise(half_width=10, confidence=0.9)
        .noise(share=0.01)
        .fresh()
    )
    assert written.json == {
        "version": 1,
        "from": "visits",
        "where": {
            "and": [
                {"gt": [{"col": "age"}, 40]},
                {"or": [{"in": [{"col": "country"}, ["NO"]]}, {"is_null": {"col": "vip"}}]},
            ]
        },
        "group_by": ["country", {"bucket": {"column": "day", "by": "month"}}, "vip"],
        "select": [
            {"count": {}},
            {"count_individuals": {}},
            {"sum": {"of": {"mul": [{"col": "price"}, 2]}}},
            {"histogram": {"column": "item"}},
        ],
        "per_individual": {"l2_clip": 3, "rows": 5},
        "noise": {"share": 0.01},
        "reuse": False,
    }


def test_each_item_may_have_a_precision_of_its_own(client: Client) -> None:
    """Precisions of items are lists of the query."""
    query = client.dataset("d").query()
    asked = query.count(sigma=5).sum("price", sigma=2000)
    assert asked.json["noise"] == {"sigma": [5, 2000]}
    assert asked.json == query.count().sum("price").noise(sigma=[5, 2000]).json
    assert query.count(half_width=10).histogram("town", half_width=20).json["noise"] == {
        "half_width": [10, 20],
        "confidence": 0.95,
    }
    weighed = query.count(weight=3).linear("item", {1: 2.0}).noise(share=0.05).clip([2, 5])
    assert weighed.json["noise"] == {"share": 0.05, "weights": [3, 1]}
    assert weighed.json["per_individual"] == {"l2_clip": [2, 5]}
    assert "select=[Item" in repr(query.count(sigma=5).sum("price"))  # which is not finished


def test_the_active_are_asked_for_by_a_step(client: Client) -> None:
    """Alone or with a precision of its own; `reuse` is not sent, which the service takes for false there."""
    query = client.dataset("shop").query().where(col("age") >= 40).group_by("country")
    asked = query.active(share=0.1).noise(share=0.01)
    assert asked.json["select"] == [{"active": {"share": 0.1}}]
    assert asked.json["noise"] == {"share": 0.01}
    assert "reuse" not in asked.json
    assert query.active(0.1, sigma=20).json == query.active(share=0.1).noise(sigma=20).json


def test_a_step_leaves_the_query_before_it_alone(client: Client) -> None:
    """A part may be used again."""
    base = client.dataset("d").query().noise(sigma=1)
    older = base.where(col("age") > 40)
    assert "where" not in base.json
    assert older.count().json["select"] == older.json["select"] == [{"count": {}}]
    assert repr(older).removeprefix("Async").startswith("QueryBuilder('d', sigma=1, where=")


def test_nothing_is_sent_before_the_end(client: Client, script: Any, answer: Any) -> None:
    """A preview, then the query under a key of one's own, and the facts of the dataset."""
    script.steps = [httpx.Response(200, json=PREVIEW | {"warnings": ["w"]}), httpx.Response(200, json=answer)]
    query = client.dataset("d").query().count().noise(sigma=20)
    assert script.requests == []
    assert query.preview().warnings == ("w",)
    assert query.run(idempotency_key="k").idempotency_key == "k"
    assert [request.url.path for request in script.requests] == [
        "/v1/datasets/d/queries/preview",
        "/v1/datasets/d/queries",
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sigma": 1}, "dataset must be the name"),
        ({"dataset": "d", "sigma": 1, "select": "count"}, "select must be count"),
        ({"dataset": "d", "sigma": 1, "select": [count(), 5]}, "select must be count"),
        ({"dataset": "d", "sigma": 1, "where": "age > 40"}, "where must be a condition"),
    ],
)
def test_a_wrong_argument_names_itself(wrong: Any, message: str, client: Client) -> None:
    """Before anything is sent."""
    with pytest.raises(TypeError, match=message):
        client.queries.ask(**wrong)
    with pytest.raises(TypeError, match=message):
        client.queries.preview(**wrong)
    with pytest.raises(TypeError, match="where takes a condition"):
        client.dataset("d").query().where("age > 40")  # type: ignore[arg-type]


def test_a_batch_answers_or_refuses_each_query(client: Client, script: Any, answer: Any) -> None:
    """In requests of so many, with one key for each query, and progress after each request."""
    script.steps = [
        httpx.Response(200, json={"answers": [answer, REFUSED]}),
        httpx.Response(200, json={"answers": [answer]}),
    ]
    told: list[tuple[int, int]] = []
    questions: Any = [{"dataset": "d", "sigma": n} for n in (1, 2)] + [
        {"dataset": "d", "select": histogram("item"), "sigma": 3}
    ]
    found = list(
        client.queries.batch(
            questions,
            idempotency_keys=["a", "b", "c"],
            batch_size=2,
            progress=lambda done, total: told.append((done, total)),
        )
    )
    assert [type(each) for each in found] == [Answer, InvalidRequestError, Answer]
    assert [each.idempotency_key for each in found] == ["a", "b", "c"]
    assert told == [(2, 3), (3, 3)]
    sent = [json.loads(body)["queries"] for body in script.bodies]
    assert [[entry["idempotency_key"] for entry in part] for part in sent] == [["a", "b"], ["c"]]
    assert sent[1][0]["query"] == question_json(questions[2])


def test_a_batch_takes_queries_in_every_form(client: Client, script: Any, answer: Any) -> None:
    """Dictionaries, steps and SQL beside each other; a bare text has neither dataset nor noise."""
    script.steps = [httpx.Response(200, json={"answers": [answer] * 3})]
    shop = client.dataset("d")
    forms: Any = [
        {"dataset": "d", "group_by": "town", "sigma": 3},
        shop.query().group_by("town").count().noise(sigma=3),
        shop.sql("SELECT town, COUNT(*) FROM people GROUP BY town").noise(sigma=3),
    ]
    assert len(list(client.queries.batch(forms))) == 3
    first, second, third = (entry["query"] for entry in json.loads(script.bodies[0])["queries"])
    assert first == second == {name: member for name, member in third.items() if name != "from"}
    with pytest.raises(TypeError, match=r"client\.dataset\(name\)\.sql\(text\)"):
        client.queries.batch(["SELECT COUNT(*) FROM people"])  # type: ignore[list-item]


def test_a_batch_that_cannot_be_sent_is_refused(client: Client, script: Any) -> None:
    """Another dataset, a missing key, and a reply without an outcome for each."""
    one: Any = {"dataset": "d", "sigma": 1}
    with pytest.raises(ValueError, match="of one dataset, not of d, e"):
        client.queries.batch([one, one | {"dataset": "e"}])
    with pytest.raises(ValueError, match="as many idempotency keys"):
        client.queries.batch([one], idempotency_keys=[])
    assert list(client.queries.batch([])) == []
    script.steps = [httpx.Response(200, json={"answers": []})]
    with pytest.raises(APIReplyError, match="an outcome for each of 1"):
        list(client.queries.batch([one]))


def test_sql_and_steps_ask_the_same_for_averages(client: Client) -> None:
    """Each function of SQL is a step."""
    people, by_age = (client.dataset("d").query("people") for _ in range(2))
    by_age = by_age.group_by("age")
    texts = [
        (
            "SELECT COUNT(*), AVG(age), VARIANCE(age) FROM people GROUP BY age",
            by_age.count().mean("age").variance("age"),
        ),
        (
            "SELECT STDDEV(age), SUM(age), AVG(age * 2) FROM people",
            people.stddev("age").sum("age").mean(col("age") * 2),
        ),
        ("SELECT MEDIAN(age) FROM people", people.quantile("age", 0.5)),
        ("SELECT APPROX_QUANTILE(age, .1), AVG(age) FROM people", people.quantile(col("age"), 0.1).mean("age")),
    ]
    for text, steps in texts:
        asked, written = (query.noise(rho=0.1).json for query in (client.dataset("d").sql(text), steps))
        noise: Any = written.pop("noise")
        assert asked == written | {"noise": {"rho": 0.1}}
        assert set(noise.get("weights", [1])) == {1}


def test_a_histogram_of_parts_is_the_parts() -> None:
    """Several stand in one query, which groups do not."""
    ages, days = col("age").bins(width=10), col("day").by("weekday")
    assert [histogram(parts).json for parts in (ages, days)] == [{"histogram": parts.json} for parts in (ages, days)]
    with pytest.raises(TypeError, match="values are of a whole column"):
        histogram(ages, values=[1])
