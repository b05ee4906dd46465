"""429: the limit on requests as callers meet it, and without a limit no look-up happens."""

from math import ceil

from service.ledger.ports.cache import NoCache
from service.store.redis.sealed import SealedCache
from service.writer.admission.rate_limit import Limiter, Rate
from tests.api.problem_shape import check_shape
from tests.api.world import COUNT, World
from tests.memory.cache import MemoryKeyValueStore, MemoryServer

FRESH = COUNT[:-1] + b',"reuse":false}'
RATE = Rate(per_s=1, burst=3)


class Counting(NoCache):
    """A cache that notes the counted principals."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def take(self, bucket: str, *, per_s: int, burst: int) -> float | None:
        self.taken.append(bucket)
        return None


async def test_too_many_requests_are_refused_before_anything_is_read(world: World) -> None:
    """With Retry-After, by role alike, each principal for itself; and the ledger does not know of them."""
    world.replica.limiter = Limiter(
        RATE, SealedCache(MemoryKeyValueStore(MemoryServer()), bytes(32)), clock=lambda: 5.0
    )
    replies = [await world.ask(f"k{n}", FRESH) for n in range(6)]
    assert [reply.status_code for reply in replies] == [200, 200, 200, 429, 429, 429]
    for reply in replies[3:]:
        assert check_shape(reply).type == "urn:sparing:problem:rate-limited"
        assert 1 <= int(reply.headers["retry-after"]) <= ceil(RATE.filling_s)
    assert (await world.call("auditor", "GET", "/v1/datasets/care/ledger")).status_code == 200
    assert world.store.head(1).seq == 4


async def test_paths_that_are_not_ones_own_count_as_well(world: World) -> None:
    """A principal that knocks at the wrong doors is the same principal; a stranger is 401 for ever."""
    world.replica.limiter = Limiter(RATE, NoCache(), clock=lambda: 5.0)
    statuses = [(await world.call("auditor", "GET", "/v1/me/budgets")).status_code for _ in range(5)]
    assert statuses == [403, 403, 403, 429, 429]
    assert {(await world.call(None, "GET", "/v1/me/budgets")).status_code for _ in range(5)} == {401}


async def test_probes_are_not_limited_and_without_a_limit_no_cache_is_asked(world: World) -> None:
    """Not even the cache."""
    counting = Counting()
    world.replica.limiter = Limiter(RATE, counting, clock=lambda: 5.0)
    assert {(await world.call(None, "GET", "/readyz")).status_code for _ in range(5)} == {200}
    assert counting.taken == []
    await world.ask("one")
    assert counting.taken == [world.ids["analyst"].replace("-", "")]
    world.replica.limiter = None
    assert {(await world.ask(f"k{n}")).status_code for n in range(8)} == {200}
    assert len(counting.taken) == 1
