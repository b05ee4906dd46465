"""Small worlds, of the same seeds every time: every law after every step, every request resolved in the end."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from tests.rotation import fresh, times
from tests.simulation.disk import Flaws, Rates
from tests.simulation.laws import LawBroken
from tests.simulation.world import World

CHUNK, CHUNK_OF_A_KIND = 25, 10
FIRST_OF_A_KIND = 20
"""From here on ten worlds of shards that die notice a change that was built at a lost shard and is committed."""
SEEDS = fresh(times(1, 40) * CHUNK)
SEEDS_OF_A_KIND = [FIRST_OF_A_KIND + seed for seed in fresh(times(1, 20) * CHUNK_OF_A_KIND)]
KINDS: dict[str, Callable[[int], World]] = {
    "a cache that lies": lambda seed: World(seed, shares=True, shortens=True),
    "two witnesses": lambda seed: World(seed, witnesses=2, shortens=True),
    "rejections": lambda seed: World(seed, rejects=True, shortens=True),
    "shards that die": lambda seed: World(seed, divides=True, shortens=True),
    "other accountings, ticks and reductions": lambda seed: World(
        seed, varies=True, divides=seed // 2 % 2 == 0, shares=seed % 3 == 0
    ),
}
"""The worlds by their faults or queries; of two witnesses one is written after the other."""
KEPT = [
    int(line.split()[0])
    for line in (Path(__file__).parent / "seeds.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize("first", SEEDS[::CHUNK])
def test_no_seed_breaks_a_law(first: int) -> None:
    """A failure names its seed; `python -m tests.simulation --seed N` replays it with its trace."""
    for seed in range(first, first + CHUNK):
        World(seed).run()


@pytest.mark.parametrize("first", SEEDS_OF_A_KIND[::CHUNK_OF_A_KIND])
@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_world_breaks_a_law(kind: str, first: int) -> None:
    """Caches lie, witnesses fail, transactions are rejected, shards die, or every query is asked."""
    for seed in range(first, first + CHUNK_OF_A_KIND):
        KINDS[kind](seed).run()


REACHING = {
    "a cache that lies": (2, 9),
    "two witnesses": (0, 4, 7),
    "rejections": (0,),
    "shards that die": (8,),
    "other accountings, ticks and reductions": (2, 6),
}
"""Seeds by kind of world."""
FURTHER = {"two witnesses": range(35, 48)}
"""Worlds for what these do not reach any more, as what is drawn changes with what a world can do."""
REACHED = {
    *(fault.name for fault in fields(Rates) if fault.name != "old_snapshot"),  # a fault of one incorrect database alone
    "rejected_commit",
    *("lost", "old", "swapped", "flushed", "deaf", "found"),  # of what is asked of a cache
    *("away", "unwritten", "unsynced"),  # of what is written to the first of two witnesses
    *("all", "active", "older", "visits", "clipped", "frequent", "squares", "largest", "length"),
    *("older with Laplace noise", "visits with Laplace noise", "tick that counts somebody"),
}


def test_a_few_worlds_reach_every_fault_and_every_kind_of_query() -> None:
    """The laws say something: their worlds have shards that are lost and vectors that are shortened too."""
    left = REACHED | {"a lost shard", "a shortened vector"}
    for kind, seed in ((kind, seed) for turn in (REACHING, FURTHER) for kind, seeds in turn.items() for seed in seeds):
        world = KINDS[kind](seed)
        world.run()
        left -= world.faults.keys() | world.laws.kinds.keys()
        left -= world.liar.counts.keys() if world.liar is not None else set()
        left -= world.first.counts.keys() if world.first is not None else set()
        left -= {"a lost shard"} if world.lost_shards else set()
        left -= {"a shortened vector"} if world.laws.shortened else set()
        if not left:
            break
    assert left == set()


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
