"""Averages of an answer: those of the service at 95 %, and their intervals at every other confidence."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from sparing import Answer, APIReplyError, Client, count, difference, histogram, mean, quantile, ratio, stddev, sum_
from sparing._answer_replies import answer_of
from sparing.testing import FakeService

RESULTS = ["value", "half_width_95", "low_95", "high_95", "coverage_certified"]
TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "id",
        "columns": {
            "town": {"type": "category", "categories": ["a", "b"]},
            "age": {"type": "integer", "lower": 0, "upper": 120},
            "spend": {"type": "real", "lower": 0, "upper": 500},
        },
    }
}
ROWS = [{"id": n, "town": "ab"[n % 2], "age": 30 + 20 * (n % 2) + n % 7, "spend": float(n % 90)} for n in range(900)]
ITEMS = [
    mean("age"),
    count(),
    stddev("age"),
    quantile("age", 0.5),
    ratio(sum_("spend"), count()),
    difference(mean("age"), "town", first="a", second="b"),
]


@pytest.fixture
def fake() -> Iterator[FakeService]:
    """Two towns, whose numbers have noise."""
    with FakeService(noise=True) as made:
        made.add_dataset("shop", TABLES, rows={"people": ROWS}, rho=100)
        yield made


def reply(fake: FakeService, **query: Any) -> dict[str, Any]:
    """The reply to a query, as JSON."""
    body = {"version": 1, "select": [item.json for item in ITEMS], "group_by": ["town"], "noise": {"share": 0.05}}
    headers = {"Authorization": f"Bearer {fake.api_key}", "Idempotency-Key": json.dumps(query)}
    with httpx.Client(transport=fake.transport, base_url=fake.url, headers=headers) as client:
        answered = client.post("/v1/datasets/shop/queries", json=body | query)
    found: dict[str, Any] = answered.json()
    assert answered.status_code == 200, found
    return found


def test_averages_are_the_estimates_of_the_service(fake: FakeService) -> None:
    """Worked out again from the numbers, so that a reply cannot state others; also of a fetched answer."""
    stated = reply(fake)
    answer = answer_of(stated)
    rows = stated["estimates"]["rows"]
    assert [
        (dict(each.label), each.value, each.interval().low, each.interval().high, each.is_reliable)
        for each in answer.averages
    ] == [(row["label"], row["value"], row["low"], row["high"], row["is_reliable"]) for row in rows]
    assert len(rows) == 2 * 5 + 1
    stated["estimates"]["rows"] = []
    assert answer_of(stated) == answer
    assert fake.client().queries.get(query=answer.id).averages == answer.averages


def test_intervals_are_wider_with_more_confidence(fake: FakeService) -> None:
    """And keep to what the declared bounds leave."""
    widths: list[tuple[float, float]] = []
    for each in answer_of(reply(fake)).averages:
        narrow, usual, wide = (each.interval(confidence) for confidence in (0.5, 0.95, 0.999))
        assert wide.low <= usual.low <= narrow.low <= each.value <= narrow.high <= usual.high <= wide.high
        assert each.bounds is None or each.bounds.low <= wide.low <= wide.high <= each.bounds.high
        widths.append((narrow.high - narrow.low, wide.high - wide.low))
        with pytest.raises(ValueError, match="confidence"):
            each.interval(1)
    assert sum(narrow < wide for narrow, wide in widths) >= len(widths) - 2  # a quantile's ends at edges


def test_a_histogram_beside_an_average_stays_in_the_values(fake: FakeService) -> None:
    """Its numbers are no estimates."""
    select = [histogram("town").json, mean("age").json]
    answer = answer_of(reply(fake, select=select, group_by=[]))
    assert [each.label for each in answer.averages] == [{"select": "mean(age)"}]
    assert [label["select"] for label in answer.labels][:2] == ["histogram(town)"] * 2


def test_the_answer_shows_its_averages_and_says_what_was_asked(fake: FakeService) -> None:
    """In one line, in a notebook and in frames; values and labels stay those of the linear items."""
    query = fake.client().dataset("shop").query().group_by("town").mean("age").count()
    answer = query.noise(share=0.2).run()

    assert repr(answer).startswith("Answer(")
    assert "averages=4, dimension=6, id=" in repr(answer)
    assert answer.labels[0] == {"town": "a", "select": "sum((age - 60))"}
    frame = answer.to_pandas()
    assert list(frame.columns) == ["town", "select", *RESULTS]
    assert frame["select"].tolist() == ["mean(age)", "count"] * 2
    assert (frame["low_95"] < frame["value"]).all()
    assert (frame["value"] < frame["high_95"]).all()
    page = answer._repr_html_()
    assert page.count("<tr><td>") == 4
    assert "<td>b, mean(age)</td><td>5" in page
    axes = answer.plot()
    names = [tick.get_text() for tick in axes.get_xticklabels()]
    assert names == ["a, mean(age)", "a, count", "b, mean(age)", "b, count"]


def test_estimates_that_cannot_be_are_refused(fake: FakeService) -> None:
    """So are none at all, where some were asked for."""
    stated = reply(fake)
    for items in (
        [{"title": "x", "parts": [0], "number": {}}] * 65,
        [{"title": "x", "parts": [0] * 4, "number": {}}],
        [{"title": "x", "parts": [99], "number": {}}],
        [{"title": "x", "parts": ["a"], "number": {}}],
        [{"title": "x", "parts": [0, 1], "number": {}}],
        [{"title": "x", "parts": [0, 1], "mean": {}}],
        [{"title": "x", "parts": [0, 1], "mean": {"low": "a", "middle": 1, "high": 2}}],
        [{"title": "x", "parts": [0]}],
        [{"parts": [0], "number": {}}],
        [{"title": "x", "parts": [0], "quantile": {"probability": 0.5, "low": 0, "high": 1, "is_whole": False}}],
        [{"title": "x", "parts": [0], "number": {}, "difference": {"by": "country", "from": 1, "to": 2}}],
        [{"title": "x", "parts": [0], "number": {}, "difference": {"by": "town", "from": "c", "to": "a"}}],
        ["x"],
        {"x": 1},
        None,
    ):
        stated["estimates"]["items"] = items
        with pytest.raises(APIReplyError):
            answer_of(stated)
    del stated["estimates"]
    assert answer_of(stated).averages == ()
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=stated))
    with (
        Client(base_url="https://sparing.test", api_key="k", transport=transport) as client,
        pytest.raises(APIReplyError, match="none of the averages that were asked for"),
    ):
        client.dataset("shop").query().mean("age").noise(share=0.05).run()


def test_an_answer_without_estimates_has_no_averages(fake: FakeService) -> None:
    """So is that of linear items alone."""
    answer: Answer = answer_of(reply(fake, select=[count().json]))
    assert (answer.averages, answer.dimension) == ((), 2)
