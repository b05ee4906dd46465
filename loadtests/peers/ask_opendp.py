"""OpenDP answers the tasks: its framework API on numpy columns, with the discrete Gaussian.

    python -m loadtests.peers.ask_opendp people.npz [--filter]

Measurements are built beforehand, and the data are numpy arrays: a Python list takes forty times as long for a COUNT,
and the Polars API plans for seconds. With `--filter` the queries go through OpenDP's privacy filter, which holds the
data and adds up what the queries cost.
"""

import pickle
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import opendp.prelude as dp
from numpy.typing import NDArray

from loadtests.peers.tasks import SIGMA, TASKS, Task, Work, loaded, serve

THREADS = 4
QUERIES = 200
_SPACE = (dp.vector_domain(dp.atom_domain(T="i32")), dp.symmetric_distance())


def measurement(task: Task) -> Any:  # noqa: ANN401 (OpenDP's own types are partly untyped)
    """The task as a measurement on a vector of i32."""
    if task.column is None:
        return _SPACE >> dp.t.then_count(TO="i32") >> dp.m.then_gaussian(SIGMA)
    categories = list(range(task.size))
    counts = dp.t.then_count_by_categories(categories, null_category=False, MO="L2Distance<f64>", TOA="i32")
    return _SPACE >> counts >> dp.m.then_gaussian(SIGMA)


def filtered(column: NDArray[np.int32]) -> Any:  # noqa: ANN401
    """A queryable on one column that refuses once its queries have cost 10 rho."""
    odometer = dp.c.make_fully_adaptive_composition(*_SPACE, dp.zero_concentrated_divergence())
    return dp.c.make_privacy_filter(odometer, d_in=1, d_out=10.0)(column)


def works(path: Path, *, with_filter: bool) -> dict[str, Work]:
    """Each task as a function."""
    columns = loaded(path)
    found: dict[str, Work] = {}
    for name, task in TASKS.items():
        column, measured = columns[task.column or "town"][: task.people], measurement(task)
        queryable = filtered(column) if with_filter else None
        call = partial(queryable, measured) if queryable else partial(measured, column)
        found[name] = partial(_numbers, call)
    return found


def _numbers(call: "partial[Any]") -> list[float]:
    answer = call()
    return answer if isinstance(answer, list) else [answer]


def facts(path: Path) -> dict[str, object]:
    """How a privacy filter behaves with threads, whether its state can be stored, and what a list costs."""
    towns, count = loaded(path)["town"], measurement(TASKS["count"])
    queryable, people = filtered(towns), towns.tolist()
    with ThreadPoolExecutor(THREADS) as pool:
        refused = sum(pool.map(lambda _: _fails(partial(queryable, count)), range(QUERIES)))
    return {
        f"queries of {QUERIES} that a filter refused because {THREADS} threads asked": refused,
        "median ms of a COUNT whose data are a Python list": round(
            median(_ms(partial(count, people)) for _ in range(9)), 1
        ),
        "a filter and what it has spent can be pickled": not _fails(partial(pickle.dumps, queryable)),
    }


def _fails(call: "partial[Any]") -> bool:
    try:
        call()
    except Exception:  # noqa: BLE001 (whatever it raises, it did not answer)
        return True
    return False


def _ms(call: "partial[Any]") -> float:
    began = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - began)


def main(arguments: list[str]) -> None:
    """Answer tasks until stdin ends."""
    dp.enable_features("contrib")
    path, with_filter = Path(arguments[0]), "--filter" in arguments
    about = {
        "version": f"OpenDP {version('opendp')}" + ", privacy filter" * with_filter,
        "noise": f"discrete Gaussian, sigma {SIGMA:g}, exact",
    }
    serve(about, works(path, with_filter=with_filter), partial(facts, path))


if __name__ == "__main__":
    main(sys.argv[1:])
