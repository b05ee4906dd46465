"""The channel to a shard, which the twin of tests, a process and an actor of Ray keep alike."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from service.core.renyi_filter import FilterViolation
from service.ledger.model.rows import DatasetRecord
from service.ledger.ports.shards import ShardChannel, ShardLost
from service.query.division import ShardPlace
from service.writer.shards.divided import DividedShards
from tests.contracts.stores import dataset, entry
from tests.laws.form_world import FIVE_PAGES, ask, told, world
from tests.laws.node_examples import outcomes

PLACE = ShardPlace(0, 2)


def check_batches(
    open_shards: Callable[[DatasetRecord], Sequence[ShardChannel]],
    *,
    count: int,
    kill: Callable[[Sequence[ShardChannel]], None],
) -> None:
    """Batches of so many queries are as those of one shard; after `kill` has ended a shard it is loaded again.

    The same are answers, entries, charges, pages and accounts; a loaded shard is where a new replica would be.
    """
    there, plans = world(0.05, FIVE_PAGES), [outcome.plan for outcome in outcomes()[:count]]
    whole = there.state(plans)
    found = ask(whole, plans, there.head).bytes_of()
    channels = open_shards(there.record)
    shards = DividedShards(channels)
    divided = there.state(plans, opened=shards)
    assert ask(divided, plans, there.head).bytes_of() == found
    assert told(divided) == told(whole)
    kill(channels)
    with pytest.raises(ShardLost):
        shards.pages_since(0)
    divided.catch_up(there.snapshot)
    assert shards.restarts == 1
    assert told(divided)["position"] == there.state(plans).position
    shards.close()


class ShardChannelContract(ABC):
    """The behaviour of every kind of channel."""

    @abstractmethod
    def opened(self) -> ShardChannel:
        """A channel to a new shard of `dataset` at `PLACE`."""

    @pytest.fixture
    def channel(self) -> Iterator[ShardChannel]:
        """A channel to an empty shard with one page."""
        opened = self.opened()
        opened.begin("queries", "load", dataset(), slots=100, number=1)()
        yield opened
        opened.close()

    def test_a_call_returns_what_the_shard_returns(self, channel: ShardChannel) -> None:
        """On every lane, with arrays that may be written."""
        accounts = channel.begin("accounts", "accounts", np.array([3, 5]))()
        assert accounts.present.tolist() == [False, False]
        accounts.limit[:] = 7
        assert channel.begin("records", "rows_held", 1, "visits")() == [0]
        assert channel.begin("queries", "pages_since", 0)() == {}

    def test_an_error_of_the_shard_comes_with_the_result_and_loses_nothing(self, channel: ShardChannel) -> None:
        """The next call is done."""
        wait = channel.begin("queries", "replay", entry(world(0.0, FIVE_PAGES).head, {2: 2**60}))
        with pytest.raises(FilterViolation):
            wait()
        assert channel.begin("queries", "pages_since", 0)() == {}

    def test_a_closed_shard_is_lost_and_a_restarted_one_is_empty(self, channel: ShardChannel) -> None:
        """Nothing of what it held is left."""
        channel.begin("queries", "grow", 5 * FIVE_PAGES)()
        channel.close()
        with pytest.raises(ShardLost):
            channel.begin("accounts", "accounts", np.array([0]))()
        channel.restart()
        channel.begin("queries", "load", dataset(), slots=100, number=2)()
        assert channel.begin("accounts", "accounts", np.array([0]))().limit.tolist() == [0]
        channel.close()
