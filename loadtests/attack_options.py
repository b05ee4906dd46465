"""The options of the timing attack: its target, its probes and its numbers of tries."""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Protocol, TypeVar

from loadtests.batches import BATCHES
from loadtests.neighbours import (
    CONTROLS,
    EQUAL,
    HIDDEN_WORK,
    NEIGHBOURS,
    PLANTED,
    PLANTED_WORK,
    SECOND_CLOCK,
    SHORTENED,
    Neighbours,
)
from loadtests.polling import ACTS
from loadtests.probes import PROBES, Probe
from loadtests.second_clock import SECOND_CLOCKS
from loadtests.shortening import SHORTENING

ALL_PROBES = (*PROBES, *BATCHES, *SECOND_CLOCKS, *SHORTENING)
ONLY_PROBES = {
    **{pair.name: tuple(probe.name for probe in SHORTENING) for pair in SHORTENED},
    EQUAL.name: ("count", "sum", "list", "40 broad counts", "24 broad counts", "clip sum"),
    PLANTED.name: ("count", "sum", "list", "clip sum"),
    PLANTED_WORK.name: ("40 broad counts", "24 sums"),
    HIDDEN_WORK.name: tuple(probe.name for probe in SECOND_CLOCKS),
    SECOND_CLOCK.name: ("reads as individual", "reads as auditor"),
}
"""The probes of a pair that is attacked by some probes alone, such as a control."""
PAIRS = (*NEIGHBOURS, *SHORTENED, HIDDEN_WORK, *CONTROLS)
POLL = "poll"
GROUPS = {
    "requests": [probe.name for probe in PROBES],
    "batches": [probe.name for probe in BATCHES],
    "reads": [probe.name for probe in SECOND_CLOCKS],
    "clips": [probe.name for probe in SHORTENING],
}
QUICK_TRIES, QUICK_BATCH_TRIES = 100, 24
QUICK_PROBES = ("count", "sum", "40 broad counts", "20 listed counts", "24 sums", *GROUPS["reads"], *GROUPS["clips"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The target of an attack, its numbers of tries, and other settings."""

    people: int
    tries: int
    heavy_tries: int
    batch_tries: int
    workers: int
    slot_ms: int
    neighbours: Sequence[str]
    probes: Sequence[str]
    seed: int
    speed: Path | None
    json: Path | None


def parsed(arguments: Sequence[str]) -> Options:
    """The options of a command line."""
    parser = argparse.ArgumentParser(prog="loadtests.attack_timing", description="Tell neighbours apart by time.")
    parser.add_argument("--people", type=int, default=5000)
    parser.add_argument("--tries", type=int, default=500, help="of each world, for probes of one request")
    parser.add_argument("--heavy-tries", type=int, default=100, help="of each world, for crowds and polls")
    parser.add_argument("--batch-tries", type=int, default=30, help="of each world, for batches")
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{QUICK_TRIES} tries, and {QUICK_BATCH_TRIES} of batches, of a few probes of each kind",
    )
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--slot-ms", type=int, default=2)
    names = [*(pair.name for pair in PAIRS), *(acting.name for acting in ACTS)]
    probes = [*(probe.name for probe in ALL_PROBES), POLL]
    parser.add_argument("--neighbours", nargs="*", choices=names, default=names)
    parser.add_argument(
        "--probes", nargs="*", choices=[*GROUPS, *probes], default=None, help="all; with several workers, the polls"
    )
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument(
        "--speed", type=Path, default=None, help="a kept speed.json of this machine, instead of each server's own"
    )
    parser.add_argument("--json", type=Path, default=None, help="a file for the figures")
    options = parser.parse_args(arguments)
    if options.probes is None:
        every = QUICK_PROBES if options.quick else probes
        options.probes = every if options.workers == 1 else [POLL]
    options.probes = [*chain.from_iterable(GROUPS.get(name, [name]) for name in options.probes)]
    if options.workers > 1 and options.probes != [POLL]:
        # Two datasets may belong to two workers, and a forwarded answer leaves 0.14 ms later, whatever is in them.
        parser.error("with several workers only the probe 'poll', on one dataset, says something of people")
    if options.quick:
        options.tries, options.heavy_tries, options.batch_tries = QUICK_TRIES, QUICK_BATCH_TRIES, QUICK_BATCH_TRIES
    named = {name: value for name, value in vars(options).items() if name != "quick"}
    return Options(**named)


class Named(Protocol):
    """A thing that can be chosen by its name."""

    @property
    def name(self) -> str:
        """The name."""


Thing = TypeVar("Thing", bound=Named)


def chosen(every: Sequence[Thing], names: Sequence[str]) -> list[Thing]:
    """The things with these names."""
    return [each for each in every if each.name in names]


def probes_of(pair: Neighbours, options: Options) -> list[Probe]:
    """The chosen probes that attack a pair."""
    only = ONLY_PROBES.get(pair.name, [probe.name for probe in (*PROBES, *BATCHES)])
    return [probe for probe in chosen(ALL_PROBES, options.probes) if probe.name in only]


def tries_of(probe: Probe, options: Options) -> int:
    """The number of tries of a probe in each world."""
    if probe.is_batch:
        return options.batch_tries
    return options.heavy_tries if probe.is_heavy else options.tries
