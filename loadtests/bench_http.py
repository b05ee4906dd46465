"""One count over a million people, end to end: request, charges for each touched individual, commit, answer.

Interleaved in one run: a count that touches few, one that touches all, and the smallest HTTP response of the service.

    python -m loadtests.bench_http
"""

import statistics
import time
from collections.abc import Callable

import httpx

from loadtests.rig import TWO_COLUMNS, Rig, count_query, register_people, serving, throw_away_home

ROUNDS = 30


def run() -> dict[str, float]:
    """The median milliseconds of each request, and the seconds that the upload took."""
    with throw_away_home() as home, serving(home, environment={"SPARING_RELEASE_SLOT_MS": "0"}) as rig:
        started = time.perf_counter()
        register_people(rig)
        upload_s = time.perf_counter() - started
        calls: dict[str, Callable[[int], httpx.Response]] = {
            "livez_ms": lambda _: rig.analyst.get("/livez"),
            "predicate_ms": lambda n: ask(rig, f"p{n}", where=TWO_COLUMNS),
            "everybody_ms": lambda n: ask(rig, f"e{n}"),
        }
        ask(rig, "warm")
        times: dict[str, list[float]] = {name: [] for name in calls}
        for n in range(ROUNDS):
            for name, call in calls.items():
                started = time.perf_counter()
                call(n).raise_for_status()
                times[name].append(1000 * (time.perf_counter() - started))
    return {"upload_s": upload_s, **{name: statistics.median(taken) for name, taken in times.items()}}


def ask(rig: Rig, key: str, **more: object) -> httpx.Response:
    """Ask one count."""
    return rig.analyst.post("/v1/datasets/million/queries", json=count_query(**more), headers={"Idempotency-Key": key})


def main() -> None:
    """Print the medians and the ratios."""
    result = run()
    print(f"upload of 1,000,000 people over HTTP: {result['upload_s']:.1f} s")
    print(f"GET /livez: {result['livez_ms']:.2f} ms")
    for name in ("predicate", "everybody"):
        taken = result[f"{name}_ms"]
        print(f"count, {name}: {taken:.2f} ms, {taken / result['livez_ms']:.1f} x /livez")


if __name__ == "__main__":
    main()
