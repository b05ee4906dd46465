"""The cost of a query that touches a fixed number of people, among ever more of them.

    python -m loadtests.bench_scale [--people 10000 100000 ...] [--plot docs/scale.png]

The queries are counts of about 600 people by a condition on two columns, over HTTP without slots: request, charges,
durable commit, answer. Each size has its own service. The smallest response of that service is measured in turn with
each count.
"""

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa

from loadtests.rig import Rig, arrow_bytes, count_query, serving, throw_away_home

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
VALUES = 128
TOUCHED = 600
ROUNDS = 60


def main() -> None:
    """Print the medians in milliseconds by the number of people, and draw them if a path is given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, nargs="+", default=SIZES)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    figures = {size: of_size(size) for size in arguments.people}
    print(json.dumps(figures, indent=2))
    if arguments.plot is not None:
        draw(figures, arguments.plot)


def of_size(size: int) -> dict[str, float]:
    """The medians of one size."""
    with throw_away_home() as home, serving(home, environment={"SPARING_RELEASE_SLOT_MS": "0"}) as rig:
        register(rig, size)
        asked = [count_query(where=where_of(size, n % VALUES)) for n in range(ROUNDS + 5)]
        count_ms, livez_ms = [], []
        for n, query in enumerate(asked):
            count_ms.append(_ms(rig.analyst, n, query))
            started = time.perf_counter()
            rig.analyst.get("/livez").raise_for_status()
            livez_ms.append(1000 * (time.perf_counter() - started))
        everybody_ms = [_ms(rig.analyst, 1000 + n, count_query()) for n in range(9)]
    return {
        "count_ms": statistics.median(count_ms[5:]),
        "livez_ms": statistics.median(livez_ms[5:]),
        "everybody_ms": statistics.median(everybody_ms[2:]),
    }


def where_of(size: int, value: int) -> dict[str, object]:
    """A condition that holds for about TOUCHED of `size` people."""
    cells = min(max(round(TOUCHED * VALUES**2 / size), 1), VALUES * 8)
    firsts, seconds = max(cells // VALUES, 1), min(cells, VALUES)
    low, start = value % (VALUES - firsts + 1), value % (VALUES - seconds + 1)
    first = {"eq": [{"col": "a"}, low]} if firsts == 1 else {"between": [{"col": "a"}, low, low + firsts - 1]}
    return {"and": [first, {"between": [{"col": "b"}, start, start + seconds - 1]}]}


def register(rig: Rig, size: int) -> None:
    """Register `size` people with two uniform columns."""
    column = {"type": "integer", "lower": 0, "upper": VALUES - 1}
    registration = {
        "name": "million",
        "guarantee": {"epsilon": 1, "delta": 1e-6},
        "capacity": size,
        "tables": {"people": {"kind": "individuals", "key": "person_id", "columns": {"a": column, "b": column}}},
    }
    rig.curator.post("/v1/datasets", json=registration).raise_for_status()
    source = np.random.default_rng(3)
    for start in range(0, size, 1_000_000):
        count = min(1_000_000, size - start)
        table = pa.table(
            {
                "person_id": pa.array([f"p{start + n}" for n in range(count)]),
                "a": pa.array(source.integers(0, VALUES, count)),
                "b": pa.array(source.integers(0, VALUES, count)),
            }
        )
        headers = {"Content-Type": "application/vnd.apache.arrow.stream"}
        path = "/v1/datasets/million/tables/people/rows"
        rig.curator.post(path, content=arrow_bytes(table), headers=headers).raise_for_status()


def draw(figures: dict[int, dict[str, float]], path: Path) -> None:
    """Draw the milliseconds against the number of people, both logarithmic."""
    import matplotlib as mpl  # noqa: PLC0415 - drawn only where it is asked for

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - as above

    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    lines: Sequence[tuple[str, str]] = (
        ("everybody_ms", "a count that touches everybody"),
        ("count_ms", f"a count that touches {TOUCHED}"),
        ("livez_ms", "GET /livez"),
    )
    for name, label in lines:
        axes.loglog(list(figures), [each[name] for each in figures.values()], marker="o", label=label)
    axes.set_xlabel("individuals in the dataset")
    axes.set_ylabel("median time of a request, ms")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def _ms(analyst: httpx.Client, number: int, query: dict[str, object]) -> float:
    started = time.perf_counter()
    headers = {"Idempotency-Key": f"k{number}"}
    analyst.post("/v1/datasets/million/queries", json=query, headers=headers).raise_for_status()
    return 1000 * (time.perf_counter() - started)


if __name__ == "__main__":
    main()
