"""Sparse counts under the default slots, of this checkout and of another one: one connection, and 64.

    git worktree add ../before <commit>
    python -m loadtests.bench_slots --people 100000 --before ../before

The capacity of the dataset is filled. Each checkout has the constants that its first start measures, or both have those
of a file (`--speed`): on a machine with other work two measurements differ more than the checkouts. The load alternates
between the checkouts in short rounds. A round has half a second of single counts and two seconds of 64 connections.
Waiting for slots is part of the time.
"""

import argparse
import os
import shutil
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from loadtests.bench_hot_path import measured, ours, sparse
from loadtests.rig import Rig, register_people, serving, throw_away_home

PEOPLE = (100_000, 1_000_000)
CONNECTIONS = 64
ALONE_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Side:
    """A served checkout, and the figures measured of it."""

    name: str
    rig: Rig
    alone_ms: list[float] = field(default_factory=list)
    per_s: list[float] = field(default_factory=list)

    def measure(self) -> None:
        """Measure one round."""
        until_s = time.perf_counter() + ALONE_S
        while time.perf_counter() < until_s:
            self.alone_ms.append(ask_ms(self.rig, len(self.alone_ms)))
        self.per_s.append(measured(ours(self.rig), CONNECTIONS).per_s)

    @property
    def doubled(self) -> float:
        """The share of single counts that took at least one and a half times as long as most: those were late."""
        return sum(each > 1.5 * statistics.median(self.alone_ms) for each in self.alone_ms) / len(self.alone_ms)

    def report(self, capacity: int) -> str:
        """A line with the medians, the spread of the rounds, and the public cost."""
        alone = sorted(self.alone_ms)
        rates = sorted(self.per_s)
        return (
            f"{self.name:7} {capacity:>9,} people: alone {statistics.median(alone):6.1f} ms "
            f"(90 % {alone[int(0.9 * len(alone))]:.1f}, {self.doubled:.1%} late), "
            f"{CONNECTIONS} connections {statistics.median(rates):6.0f} /s "
            f"({rates[0]:.0f} to {rates[-1]:.0f}), public cost {public_cost_ms(self.rig)} ms"
        )


def main() -> None:
    """Measure at each number of people, and print a line for each checkout."""
    parser = argparse.ArgumentParser(prog="loadtests.bench_slots")
    parser.add_argument("--people", type=int, nargs="+", default=PEOPLE)
    parser.add_argument("--before", type=Path, help="another checkout")
    parser.add_argument("--speed", type=Path, help="a speed.json for both")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    checkouts = [("before", options.before.resolve())] if options.before else []
    for capacity in options.people:
        with ExitStack() as stack:
            sides = [
                side(stack, name, checkout, capacity, options.speed) for name, checkout in [*checkouts, ("now", None)]
            ]
            compare(sides, options.rounds)
            for each in sides:
                print(each.report(capacity), flush=True)


def side(stack: ExitStack, name: str, checkout: Path | None, capacity: int, speed: Path | None) -> Side:
    """Serve a checkout with a dataset, and warm it up."""
    home = stack.enter_context(throw_away_home())
    if speed is not None:
        shutil.copy(speed, home / "speed.json")
    rig = stack.enter_context(serving(home, checkout=checkout))
    register_people(rig, capacity)
    for number in range(10):
        ask_ms(rig, number)
    measured(ours(rig), CONNECTIONS)
    return Side(name=name, rig=rig)


def compare(sides: Sequence[Side], rounds: int) -> None:
    """Measure alternating rounds; each checkout begins half of them."""
    for number in range(rounds):
        for each in sides if number % 2 else reversed(sides):
            each.measure()


def ask_ms(rig: Rig, number: int) -> float:
    """Ask one count, after which no other request waits, and return its milliseconds."""
    headers = {"Idempotency-Key": os.urandom(12).hex(), "Content-Type": "application/json"}
    began = time.perf_counter()
    rig.analyst.post("/v1/datasets/million/queries", content=sparse(number), headers=headers).raise_for_status()
    return 1000 * (time.perf_counter() - began)


def public_cost_ms(rig: Rig) -> str:
    """The public cost of one count, and the slots that it takes when it is alone."""
    preview = rig.analyst.post(
        "/v1/datasets/million/queries/preview", content=sparse(0), headers={"Content-Type": "application/json"}
    )
    cost = preview.raise_for_status().json()["public_cost"]
    return f"{cost['time_ms']:.2f} in {cost['delay_ms']:.0f}"


if __name__ == "__main__":
    main()
