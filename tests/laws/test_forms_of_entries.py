"""The form of blocks decides about time alone: lists, stretches with marks, and either cut anywhere, say the same.

A batch of queries over every node is answered with the same noise, on datasets from empty to full in which some people
are exhausted, paused or erased. All that is written of it is the same to the byte, whatever the form; a replay of its
entries gives the same memory, and taking it back gives the memory before. What an entry's norms take is public.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.ledger.model.pieces import STRETCH_SLOTS, WHOLE, Measure
from service.ledger.ports.store import CommitRejected, HeadMoved
from service.query.plan import Plan
from service.writer.state import DatasetState
from tests.core.contributions import sparse
from tests.laws.every_node import documents
from tests.laws.form_plans import batch_of, planned
from tests.laws.form_world import SLOTS, Asked, World, ask, told, world
from tests.laws.forms import Blocks, Form, alternately, as_they_come, cut, lists, stretches, whole_pages
from tests.laws.node_examples import outcomes
from tests.memory.shards import only_shard
from tests.rotation import some_of, times

Json = dict[str, Any]
LAW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
DENSITIES = (0.0, 1e-4, 0.01, 1 / 64, 0.3, 0.97, 1.0)
SIZES = (1201, STRETCH_SLOTS - 1, STRETCH_SLOTS, STRETCH_SLOTS + 1, 50_000)
CUTS = st.sampled_from([*product(DENSITIES, SIZES), *product((1e-4, 0.003), (1, 3))])
"""How dense people are, and how many places a part has: of few people one or three."""


def parts_of(form: Form, then: Form, size: int) -> Form:
    """The blocks in one form, cut, in another."""

    def formed(blocks: Blocks) -> Any:
        return then(cut(form(blocks), size))

    return formed


FORMS: dict[str, Callable[[int], Form]] = {
    "lists": lambda _: lists,
    "stretches": lambda _: stretches,
    "whole pages": lambda _: whole_pages,
    "cut as they come": lambda size: partial(cut, size=size),
    "cut lists": lambda size: parts_of(lists, as_they_come, size),
    "cut stretches": lambda size: parts_of(stretches, as_they_come, size),
    "cut pages": lambda size: parts_of(whole_pages, as_they_come, size),
    "lists and stretches in turn": lambda size: parts_of(lists, alternately, size),
}


ANY_PLAN = st.builds(planned, documents(), st.sampled_from(["skip", "clip"])).filter(lambda plan: plan is not None)
PLANS = st.lists(ANY_PLAN, min_size=2, max_size=2)


@settings(LAW, max_examples=times(4, 25))
@given(plans=PLANS, cut_into=CUTS, names=st.sets(st.sampled_from(sorted(FORMS)), min_size=3, max_size=3))
def test_no_byte_depends_on_the_form_of_blocks(plans: list[Plan], cut_into: tuple[float, int], names: set[str]) -> None:
    """Answers, entries, charges, counters and pages."""
    density, size = cut_into
    alike(world(density), plans, batch_of(plans), {name: FORMS[name](size) for name in sorted(names)})


def alike(there: World, plans: list[Plan], asked: list[Plan], forms: Mapping[str, Form]) -> Asked:
    """Raises AssertionError unless a batch in each form is that of the blocks as they come, which is returned."""
    state = there.state(plans)
    found = ask(state, asked, there.head)
    memory = told(state)
    for name, form in forms.items():
        other = there.state(plans, form)
        assert ask(other, asked, there.head).bytes_of() == found.bytes_of(), name
        assert told(other) == memory, name
    return found


def count_under(rule: str) -> Plan:
    """The plan of a count of all."""
    plan = planned({"version": 1, "select": [{"count": {}}], "noise": {"sigma": 30.0}}, rule)
    assert plan is not None
    return plan


def test_shortened_vectors_are_the_same_in_every_form() -> None:
    """Some can pay for their vectors, some for a part and some for nothing."""
    plan = count_under("clip")
    found = alike(world(0.3), [plan], [plan], {name: form(STRETCH_SLOTS + 1) for name, form in FORMS.items()})
    (entry,) = found.entries
    told_of = entry.quantities()
    assert told_of.norms_before is not None
    shortened = np.count_nonzero(told_of.active & (told_of.amounts < told_of.norms_before))
    assert 0 < shortened < entry.charged_count < told_of.touched.size


def test_another_form_of_the_norm_is_seen() -> None:
    """A planted mistake: norms that are one by the query are taken for those that are one by chance."""

    def forgetful(blocks: Blocks) -> Any:
        return (replace(block, norms_squared=block.norms_squared.copy(), one_norm=False) for block in blocks)

    with pytest.raises(AssertionError):
        alike(world(0.3), [count_under("skip")], [count_under("skip")], {"forgetful": forgetful})


GROUP = 12
GROUPS = range(29)
"""The groups that hold every fixed example."""
ASKED = some_of(GROUPS, 3)


@cache
def group(number: int) -> tuple[World, list[Plan]]:
    """Some of the fixed examples, which hold every node of the language, and a dataset for them."""
    plans = [outcome.plan for outcome in outcomes()[number * GROUP : (number + 1) * GROUP]]
    return world((1.0, 0.3, 0.01, 0.97)[number % 4]), plans


@cache
def alike_in_three_forms(number: int) -> Asked:
    """A group of the fixed examples in three forms, which change from group to group."""
    there, plans = group(number)
    names = [sorted(FORMS)[(3 * number + step) % len(FORMS)] for step in range(3)]
    return alike(there, plans, plans, {name: FORMS[name](1201 + 997 * number) for name in names})


@pytest.mark.parametrize("number", ASKED)
def test_no_byte_depends_on_the_form_of_blocks_for_any_node(number: int) -> None:
    """The fixed examples hold every node of the language."""
    assert len(alike_in_three_forms(number).entries) == len(group(number)[1]) > 0


def test_the_examples_reach_every_form_of_an_entry() -> None:
    """The laws would hold trivially if all were charged, or if no piece were a bitmap or no block a list."""
    assert sum(len(group(number)[1]) for number in GROUPS) == len(outcomes())
    entries = [entry for number in ASKED for entry in alike_in_three_forms(number).entries]
    assert {(piece.content[0], piece.content[1]) for entry in entries for piece in entry.pieces} == {
        (measure, form) for measure in (Measure.ONE_NORM, Measure.NORMS) for form in (0, 1)
    }
    assert {tuple(piece.number for piece in entry.pieces) for entry in entries} >= {(WHOLE,), (0, 1, 2)}
    assert {piece.content[2] for entry in entries for piece in entry.pieces} == {1, 2, 4, 8}
    assert sum(entry.charged_count > 0 < entry.left_out_count for entry in entries) > len(entries) // 4
    blocks = [
        type(block.touched.index)
        for there, plans in map(group, ASKED[:4])
        for plan in plans
        for block in _blocks(there, plan)
    ]
    assert set(blocks) == {slice, np.ndarray}


def _blocks(there: World, plan: Plan) -> Blocks:
    return map(sparse, only_shard(there.state([plan])).contributions(plan))


@settings(LAW, max_examples=times(12, 25))
@given(plans=PLANS, cut_into=CUTS, name=st.sampled_from(sorted(FORMS)))
def test_a_replay_gives_the_memory_of_the_release(plans: list[Plan], cut_into: tuple[float, int], name: str) -> None:
    """Entry by entry, whatever the form was in which the release found the individuals."""
    density, size = cut_into
    there = world(density)
    released, replayed = there.state(plans, FORMS[name](size)), there.state(plans)
    for entry in ask(released, batch_of(plans), there.head).entries:
        replayed.apply(entry)
    assert told(replayed) == told(released)


@settings(LAW, max_examples=times(6, 25))
@given(
    plans=PLANS,
    cut_into=CUTS,
    name=st.sampled_from(sorted(FORMS)),
    fault=st.sampled_from([HeadMoved(), CommitRejected("23514")]),
)
def test_what_is_taken_back_has_never_been(
    plans: list[Plan], cut_into: tuple[float, int], name: str, fault: Exception
) -> None:
    """After a batch that stands, one that does not: memory is as before it, and answers the next one as if alone."""
    density, size = cut_into
    there = world(density)
    state, other = there.state(plans, FORMS[name](size)), there.state(plans)
    stood = ask(state, batch_of(plans), there.head)
    assert ask(other, batch_of(plans), there.head).bytes_of() == stood.bytes_of()
    with pytest.raises(type(fault)):
        refuse(state, plans, stood, fault)
    assert told(state) == told(other)
    following = [ask(each, plans, stood.head, words=5).bytes_of() for each in (state, other)]
    assert following[0] == following[1]
    assert told(state) == told(other)


def refuse(state: DatasetState, plans: list[Plan], stood: Asked, fault: Exception) -> None:
    """Answer a batch whose commit ends in a fault."""
    with state.tentative():
        ask(state, batch_of(plans), stood.head, words=4)
        raise fault


# The bytes of a norm


def width_for(largest: int) -> int:
    """The fewest bytes, of 1, 2, 4 and 8, that hold a number."""
    return next(width for width in (1, 2, 4, 8) if largest < 256**width)


def headers(there: World, plan: Plan, *, without: int | None) -> set[tuple[int, int]]:
    """Measure and width of each piece of an entry for a plan."""
    (entry,) = ask(there.state([plan], without=without), [plan], there.head).entries
    return {(piece.content[0], piece.content[2]) for piece in entry.pieces}


@settings(LAW, max_examples=times(12, 25))
@given(plan=ANY_PLAN, density=st.sampled_from(DENSITIES), of=st.integers(0, SLOTS))
def test_the_width_of_norms_is_what_the_plans_bound_needs(plan: Plan, density: float, of: int) -> None:
    """Equal between neighbours; of norms that are one by the plan there is one, of eight bytes."""
    there = world(density)
    measure = Measure.TWO_NORMS if plan.shortens else Measure.NORMS
    wanted = (Measure.ONE_NORM, 8) if plan.has_one_norm else (measure, width_for(plan.scale.charged_squared_steps))
    for without in (None, of):
        found = headers(there, plan, without=without)
        assert found == {wanted}
