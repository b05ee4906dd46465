"""Queries of events without a clip: refused above 64 rows an individual, and answered where they were before."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from service.ledger.model.errors import DatasetArchived, InvalidRequest
from service.query import asking
from service.query.parse import parse_query
from tests.factories import PEOPLE, TWO_PEOPLE, VISITS, analyst, ask, open_replica, register
from tests.memory.store import MemoryStore
from tests.workflows.surveys import surveyed

COUNT: dict[str, Any] = {"from": "visits", "select": [{"count": {}}], "noise": {"sigma": 200.0}}
CLIPPED = COUNT | {"per_individual": {"l2_clip": 3.0}}


def tables(rows: int) -> dict[str, Any]:
    """People with up to so many visits each."""
    return {"people": PEOPLE, "visits": VISITS | {"rows_per_individual": rows}}


@pytest.mark.parametrize(("rows", "is_refused"), [(64, False), (65, True), (4096, True)])
def test_above_64_rows_a_clip_or_their_number_is_required(rows: int, is_refused: bool) -> None:
    """A count of events at its natural bound charges most budgets more than they hold, and leaves people out."""
    with surveyed(people=TWO_PEOPLE, tables=tables(rows)) as replica:
        who = analyst(replica)
        ask(replica, who, "clipped", **CLIPPED)
        ask(replica, who, "people", noise={"sigma": 200.0})
        ask(replica, who, "once", **COUNT | {"select": [{"count_individuals": {}}]})
        ask(replica, who, "stated", **COUNT | {"per_individual": {"rows": rows}})
        if not is_refused:
            ask(replica, who, "unclipped", **COUNT)
            return
        with pytest.raises(InvalidRequest) as refused:
            ask(replica, who, "unclipped", **COUNT)
    (error,) = refused.value.errors
    assert error.field == "per_individual.l2_clip"
    assert f"(here {rows}): for a count, the number of rows of one individual that should count" in error.message


def test_the_refusal_names_the_longest_vector_that_every_limit_pays_for() -> None:
    """Sigma sqrt(2 rho), where the noise is given by sigma: with rho = 0.5 it is sigma itself."""
    with open_replica(MemoryStore()) as replica:
        register(replica, rho="0.5")
        who = analyst(replica)
        for noise, suggestion in (
            ({"sigma": 200.0}, "at most 200 to leave out no one"),
            ({"rho": 0.01}, "or give `rows`"),
        ):
            with pytest.raises(InvalidRequest) as refused:
                ask(replica, who, "k", **COUNT | {"noise": noise})
            assert refused.value.errors[0].message.endswith(suggestion)


def test_an_answer_from_before_the_rule_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its key was answered; another key is refused."""
    with surveyed(people=TWO_PEOPLE) as replica:
        who = analyst(replica)
        with monkeypatch.context() as before:
            before.setattr(asking, "UNCLIPPED_ROWS_MAX", 2**20)
            first = ask(replica, who, "k", **COUNT)
        assert ask(replica, who, "k", **COUNT).body == first.body
        with pytest.raises(InvalidRequest):
            ask(replica, who, "other", **COUNT)


def test_an_archived_dataset_answers_no_query_whose_plan_is_kept() -> None:
    """The plan is kept for the very object asked again; an extension has it compiled anew."""
    query = parse_query(orjson.dumps({"version": 1, "select": [{"count": {}}], "noise": {"sigma": 200.0}}))
    with open_replica(MemoryStore()) as replica:
        register(replica)
        plans, record = replica.analysts._submitter._plans, replica.registry.record("survey")
        plan = plans.of(query, record)
        assert plans.of(query, replica.registry.record("survey")) is plan
        assert plans.of(query, replace(record, capacity=200_000, version=2)) is not plan
        with pytest.raises(DatasetArchived):
            plans.of(query, replace(record, is_archived=True))
