"""A dataset divided by page over any number of shards is the dataset undivided, to the byte.

Batches over every node of the language, on datasets of five pages in which some people are exhausted, paused or erased:
answers, charges, entries, pieces, hashes, pages and accounts are the same with the same noise; what was refused is
taken back from all shards, and a ledger is replayed into any other number of them.
"""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.ledger.ports.store import HeadMoved
from service.query.plan import Plan
from service.writer.shards.divided import DividedShards
from tests.laws.every_node import documents
from tests.laws.form_plans import FUNCTIONS, batch_of, planned
from tests.laws.form_world import FIVE_PAGES, World, ask, told, world
from tests.laws.node_examples import outcomes
from tests.memory.shards import MemoryShardChannel
from tests.rotation import one_of, some_of, times

COUNTS = (2, 3, 4, 8)
LAW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
DENSITIES = st.sampled_from([0.0, 1e-4, 0.003, 0.05])
RULES = ("skip", "clip", *FUNCTIONS)
PLANS = st.lists(
    st.builds(planned, documents(), st.sampled_from(["skip", "clip", *FUNCTIONS])).filter(
        lambda plan: plan is not None
    ),
    min_size=2,
    max_size=2,
)


def alike(there: World, plans: list[Plan], asked: list[Plan], count: int) -> None:
    """A batch on so many shards is that of one, and so is its replay into another number of them."""
    whole = there.state(plans)
    before = told(whole)
    found = ask(whole, asked, there.head)
    other = there.state(plans, shards=count)
    assert told(other) == before
    assert ask(other, asked, there.head).bytes_of() == found.bytes_of()
    assert told(other) == told(whole)
    for shards in (1, COUNTS[(COUNTS.index(count) + 1) % len(COUNTS)]):
        again = there.state(plans, shards=shards)
        for entry in found.entries:
            again.apply(entry)
        assert told(again) == told(whole)


@settings(LAW, max_examples=times(6, 40))
@given(plans=PLANS, density=DENSITIES, count=st.sampled_from(COUNTS))
def test_no_byte_depends_on_the_number_of_shards(plans: list[Plan], density: float, count: int) -> None:
    """Answers, entries, charges, counters, pages, and the replay of the entries."""
    alike(world(density, FIVE_PAGES), plans, batch_of(plans), count)


@pytest.mark.parametrize("number", some_of(range(29), 3))
def test_no_byte_depends_on_the_number_of_shards_for_any_node(number: int) -> None:
    """The fixed examples hold every node of the language."""
    plans = [outcome.plan for outcome in outcomes()[number * 12 : (number + 1) * 12]]
    alike(world((0.05, 0.3, 0.003)[number % 3], FIVE_PAGES), plans, plans, COUNTS[number % len(COUNTS)])


@pytest.mark.parametrize("count", one_of(COUNTS))
def test_no_byte_of_a_reduced_query_depends_on_the_number_of_shards(count: int) -> None:
    """Shards have the vectors, and the coordinator what is made of their sum."""
    events = {"from": "visits", "select": [{"histogram": {"column": "item"}}], "noise": {"sigma": 3.0}}
    people = {"select": [{"count": {}}], "group_by": ["town"], "noise": {"sigma": 3.0}}
    plans = [planned({"version": 1} | query, function) for query in (events, people) for function in FUNCTIONS]
    found = [plan for plan in plans if plan is not None]
    assert len(found) == len(plans)
    alike(world(0.05, FIVE_PAGES), found, batch_of(found), count)


@settings(LAW, max_examples=times(4, 20))
@given(plans=PLANS, density=DENSITIES, count=st.sampled_from(COUNTS))
def test_what_is_taken_back_has_never_been(plans: list[Plan], density: float, count: int) -> None:
    """At every shard, whichever of them the batch has charged."""
    there = world(density, FIVE_PAGES)
    state = there.state(plans, shards=count)
    before = told(state)
    with suppress(HeadMoved), state.tentative():
        ask(state, batch_of(plans), there.head)
        raise HeadMoved
    assert told(state) == before


def test_the_people_of_each_page_are_at_one_shard() -> None:
    """Every slot is held by exactly one shard, and each has its part."""
    there = world(0.3, FIVE_PAGES)
    (plan,) = (outcome.plan for outcome in outcomes()[:1])
    state = there.state([plan], shards=3)
    assert isinstance(state.shards, DividedShards)
    shards = [channel.shard for channel in state.shards._channels.values() if isinstance(channel, MemoryShardChannel)]
    held = [int(shard.memory.people.present.sum()) for shard in shards if shard is not None]
    assert sum(held) == state.copy_accounts(slice(0, FIVE_PAGES)).present.sum()
    assert np.all(np.array(held) > 0)
