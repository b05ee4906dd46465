"""Answers of a batch as JSON, and releases of earlier versions: replayed, reused, or asked anew."""

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from math import ceil, trunc
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.responses import NPY, respond
from service.ledger.model.analyst_views import StoredAnswer
from service.ledger.model.errors import InvalidRequest
from service.ledger.model.ledger_entry import public_facts
from service.ledger.model.rows import AnswerRecord, WitnessRecord
from service.ledger.model.views import Principal
from service.maintenance.rebuild_answer import rebuild
from service.query.asking import released_words
from service.query.canonical import request_hash
from service.query.parse import parse_query
from service.query.plan import compile_query
from service.query.stated_noise import in_query_units
from service.workflows.replica import Replica
from service.writer.rollback.guard import witness_name
from tests.factories import THREE_PEOPLE, analyst, ask, open_replica, values
from tests.memory.cache import MemoryWitness
from tests.memory.store import MemoryStore
from tests.workflows.surveys import findings, surveyed

WIDTH: dict[str, Any] = {"noise": {"half_width": 3.9, "confidence": 0.95}}  # sigma 3.5 / 1.96 = 1.786 on grid 1


def nothing(stored: AnswerRecord) -> AnswerRecord:
    """The answer as it was stored."""
    return stored


def with_another_grid(stored: AnswerRecord) -> AnswerRecord:
    """The answer as it would be on a grid of a quarter."""
    body = orjson.loads(stored.body) | {"grid": 0.25, "values": [2.75]}
    return replace(stored, body=orjson.dumps(body))


def earlier(
    sigma: float, edit: Callable[[AnswerRecord], AnswerRecord] = nothing, query: Mapping[str, Any] = WIDTH
) -> tuple[MemoryStore, MemoryWitness, Principal, StoredAnswer]:
    """A dataset in which a query was answered with this sigma and one number, under the key `first`."""
    store = MemoryStore()
    with surveyed(store) as replica:
        who = analyst(replica)
        answer = ask(replica, who, "first", noise={"sigma": sigma})
    kept, address = store.kept[1], (who.id, "first")
    asked = parse_query(orjson.dumps({"version": 1, "select": [{"count": {}}], **query}))
    plan = compile_query(
        asked, kept.record.schema, capacity=kept.record.capacity, budget_units=kept.record.budget_units
    )
    entry = replace(kept.entries[0], canonical=plan.canonical, query_hash=plan.query_hash).sealed()
    kept_answer = replace(kept.answers[address], request_hash=request_hash(plan.canonical, reuse=True))
    head = replace(kept.head, hash=entry.hash)
    store.kept[1] = replace(kept, entries=(entry,), head=head, answers={address: edit(kept_answer)})
    witness = MemoryWitness()
    witness.write(witness_name(kept.record), WitnessRecord.of(head))
    return store, witness, who, answer


@contextmanager
def reopened(store: MemoryStore, witness: MemoryWitness) -> Iterator[Replica]:
    """The dataset under today's version."""
    with open_replica(store, witness=witness) as replica:
        yield replica


def test_a_key_that_was_answered_replays_for_every_sigma_of_today() -> None:
    """Byte for byte, including its half width and its numbers, on any grid."""
    store, witness, who, first = earlier(1.99)
    with reopened(store, witness) as replica:
        again = ask(replica, who, "first", **WIDTH)
        assert (again.body, again.query_id) == (first.body, first.query_id)
    store, witness, who, _ = earlier(1.99, with_another_grid)
    with reopened(store, witness) as replica:
        body = respond(ask(replica, who, "first", **WIDTH), NPY).body
        assert np.load(io.BytesIO(bytes(body))).tolist() == [2.75]


def repeated(fresh: dict[str, Any]) -> dict[str, Any]:
    """The body of an answer that is given again."""
    released_at = datetime.fromisoformat(fresh["released_at"])
    return fresh | {"reused": True, "notes": [*fresh["notes"], released_words(released_at)]}


def test_an_answer_with_more_noise_than_is_asked_for_is_not_reused() -> None:
    """3.9 people at 95 per cent came to sigma 1.99, which keeps to 3 of them in 92 cases: it is asked anew, once."""
    store, witness, who, _ = earlier(1.99)
    with reopened(store, witness) as replica:
        fresh, again = (orjson.loads(ask(replica, who, key, **WIDTH).body) for key in ("fresh", "again"))
    assert (fresh["reused"], fresh["sequence"], fresh["half_width_95"]) == (False, 2, 3.0)
    assert fresh["sigma"] == pytest.approx(3.5 / 1.959964, rel=1e-6)
    assert again == repeated(fresh)


def test_an_answer_of_other_groups_is_not_reused() -> None:
    """An earlier version read one number out of a query that makes several today."""
    by_age = {**WIDTH, "group_by": [{"bin": {"column": "age", "width": 60}}]}
    store, witness, who, _ = earlier(1.7, query=by_age)
    with reopened(store, witness) as replica:
        fresh = orjson.loads(ask(replica, who, "fresh", **by_age).body)
    assert (fresh["reused"], fresh["dimension"], len(fresh["values"])) == (False, 2, 2)


@pytest.mark.parametrize(("sigma", "half_width"), [(1.7, 3.0), (1.2, 2.0)])
def test_an_answer_with_less_noise_is_reused_and_says_how_much_it_has(sigma: float, half_width: float) -> None:
    """It states its own sigma and half width, not those of today's plan."""
    store, witness, who, first = earlier(sigma)
    with reopened(store, witness) as replica:
        reused = ask(replica, who, "another", **WIDTH)
        shown = orjson.loads(reused.body)
    assert (reused.query_id, values(reused)) == (first.query_id, values(first))
    assert (shown["reused"], shown["sigma"], shown["half_width_95"]) == (True, sigma, half_width)


def test_half_widths_are_whole_steps() -> None:
    """Also where a step is not a whole number."""
    with surveyed() as replica:
        shown = orjson.loads(ask(replica, analyst(replica), "k", select=[{"sum": {"column": "spend"}}]).body)
    steps = shown["half_width_95"] / shown["grid"]
    assert shown["grid"] < 1
    assert steps == int(steps)
    assert (steps + 0.5) * shown["grid"] / shown["sigma"] == pytest.approx(1.959964, rel=1e-6)


BOTH: dict[str, Any] = {"select": [{"count": {}}, {"sum": {"column": "spend"}}], "group_by": ["country"]}


@pytest.mark.parametrize(
    "precision",
    [
        {"noise": {"sigma": [3.0, 700.0]}},
        {"noise": {"half_width": [6, 1400], "confidence": 0.95}, "per_individual": {"l2_clip": [1, 15]}},
        {"noise": {"share": 0.4}},
        {"noise": {"rho": 0.2, "weights": [3, 1]}},
    ],
    ids=str,
)
def test_each_item_is_answered_and_charged_by_its_own_sigma(precision: dict[str, Any]) -> None:
    """To the unit what fractions give, and the same answer when it is rebuilt, verified and asked again."""
    store = MemoryStore()
    with surveyed(store) as replica:
        who = analyst(replica)
        answer = ask(replica, who, "first", **BOTH, **precision)
        again = ask(replica, who, "second", **BOTH, **precision)
        shown = orjson.loads(answer.body)
        assert orjson.loads(again.body) == repeated(shown)
        (entry,) = store.kept[1].entries
        assert [told["sigma"] for told in shown["axes"][-1]["select"]] == shown["sigma"] == list(entry.item_sigmas)
        assert shown["values"] == pytest.approx(
            [steps * shown["grid"][at % 2] for at, steps in enumerate(entry.steps().tolist())], rel=1e-15
        )
        assert entry.is_itself
        assert list(public_facts(entry)["sigmas"]) == shown["sigma"]
        charged, charges, _ = entry.decode()
        clip = precision.get("per_individual", {}).get("l2_clip", [1, 500])
        for slot, charge in zip(charged.tolist(), charges.tolist(), strict=True):
            parts = zip((1, THREE_PEOPLE[slot][3]), clip, shown["grid"], strict=True)
            vector = [trunc(Fraction(min(value, most)) / Fraction(grid)) for value, most, grid in parts]
            assert charge == ceil(sum(steps**2 for steps in vector) * Fraction(2**39) / Fraction(entry.sigma) ** 2)
        del store.kept[1].answers[who.id, "first"]
        rebuilt = rebuild(store, "survey", seq=1, key="first")
        assert rebuilt is not None
        assert rebuilt.body == answer.body
        assert findings(store) == []


def test_one_number_for_unlike_items_is_refused_with_the_numbers_that_were_meant() -> None:
    """Before anything is charged; where their bounds are alike it stands for both, on one grid as ever."""
    with surveyed() as replica:
        who = analyst(replica)
        with pytest.raises(InvalidRequest, match=r"noise\.sigma: give one for each item, such as \[3, 1500\]"):
            ask(replica, who, "uneven", **BOTH, noise={"sigma": 3.0})
        alike = ask(replica, who, "alike", select=[{"count": {}}, {"histogram": {"column": "country"}}])
        assert orjson.loads(alike.body)["sigma"] == 3.0


def test_an_earlier_answer_with_one_sigma_for_all_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A share was laid over both items: it is verified and rebuilt so, and asked anew it is divided."""
    store = MemoryStore()
    with surveyed(store) as replica:
        who = analyst(replica)
        with monkeypatch.context() as earlier_version:
            earlier_version.setattr("service.query.asking.by_item", lambda query: query)
            first = ask(replica, who, "first", **BOTH, noise={"share": 0.2})
        second = ask(replica, who, "second", **BOTH, noise={"share": 0.2})
        shown, anew = orjson.loads(first.body), orjson.loads(second.body)
        assert isinstance(shown["sigma"], float)
        assert (anew["reused"], len(anew["sigma"])) == (False, 2)
        assert "sigmas" not in public_facts(store.kept[1].entries[0])
        del store.kept[1].answers[who.id, "first"]
        rebuilt = rebuild(store, "survey", seq=1, key="first")
        assert rebuilt is not None
        assert rebuilt.body == first.body
        assert findings(store) == []


@given(st.lists(st.integers(-(2**53) + 1, 2**53 - 1), min_size=1, max_size=8), st.integers(-40, 20))
def test_numbers_are_printed_with_no_more_digits_than_the_grid_has(steps: list[int], grid_log2: int) -> None:
    """Integers on an integral grid; on 2^-k at most k decimals, since the shortest text of a double is printed."""
    numbers = in_query_units(np.array(steps, dtype=np.int64), grid_log2=grid_log2, grid=2.0**grid_log2, axes=[])
    printed = orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY).decode()

    texts = printed.strip("[]").split(",")
    for step, text in zip(steps, texts, strict=True):
        number = Decimal(text)
        assert float(number) == step * 2.0**grid_log2
        exponent = number.normalize().as_tuple().exponent
        assert isinstance(exponent, int)
        assert -exponent <= max(-grid_log2, 0)
