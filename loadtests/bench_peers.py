"""A COUNT, a histogram and a vector by Sparing, OpenDP, SmartNoise-SQL and diffprivlib, on the same 100,000 people.

    make bench-peers                     installs each library into an environment of its own first
    python -m loadtests.bench_peers      with the libraries that are installed; the others are SKIPPED

All answer in turn, in a new order each round. Compared are the medians of the time from asking to the noisy numbers.
Each library is a process that holds the data in memory and times itself. Sparing is measured as a whole (HTTP, charges
of each individual, durable commit), without time slots and with the default ones, and as an engine in this process. An
endpoint that commits one INSERT and answers nothing is the floor of any service that records a query. docs/peers.md
says what the figures compare and what they do not.
"""

import os
import platform
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

import numpy as np

from loadtests.bench_hot_path import bare
from loadtests.peers.child import HOMES, Absent, Child, command_of, started
from loadtests.peers.own import ROUTE, Ask, engine, over_http, served
from loadtests.peers.tasks import TASKS, check, made_up
from service.embedded import EmbeddedPostgres

ROUNDS = 15
PAUSE_S_MAX = 0.02
ENGINE, SLOTS_OFF, DEPLOYED = "Sparing, engine alone", "Sparing, time slots off", "Sparing, as deployed"
FLOOR = "floor: an endpoint that commits one INSERT"
LIBRARIES = {
    "OpenDP": ("opendp", "ask_opendp", ()),
    "OpenDP, privacy filter": ("opendp", "ask_opendp", ("--filter",)),
    "SmartNoise-SQL": ("smartnoise", "ask_smartnoise", ()),
    "diffprivlib": ("diffprivlib", "ask_diffprivlib", ()),
}
"""For each library, its folder under build/peers, its module and its options."""
SECURE = ("OpenDP", "OpenDP, privacy filter", "SmartNoise-SQL")
"""The libraries whose noise is drawn exactly from its law, by OpenDP. Sparing is compared with these."""
COMPARED = ("count", "histogram", "vector")
OWN_NOISE = "Gaussian, sigma 20, rounded exactly"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Median ms by contestant and task, each library's version and noise, its facts, and the reasons to skip some."""

    ms: Mapping[str, Mapping[str, float]]
    about: Mapping[str, Mapping[str, str]]
    facts: Mapping[str, Mapping[str, object]]
    skipped: Mapping[str, str]


def run() -> Report:
    """Start everything, let all answer in turn, and ask each library for its facts."""
    columns = made_up()
    HOMES.mkdir(parents=True, exist_ok=True)
    np.savez(HOMES / "people.npz", town=columns["town"], item=columns["item"])
    with ExitStack() as stack:
        deployed, off = (stack.enter_context(served(columns, slots=slots)) for slots in (True, False))
        floor = stack.enter_context(bare(str(EmbeddedPostgres(off.home).attach())))
        key = {"Authorization": str(off.analyst.headers["authorization"])}
        other_key = {"Authorization": str(deployed.analyst.headers["authorization"])}
        asks: dict[str, Ask] = {
            ENGINE: engine(columns),
            SLOTS_OFF: over_http(off.url + ROUTE, key),
            DEPLOYED: over_http(deployed.url + ROUTE, other_key),
            FLOOR: over_http(floor.target.url),
        }
        children, skipped = _libraries(stack)
        asks |= {name: child.ask for name, child in children.items()}
        return Report(
            ms=_medians(asks),
            about={name: child.about for name, child in children.items()},
            facts={name: child.tell("facts") for name, child in children.items() if not LIBRARIES[name][2]},
            skipped=skipped,
        )


def _libraries(stack: ExitStack) -> tuple[dict[str, Child], dict[str, str]]:
    """The libraries that start, and why the others do not."""
    children: dict[str, Child] = {}
    skipped: dict[str, str] = {}
    for name, (home, module, options) in LIBRARIES.items():
        try:
            command = command_of(module, HOMES / home, str(HOMES / "people.npz"), *options)
            children[name] = stack.enter_context(started(command))
        except Absent as reason:
            skipped[name] = str(reason)
            print(f"SKIPPED {name}: {reason}", flush=True)
    return children, skipped


def _medians(asks: Mapping[str, Ask]) -> dict[str, dict[str, float]]:
    """The median milliseconds. In its turn each function is called twice: to warm up, then timed at a random instant.

    A query straight after an answer would always just have missed a time slot.
    """
    times: dict[str, dict[str, list[float]]] = {name: {task: [] for task in TASKS} for name in asks}
    order, shuffler = list(asks), random.Random(2021)
    for _ in range(ROUNDS):
        shuffler.shuffle(order)
        for task in TASKS:
            for name in order:
                asks[name](task)
                time.sleep(shuffler.uniform(0, PAUSE_S_MAX))
                answered = asks[name](task)
                if name != FLOOR:  # it has no answer
                    check(TASKS[task], answered.values)
                times[name][task].append(answered.ms)
    return {name: {task: median(taken) for task, taken in each.items()} for name, each in times.items()}


def table(report: Report) -> Iterator[str]:
    """The figures as lines of Markdown: milliseconds, a row for each contestant, with its version and noise."""
    titles = [task.title for task in TASKS.values()]
    yield f"| | {' | '.join(titles)} | noise |"
    yield f"|---|{'---:|' * len(titles)}---|"
    for name, figures in report.ms.items():
        about = report.about.get(name, {"version": name, "noise": "none" if name == FLOOR else OWN_NOISE})
        yield f"| {about['version']} | {' | '.join(shown(figures[task]) for task in TASKS)} | {about['noise']} |"
    for name, reason in report.skipped.items():
        yield f"| {name} | {'SKIPPED | ' * len(titles)}{reason} |"


def shown(ms: float) -> str:
    """Two significant digits below 10 ms, and whole milliseconds above."""
    return f"{ms:.2f}" if ms < 1 else f"{ms:.1f}" if ms < 10 else f"{ms:,.0f}"


def verdicts(report: Report) -> Iterator[str]:
    """How many times faster or slower each way to run Sparing is, by task, than each library with secure noise."""
    for own in (ENGINE, SLOTS_OFF, DEPLOYED):
        for name in (each for each in SECURE if each in report.ms):
            ratios = {task: report.ms[name][task] / report.ms[own][task] for task in COMPARED}
            said = (
                f"{task} {ratio:.1f} times faster" if ratio >= 1 else f"{task} {1 / ratio:.1f} times SLOWER"
                for task, ratio in ratios.items()
            )
            yield f"{own} against {name}: {', '.join(said)}"


def main() -> None:
    """Print the table, the comparison and the facts."""
    report = run()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, medians of {ROUNDS} rounds, milliseconds\n")
    sections: tuple[Callable[[Report], Iterator[str]], ...] = (table, verdicts, _facts)
    for section in sections:
        print(*section(report), sep="\n", end="\n\n")
    for name, reason in report.skipped.items():
        print(f"SKIPPED {name}: {reason}")


def _facts(report: Report) -> Iterator[str]:
    for name, found in report.facts.items():
        yield f"{report.about[name]['version']}:"
        yield from (f"  {fact}: {value}" for fact, value in found.items())


if __name__ == "__main__":
    main()
