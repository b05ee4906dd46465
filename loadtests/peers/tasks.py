"""The tasks that every library is given, and the loop in which it answers them; runs in each library's environment.

It imports numpy and the standard library alone, because the environments of other libraries have nothing of ours.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

PEOPLE = 100_000
SIGMA = 20.0
RHO = 1 / (2 * SIGMA**2)
"""The zCDP of one answer, as a person adds 1 to one of its numbers."""
EPSILON = 1 / SIGMA
"""A pure guarantee that implies RHO-zCDP (Bun and Steinke 2016, Proposition 1.4), by Laplace noise of scale SIGMA."""

Columns = Mapping[str, NDArray[np.int32]]
Work = Callable[[], Iterable[float]]
"""The function that asks one query, from asking to the noisy numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A count of `people` in each of `size` groups of a column; without a column, a count of all people."""

    title: str
    column: str | None
    size: int
    people: int


TASKS = {
    "count": Task(title="COUNT", column=None, size=1, people=PEOPLE),
    "histogram": Task(title="histogram, 100", column="town", size=100, people=PEOPLE),
    "vector": Task(title="vector, 10,000", column="item", size=10_000, people=PEOPLE),
    "half": Task(title="histogram, half the people", column="town", size=100, people=PEOPLE // 2),
}


def made_up() -> dict[str, NDArray[np.int32]]:
    """Columns (PEOPLE,) in which every town and every item has equally many people, shuffled alike in every run."""
    random = np.random.default_rng(2021)
    sizes = {task.column: task.size for task in TASKS.values() if task.column is not None}
    return {name: random.permutation(np.arange(PEOPLE, dtype=np.int32) % size) for name, size in sizes.items()}


def loaded(path: Path) -> dict[str, NDArray[np.int32]]:
    """The columns from the file that the benchmark has written."""
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def check(task: Task, values: list[float]) -> None:
    """Raise ValueError unless `values` can be a noisy answer to the task, by length, median error and noise.

    The median of Gaussian or Laplace errors deviates by at most 1.26 sigma / sqrt(size), and 13 times that is allowed.
    A histogram that is truncated at zero passes, because that keeps the median.
    """
    if len(values) != task.size:
        raise ValueError(f"{task.title}: {len(values)} numbers instead of {task.size}")
    truth = task.people / task.size
    errors = [value - truth for value in values]
    if abs(median(errors)) > 16 * SIGMA / task.size**0.5:
        raise ValueError(f"{task.title}: wrong by {median(errors):g} in the median")
    if task.size > 1 and sum(error == 0 for error in errors) > task.size / 2:
        raise ValueError(f"{task.title}: most numbers have no noise")


def serve(about: Mapping[str, str], works: Mapping[str, Work], facts: Callable[[], Mapping[str, object]]) -> None:
    """Write `about`. Then answer each line of stdin with one of JSON: a task's milliseconds and numbers, or the facts.

    Every task is done once before. Anything that a library prints goes to stderr.
    """
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)
        for work in works.values():
            list(work())
        print(json.dumps(about), file=out, flush=True)
        for line in sys.stdin:
            name = line.strip()
            print(json.dumps(facts() if name == "facts" else timed(works[name])), file=out, flush=True)


def timed(work: Work) -> dict[str, object]:
    """Milliseconds of one query, and its numbers."""
    began = time.perf_counter()
    values = work()
    taken_ms = 1000 * (time.perf_counter() - began)
    return {"ms": taken_ms, "values": [float(value) for value in values]}
