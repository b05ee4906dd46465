"""A timing attack: what durations tell an analyst about one person, for every pair of neighbours and every probe.

    python -m loadtests.attack_timing [--people 300000] [--tries 500] [--workers 2] [--probes batches] [--quick]

Each pair is two datasets that differ in one person, made in random order in one fresh server (`loadtests.neighbours`).
The tries of both are shuffled, and each begins at a random phase of the release slot. A try yields instants and orders
as the attacker sees them (`loadtests.probes`, `loadtests.polling`). How well the best feature tells the worlds apart is
judged on tries that did not choose it (`loadtests.separating`), with intervals that hold for all pairs together at 99
%. With several workers, one dataset is polled while an individual acts or does not.

The probes `reads` are a second clock (`loadtests.second_clock`): reads of every role while a batch is worked on. The
work of the batch differs between the worlds, and stays within its slots.

A late answer leaves after twice its delay, or four times, or eight: the number of its doublings is a feature as well.

--quick takes some twenty minutes at 5,000 people. At 300,000 people the batches alone take an hour and a half.

The exit status is 1 if the lower end of an interval exceeds 0.55, or if the server itself counts late answers more
often in one world than in the other. It is 2 if a control fails. Two equal datasets must not be told apart. A delay of
two milliseconds planted in one of them must be found, and so must work planted in a server (`loadtests.leaky_service`):
by its answers and, where reads begin at once, by reads.
"""

import json
import os
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain

import httpx
import numpy as np
from scipy.stats import fisher_exact

from loadtests.attack_options import PAIRS, POLL, Options, chosen, parsed, probes_of, tries_of
from loadtests.neighbours import CONTROLS, EQUAL, Neighbours, World, auditor_key, individual_key, make
from loadtests.polling import ACTS, Acting, polled
from loadtests.probes import Features, Side, pause_before
from loadtests.rig import Rig, serving, throw_away_home
from loadtests.separating import Separation, separation

LIMIT = 0.55
FAMILY_ERROR = 0.01
LAST_MS = "answer last ms"
_OVERRUNS = re.compile(r"^sparing_slot_overruns_total (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The result of attacking one pair with one probe."""

    neighbours: str
    probe: str
    tries: int
    found: Separation
    medians: tuple[float, float]
    late: tuple[int, int]  # tries of each world in which the server counted a late answer
    late_chance: float  # of counts that differ so much where nothing differs (Fisher's exact test)

    @property
    def is_open(self) -> bool:
        """Tell whether the worlds can be told apart better than is allowed."""
        return self.found.low > LIMIT

    def line(self) -> str:
        """One row of the table."""
        auc, guess = self.found.auc, self.found.guess
        figures = (
            f"{auc.value:.3f} [{auc.low:.3f}, {auc.high:.3f}]  {guess.value:.3f} [{guess.low:.3f}, {guess.high:.3f}]"
        )
        medians = f"{self.medians[0]:9.2f} {self.medians[1]:9.2f}"
        late = f"{self.late[0]:4} {self.late[1]:4}"
        verdict = "OPEN" if self.is_open else ""
        found = f"{figures}  {medians}  {late}  {self.found.feature} {verdict}"
        return f"{self.neighbours:22}{self.probe:22}{self.tries:6}  {found}"


HEADER = (
    f"{'neighbours':22}{'probe':22}{'tries':>6}  {'AUC':21}  {'right guesses':21}  {'medians':>19}  {'late':>9}"
    "  feature"
)


def main() -> int:
    """Attack, print a row for each pair as it completes, and keep all figures."""
    options = parsed(sys.argv[1:])
    pairs = [pair for pair in chosen(PAIRS, options.neighbours) if probes_of(pair, options)]
    acts = chosen(ACTS, options.neighbours) if POLL in options.probes else []
    count = sum(len(probes_of(pair, options)) for pair in pairs) + len(acts)
    print(f"{options.people:,} people, {options.workers} worker(s), slot {options.slot_ms} ms, {count} pairs\n{HEADER}")
    error = FAMILY_ERROR / max(count, 1)
    cells: list[Cell] = []
    for cell in chain(*(attacked(pair, options, error) for pair in pairs), watched(acts, options, error)):
        print(cell.line(), flush=True)
        cells.append(cell)
        keep(cells, options)
    return verdict(cells)


def verdict(cells: Sequence[Cell]) -> int:
    """The exit status: 2 if a control fails, 1 if any pair is open."""
    if any(cell.is_open != (cell.neighbours != EQUAL.name) for cell in cells if is_control(cell)):
        print("a control failed: these figures say nothing")
        return 2
    opened = [cell for cell in cells if (cell.is_open or is_late(cell, cells)) and not is_control(cell)]
    print(f"{len(opened)} of {sum(not is_control(cell) for cell in cells)} pairs can be told apart")
    return 1 if opened else 0


def is_late(cell: Cell, cells: Sequence[Cell]) -> bool:
    """Tell whether answers were late more often in one world than in the other, over all pairs together at 99 %."""
    return cell.late_chance < FAMILY_ERROR / len(cells)


def is_control(cell: Cell) -> bool:
    """Tell whether the cell tests the instrument and not the service."""
    return any(cell.neighbours == control.name for control in CONTROLS)


# Attacks


def attacked(pair: Neighbours, options: Options, error: float) -> Iterator[Cell]:
    """Attack a pair, in datasets of its own, with every probe."""
    source = random.Random(f"{options.seed} {pair.name}")
    with served(options, pair) as (rig, late):
        sides = both(rig, pair, options, source)
        for probe in probes_of(pair, options):
            for side in source.sample(sides, 2):
                probe.prepare(side)
                for _ in range(3):
                    probe.attempt(side)
            tries = tries_of(probe, options)
            attempts = [partial(probe.attempt, side) for side in sides]
            yield judged(pair.name, probe.name, Tries(attempts, tries, late), options, error)
        for side in sides:
            side.close()


def watched(acts: Iterable[Acting], options: Options, error: float) -> Iterator[Cell]:
    """Poll one dataset while an individual acts or does not, for each kind of act."""
    source = random.Random(f"{options.seed} acts")
    for acting in acts:
        with served(options) as (rig, late):
            key = make(rig, "watched", World(), options.people)
            side = Side(url=rig.url, dataset="watched", key=key, slot_ms=options.slot_ms, source=source)
            attempt = polled(acting.deeds(rig, "watched", options.heavy_tries + 1))
            attempts = [partial(attempt, side, is_acting) for is_acting in (False, True)]
            for each in attempts:
                each()
            yield judged(acting.name, POLL, Tries(attempts, options.heavy_tries, late), options, error)
            side.close()


@dataclass(frozen=True, slots=True)
class Tries:
    """The probe in either world, the number of tries, and the server's count of late answers."""

    attempts: Sequence[Callable[[], Features]]
    count: int
    late: Callable[[], int]


def judged(name: str, probe: str, tries: Tries, options: Options, error: float) -> Cell:
    """Make the tries of both worlds in random order at random phases, and judge them."""
    source = random.Random(f"{options.seed} {name} {probe}")
    order = [0, 1] * tries.count
    source.shuffle(order)
    rows: list[Features] = []
    were_late: list[bool] = []
    before = tries.late()
    for world in order:
        pause_before(source, options.slot_ms)
        rows.append(tries.attempts[world]())
        now = tries.late()
        were_late.append(now > before)
        before = now
    worlds = np.array(order, dtype=np.bool_)
    features = {feature: np.array([row[feature] for row in rows]) for feature in rows[0]}
    if LAST_MS in features:
        features["doublings"] = np.rint(np.log2(features[LAST_MS] / features[LAST_MS].min()))
    found = separation(worlds, features, error=error, source=np.random.default_rng(options.seed))
    best = features[found.feature]
    late = tuple(int(np.array(were_late)[worlds == world].sum()) for world in (False, True))
    return Cell(
        neighbours=name,
        probe=probe,
        tries=tries.count,
        found=found,
        medians=(float(np.median(best[~worlds])), float(np.median(best[worlds]))),
        late=(late[0], late[1]),
        late_chance=float(fisher_exact(np.array([late, [tries.count - each for each in late]])).pvalue),
    )


def both(rig: Rig, pair: Neighbours, options: Options, source: random.Random) -> list[Side]:
    """Make both worlds of a pair. Neither their names nor the order in which they are made depends on the world."""
    names = source.sample(("alpha", "gamma"), 2)
    keys = {}
    for world in source.sample((0, 1), 2):
        keys[world] = make(rig, names[world], pair.worlds[world], options.people)
    planted = (0.0, pair.planted_ms)
    return [
        Side(
            url=rig.url,
            dataset=names[world],
            key=keys[world],
            slot_ms=options.slot_ms,
            planted_ms=planted[world],
            keys={
                "stranger": "none",
                "analyst": keys[world],
                "refused": keys[world],
                "individual": individual_key(rig, names[world], "p1"),
                "auditor": auditor_key(rig, names[world]),
            },
            source=source,
        )
        for world in (0, 1)
    ]


@contextmanager
def served(options: Options, pair: Neighbours = EQUAL) -> Iterator[tuple[Rig, Callable[[], int]]]:
    """Serve a fresh server for a pair, with the settings asked for: (rig, reader of its count of late answers)."""
    environment = {
        "LEAK": pair.leak,
        "SPARING_RELEASE_SLOT_MS": str(options.slot_ms),
        "SPARING_WORKERS": str(options.workers),
        "SPARING_DRAIN_NOTICE_MS": "0",
        "SPARING_METRICS_PORT": "0",
    }
    with throw_away_home() as home, ExitStack() as served_until:
        if options.speed is not None:
            (home / "speed.json").write_text(options.speed.read_text())
        rig = served_until.enter_context(serving(home, environment=environment, service=pair.service))
        said = [rig.process.stdout.readline() if rig.process.stdout else "" for _ in range(options.workers)]
        urls = [line.split()[1] for line in said]

        def late() -> int:
            texts = [httpx.get(url, trust_env=False).text for url in urls]
            return int(sum(float(count) for text in texts for count in _OVERRUNS.findall(text)))

        yield rig, late


# Figures


def keep(cells: Sequence[Cell], options: Options) -> None:
    """Write the figures to the file asked for."""
    if options.json is None:
        return
    settings = {**asdict(replace(options, json=None, speed=None)), "processors": os.cpu_count()}
    rows = [{**asdict(cell), "low": cell.found.low, "is_open": cell.is_open} for cell in cells]
    options.json.write_text(json.dumps({"settings": settings, "pairs": rows}, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
