"""One shard: what its answers are made of, and changes of its records that are no longer those that were built."""

import numpy as np
import pytest

from service.core.noise import rounded_gaussian
from service.ledger.ports.store import HeadMoved
from service.query.division import PAGE_SLOTS, ShardPlace
from service.writer.shards.shard import Shard
from tests.contracts.stores import dataset
from tests.core.injected import seeded
from tests.laws.form_world import ask, world
from tests.laws.node_examples import outcomes


def test_an_answer_less_its_noise_is_the_sum() -> None:
    """Each query of a batch has noise of its own at its own sigma, drawn before id and salt, and in its order."""
    there, plans = world(0.01), [outcome.plan for outcome in outcomes()[:24]]
    first, second = (ask(there.state(plans), plans, there.head, words=words) for words in (3, 4))
    entropies = seeded(3), seeded(4)
    for plan, one, other in zip(plans, first.entries, second.entries, strict=True):
        sums = []
        for entry, entropy in ((one, entropies[0]), (other, entropies[1])):
            sums.append(entry.steps() - rounded_gaussian(plan.dimension, plan.scale.law.size_steps, entropy))
            assert entropy(6).tobytes()[16:] == entry.salt
        assert sums[0].tolist() == sums[1].tolist()
    assert any(np.any(entry.steps()) for entry in first.entries)


def test_records_are_built_for_the_load_that_holds_them() -> None:
    """Work beside the queries that began before a load is in vain, and begins again."""
    shard = Shard(dataset())
    shard.load(dataset(), slots=10, number=2)
    for call in (
        lambda: shard.changed(1, 1),
        lambda: shard.make_room(1, 20),
        lambda: shard.rows_held(1, "visits"),
        lambda: shard.event_counts(1, "visits", np.array([0])),
    ):
        with pytest.raises(HeadMoved):
            call()
    assert shard.rows_held(2, "visits") == [0]


def test_only_the_change_that_was_built_last_is_put() -> None:
    """An older one was built from other records."""
    shard = Shard(dataset())
    shard.load(dataset(), slots=10, number=1)
    shard.changed(1, 5, emptied=np.array([3]))
    shard.changed(1, 6, emptied=np.array([4]))
    with pytest.raises(RuntimeError, match="another change"):
        shard.put(5, slots_used=10)
    shard.put(6, slots_used=10)
    with pytest.raises(RuntimeError, match="another change"):
        shard.put(6, slots_used=10)


def test_a_shard_of_several_has_room_for_its_part_alone() -> None:
    """The second of three shards has two of five pages."""
    shard = Shard(dataset(), ShardPlace(1, 3))
    shard.load(dataset(), slots=4 * PAGE_SLOTS + 7, number=1)
    assert shard.memory.accounts.size == 2 * PAGE_SLOTS
    assert shard.memory.slots_used == PAGE_SLOTS + 7
