"""diffprivlib answers the tasks with its tools `count_nonzero` and `histogram`, and their geometric noise.

    python -m loadtests.peers.ask_diffprivlib people.npz

The noise takes its bits from the operating system, but its law is only nearly geometric: a uniform double goes through
a logarithm in floating point (its `mechanisms/geometric.py`).
"""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import diffprivlib  # type: ignore[import-not-found]
import numpy as np
from numpy.typing import NDArray

from loadtests.peers.tasks import EPSILON, TASKS, Work, loaded, serve

THREADS = 8
TRIES = 100
SPENDS = 150


def works(path: Path) -> dict[str, Work]:
    """Each task as a function."""
    columns = loaded(path)
    found: dict[str, Work] = {}
    for name, task in TASKS.items():
        if task.column is None:
            found[name] = partial(_count, np.ones(task.people, dtype=np.bool_))
        else:
            found[name] = partial(_histogram, columns[task.column][: task.people], task.size)
    return found


def _count(everybody: NDArray[np.bool_]) -> list[float]:
    return [diffprivlib.tools.count_nonzero(everybody, epsilon=EPSILON)]


def _histogram(column: NDArray[np.int32], size: int) -> list[float]:
    counts: list[float] = diffprivlib.tools.histogram(column, epsilon=EPSILON, bins=size, range=(0, size))[0]
    return counts


def facts(vector: Work) -> dict[str, object]:
    """The bias of a histogram of small counts, and how many queries fit a budget of 100 of them."""
    return {
        "mean of 10,000 groups of 10 people": round(float(np.mean(list(vector()))), 1),
        "spends of 0.01 that a budget of 1 affords one thread": _spent(1),
        f"the most that it affords {THREADS} threads, in {TRIES} tries": max(_spent(THREADS) for _ in range(TRIES)),
    }


def _spent(threads: int) -> int:
    accountant = diffprivlib.BudgetAccountant(1.0, 0.0)
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(_affords(accountant), range(SPENDS)))


def _affords(accountant: Any) -> Callable[[int], bool]:  # noqa: ANN401 (diffprivlib has no types)
    def affords(_: int) -> bool:
        try:
            accountant.spend(0.01, 0.0)
        except diffprivlib.utils.BudgetError:
            return False
        return True

    return affords


def main(arguments: list[str]) -> None:
    """Answer tasks until stdin ends."""
    found = works(Path(arguments[0]))
    about = {
        "version": f"diffprivlib {version('diffprivlib')}",
        "noise": f"geometric, epsilon {EPSILON:g}, floating point",
    }
    serve(about, found, partial(facts, found["vector"]))


if __name__ == "__main__":
    main(sys.argv[1:])
