"""Small worlds, of the same seeds every time: every law after every step, every request resolved in the end."""

from collections import Counter
from pathlib import Path

import pytest

from tests.rotation import fresh, times
from tests.simulation.disk import Flaws
from tests.simulation.laws import LawBroken
from tests.simulation.world import World

CHUNK = 50
SEEDS = fresh(times(1, 20) * CHUNK)
FEW = 40  # in any forty worlds a cache tells every kind of lie
FEWER_SEEDS = fresh(times(1, 5) * FEW)  # with a cache, two witnesses, or rejections
SHORTENING_SEED = 34308
KEPT = [
    int(line.split()[0])
    for line in (Path(__file__).parent / "seeds.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.slow
@pytest.mark.parametrize("first", SEEDS[::CHUNK])
def test_no_seed_breaks_a_law(first: int) -> None:
    """A failure names its seed; `python -m tests.simulation --seed N` replays it with its trace."""
    faults: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        world = World(seed)
        world.run()
        faults += world.faults
    assert len(faults) >= 10  # most kinds of fault, in any fifty worlds


@pytest.mark.slow
@pytest.mark.parametrize("first", FEWER_SEEDS[::FEW])
def test_a_cache_that_lies_breaks_no_law(first: int) -> None:
    """The same worlds with a cache between the replicas that loses, delays, exchanges and returns old values."""
    lies: Counter[str] = Counter()
    for seed in range(first, first + FEW):
        world = World(seed, shares=True, shortens=True)
        world.run()
        assert world.liar is not None
        lies += world.liar.counts
    assert set(lies) == {"lost", "old", "swapped", "flushed", "deaf", "found"}


@pytest.mark.slow
@pytest.mark.parametrize("first", FEWER_SEEDS[::FEW])
def test_two_witnesses_written_one_after_the_other_break_no_law(first: int) -> None:
    """The same worlds with replicas that die between writing the second witness, writing the first and syncing it."""
    counts: Counter[str] = Counter()
    for seed in range(first, first + FEW):
        world = World(seed, witnesses=2, shortens=True)
        world.run()
        assert world.first is not None
        counts += world.first.counts
    assert set(counts) == {"away", "unwritten", "unsynced"}


@pytest.mark.slow
@pytest.mark.parametrize("first", FEWER_SEEDS[::FEW])
def test_a_store_that_rejects_some_queries_breaks_no_law(first: int) -> None:
    """The same worlds where transactions with certain queries are always rejected: only these are never answered."""
    faults = Counter[str]()
    for seed in range(first, first + FEW):
        world = World(seed, rejects=True, shortens=True)
        world.run()
        faults += world.faults
    assert faults["rejected_commit"] >= FEW


@pytest.mark.slow
@pytest.mark.parametrize("first", FEWER_SEEDS[::FEW])
def test_shards_that_die_break_no_law(first: int) -> None:
    """The same worlds where each replica has three shards, which are killed between batches and within them."""
    lost = 0
    for seed in range(first, first + FEW):
        world = World(seed, divides=True, shortens=True)
        world.run()
        lost += world.lost_shards
    assert lost >= FEW


@pytest.mark.slow
@pytest.mark.parametrize("first", FEWER_SEEDS[::FEW])
def test_other_accountings_ticks_and_reduced_sums_break_no_law(first: int) -> None:
    """The same worlds with datasets of any accounting, with a monitor or without; half of the replicas have shards."""
    kinds = Counter[str]()
    for seed in range(first, first + FEW):
        world = World(seed, varies=True, divides=seed // 2 % 2 == 0, shares=seed % 3 == 0)
        world.run()
        kinds += world.laws.kinds
    assert set(kinds) >= {"tick that counts somebody", "largest", "length", "active", "older with Laplace noise"}


def test_vectors_are_shortened_in_some_worlds() -> None:
    """In about one of forty, and in this one: the laws compare charges that are parts of others."""
    world = World(SHORTENING_SEED, rejects=True, shortens=True)
    world.run()
    assert world.laws.shortened > 0


@pytest.mark.parametrize("seed", KEPT)
def test_seeds_that_once_broke_a_law_pass(seed: int) -> None:
    """Seeds that once found a bug."""
    World(seed).run()


def test_a_seed_gives_one_run() -> None:
    """Two runs of a seed give the same trace, so that a failure can be replayed."""
    traces: list[list[str]] = [[], []]
    for trace in traces:
        World(4, trace=trace.append).run(requests=12)
    assert traces[0] == traces[1]
    assert len(traces[0]) > 100


@pytest.mark.parametrize(
    "flaws", [Flaws(no_lock=True), Flaws(old_locked_reads=True), Flaws(asynchronous_commit=True)], ids=str
)
def test_a_database_that_cannot_be_trusted_is_noticed(flaws: Flaws) -> None:
    """Wrong isolation, locked reads of an old version, commits lost in a crash: each breaks a law within some seeds."""
    with pytest.raises(LawBroken):
        _run_all(range(60), flaws)


def _run_all(seeds: range, flaws: Flaws) -> None:
    for seed in seeds:
        World(seed, flaws=flaws).run()
