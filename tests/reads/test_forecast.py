"""The forecast: its curve is what happens when the query is really asked again and again."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.ledger.model.errors import InvalidRequest, NotFound
from service.query.parse import parse_query
from service.reads.forecast import QUERIES_MAX, Forecast
from service.workflows.queries.submit import compiled
from service.workflows.replica import Replica
from service.writer.operations import look_beside
from tests.factories import analyst, ask, individual_named, open_replica, register, upload
from tests.query.samples import body
from tests.workflows.surveys import counts_of, surveyed, writer_of

QUERY: dict[str, Any] = {"version": 1, "select": [{"sum": {"column": "spend"}}], "noise": {"sigma": 40.0}}
PEOPLE = st.lists(st.integers(0, 100), min_size=1, max_size=6)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["skip", "drop"]), PEOPLE, st.integers(0, 3), st.integers(0, 5))
def test_the_curve_is_what_happens(rule: str, spends: list[int], asked_before: int, paused: int) -> None:
    """After k more such queries the share that takes part in the next is the forecast's; nothing is charged for it.

    Under the drop rule those that earlier queries have left out take part in none, and no query touches the paused.
    """
    with surveyed(people=[(f"p{n}", "NO", 40, spend) for n, spend in enumerate(spends)], rule=rule) as replica:
        who = analyst(replica)
        for number in range(asked_before):
            ask(replica, who, f"before {number}", noise={"sigma": 5.0}, reuse=False)
        if paused < len(spends):
            own = individual_named(replica, f"p{paused}")
            replica.individuals.lower_limit(own, "survey", pause=True)
        told = replica.overview.forecast("survey", parse_query(body(QUERY)))
        assert replica.overview.sequence("survey") == asked_before
        is_skipped = rule == "skip"
        touched = sum(spend > 0 and (is_skipped or place != paused) for place, spend in enumerate(spends))
        assert told.touched == touched
        for number in range(12):
            ask(replica, who, f"k {number}", **QUERY | {"reuse": False})
            charged, left_out = counts_of(replica)[-1]
            assert charged + left_out == touched
            if touched:
                assert share_after(told, number) == pytest.approx(charged / touched), number


def share_after(told: Forecast, queries: int) -> float:
    """The forecast share after so many queries: of the last point that is not later and changes nothing until then."""
    exact = {point.queries: point.share for point in told.curve}
    assert queries in exact, "small numbers of queries have points of their own"
    return exact[queries]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=20))
def test_the_marks_agree_with_the_curve(times: list[int]) -> None:
    """The first point of the curve at which so many have dropped out is not before the mark."""
    with surveyed(people=[(f"p{n}", "NO", 40, 1 + each) for n, each in enumerate(times)]) as replica:
        told = replica.overview.forecast("survey", parse_query(body(QUERY)))
    for mark in told.dropped_after:
        for point in told.curve:
            has_dropped = 1 - point.share >= mark.share - 1e-12
            assert has_dropped == (mark.queries is not None and point.queries >= mark.queries), (mark, point)


def test_a_query_that_touches_no_one_has_an_empty_forecast() -> None:
    """Also in a dataset without people."""
    with open_replica() as replica:
        register(replica)
        told = replica.overview.forecast("survey", parse_query(body(QUERY)))
    assert (told.touched, told.active, told.curve) == (0, 0, ())
    assert [mark.queries for mark in told.dropped_after] == [None] * 3


def test_a_wrong_query_and_an_unknown_dataset_are_refused(replica: Replica) -> None:
    """A preview would be refused alike."""
    wrong = QUERY | {"select": [{"sum": {"column": "nothing"}}]}
    with pytest.raises(InvalidRequest):
        replica.overview.forecast("survey", parse_query(body(wrong)))
    with pytest.raises(NotFound):
        replica.overview.forecast("nowhere", parse_query(body(QUERY)))


def test_a_look_is_made_again_if_records_changed_meanwhile(replica: Replica) -> None:
    """Findings over a record set that is no more are not used, an error over it neither."""
    writer = writer_of(replica)
    plan = compiled(parse_query(body(QUERY)), replica.registry.record("survey"))
    looks = 0

    def look(memory: Any) -> int:
        nonlocal looks
        looks += 1
        if looks == 1:
            upload(replica, "people", [("late", "NO", 40, 7)])
            raise RuntimeError("the records moved under this look")
        return int(memory.charges(plan)[0].size)

    before = look_beside(writer, lambda memory: memory.charges(plan)[0].size)
    assert look_beside(writer, look) == before + 1
    assert looks == 2


def test_an_error_over_records_that_stood_still_is_raised(replica: Replica) -> None:
    """It is the look's own."""

    def fail(_: Any) -> int:
        raise RuntimeError("of the look itself")

    with pytest.raises(RuntimeError, match="of the look itself"):
        look_beside(writer_of(replica), fail)


def test_a_curve_has_bounded_points(replica: Replica) -> None:
    """And ends at the largest number that it speaks of."""
    told = replica.overview.forecast("survey", parse_query(body(QUERY)))
    assert len(told.curve) <= 70
    assert told.curve[-1].queries == QUERIES_MAX
