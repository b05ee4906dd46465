"""The cache port over a key-value store in memory and over a real Valkey: both pass the same tests."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from service.ledger.ports.cache import Cache, CommitNotice, SharedEntry, SharedSummary
from service.store.redis.sealed import VALUE_BYTES_MAX, SealedCache
from tests.contracts.caches import GENESIS, OTHER, account_slice, caches, chain, notice, shared_summary
from tests.waiting import PATIENCE_S, until

Make = Callable[[], SealedCache]
HOUR_US = 3_600_000_000


@pytest.fixture(params=["memory", "redis"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """A factory of caches over one empty key-value store, each kind in turn."""
    url = request.getfixturevalue("redis_url") if request.param == "redis" else None
    with caches(url) as made:
        yield made


@pytest.fixture
def cache(make: Make) -> Cache:
    """One cache of each kind in turn."""
    return make()


def heard(cache: Cache, count: int) -> list[CommitNotice]:
    """The next `count` notices; fails if they do not arrive in time."""
    found: list[CommitNotice] = []
    while len(found) < count:
        came = cache.listen(within_s=PATIENCE_S)
        assert came, "the notices did not arrive"
        found += came
    return found


def test_nothing_is_known_at_first(cache: Cache) -> None:
    """An empty cache finds no summary, entries or slices."""
    assert cache.summary(GENESIS) is None
    assert cache.entries(GENESIS, after=0, to=3) == []
    assert cache.slices(GENESIS, [0, 1]) == []
    assert cache.slices(GENESIS, []) == []


def test_entries_come_back_whole_and_in_order(make: Make) -> None:
    """A read gives the entries between two sequences, with gaps where entries are missing."""
    entries = chain(6)
    make().share([SharedEntry(genesis=GENESIS, entry=entries[n]) for n in (4, 0, 1, 3)], [])
    cache = make()
    assert cache.entries(GENESIS, after=0, to=6) == [entries[n] for n in (0, 1, 3, 4)]
    assert cache.entries(GENESIS, after=1, to=4) == [entries[n] for n in (1, 3)]
    assert cache.entries(OTHER, after=0, to=6) == []


def test_an_entry_of_any_numbers_in_use_reads_back(cache: Cache) -> None:
    """The largest sums do not fit 64 bits."""
    (entry,) = chain(1)
    large = replace(entry, charged_units=10**6 * 2**62, sigma=0.1, worst_case_total_units=2**62, kind="burn")
    cache.share([SharedEntry(genesis=GENESIS, entry=large)], [])
    assert cache.entries(GENESIS, after=0, to=1) == [large]


def test_a_value_that_is_too_large_is_not_shared(cache: Cache) -> None:
    """The database returns large values faster than the cache."""
    cache.share([shared_summary(bytes(VALUE_BYTES_MAX))], [])
    assert cache.summary(GENESIS) is None


def test_a_slice_moves_only_forward(make: Make) -> None:
    """Slices are replaced only in the order of (fence, sequence, data version); a late writer changes nothing."""
    cache = make()
    order = [account_slice(3), account_slice(3, data_version=2), account_slice(11), account_slice(4, fence=2)]
    for each in order:
        make().share([each], [])
        assert [found.place for found in cache.slices(GENESIS, [0])] == [each.place]
    for late in (account_slice(99), account_slice(4, fence=2, data_version=0), account_slice(3, fence=2)):
        cache.share([late], [])
    (found,) = cache.slices(GENESIS, [0])
    assert found.place == order[-1].place


def test_a_slice_does_not_overwrite_a_concurrent_one(make: Make) -> None:
    """Another replica may store its own slice between our read and our write."""
    ours, theirs = make(), make()
    ours.share([account_slice(3)], [])
    look = ours._values.get

    def look_early(names: Sequence[str]) -> list[object]:
        seen = look(names)
        theirs.share([account_slice(9)], [])
        return seen

    ours._values.get = look_early  # type: ignore[method-assign]
    ours.share([account_slice(5), account_slice(4)], [])
    (found,) = theirs.slices(GENESIS, [0])
    assert found.place.seq == 9


def test_slices_read_back_each_with_its_place(cache: Cache) -> None:
    """The slices that are stored, in the order asked for."""
    cache.share([account_slice(5, number=7), account_slice(6, number=2)], [])
    found = cache.slices(GENESIS, [2, 3, 7])
    assert [(each.number, each.place.seq) for each in found] == [(2, 6), (7, 5)]
    np.testing.assert_array_equal(found[0].limits, [2**62, 7, 0])
    np.testing.assert_array_equal(found[0].spent, [6, 7, 0])
    np.testing.assert_array_equal(found[0].paused, [False, True, False])


def test_a_summary_is_the_last_that_was_shared(make: Make) -> None:
    """With its place, which tells whether it is of now; another dataset has its own."""
    ours, theirs = make(), make()
    assert ours.summary(GENESIS) is None
    for seq in (3, 5, 4):
        shared = SharedSummary(place=account_slice(seq).place, body=b'{"sequence":%d}' % seq)
        ours.share([shared], [])
        assert theirs.summary(GENESIS) == shared
    assert theirs.summary(OTHER) is None


def test_notices_reach_every_listener(make: Make) -> None:
    """The sender hears it too; notices sent before a cache listened are not delivered."""
    ours, theirs = make(), make()
    assert ours.audience() == 0
    ours.share([], [notice(1)])
    for each in (ours, theirs):
        assert each.listen(within_s=0.01) == []
    assert ours.audience() == 2
    ours.share([], [notice(2), notice(3)])
    for each in (ours, theirs):
        assert heard(each, 2) == [notice(2), notice(3)]


def test_a_closed_cache_no_longer_listens(make: Make) -> None:
    """The sender does not wait for a closed listener."""
    ours, theirs = make(), make()
    for each in (ours, theirs):
        each.listen(within_s=0.01)
    theirs.close()
    until(lambda: ours.audience() == 1)  # a server notices in its own time
    ours.share([], [notice(1)])
    assert heard(ours, 1) == [notice(1)]


def test_a_bucket_is_shared_and_runs_out(make: Make) -> None:
    """Five tokens at once over all replicas; then a wait of at most the time until the next one."""
    ours, theirs = make(), make()

    def take(cache: SealedCache, bucket: str = "b") -> object:
        return cache._values.take(bucket, interval_us=HOUR_US, burst=5)

    assert [take(each) for each in (ours, theirs, ours, theirs, ours)] == [0] * 5
    for each in (ours, theirs):
        wait_us = take(each)
        assert isinstance(wait_us, int)
        assert 0 < wait_us <= HOUR_US
    assert take(ours, "another") == 0
    assert ours.take("b", per_s=1, burst=5) == 0
