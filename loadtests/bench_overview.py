"""The reads behind the pages, on a million people and ten thousand sparse queries, beside a bare endpoint.

    python -m loadtests.bench_overview

The summary of all budgets is read right after a query, when every account is copied, and again, when Redis holds it.
Then come an individual's page, that is, its budget and its newest receipts, and one page of a curator's receipts by
key. They are read while another process asks sparse queries on four connections without a pause. The bare endpoint of
bench_hot_path answers in between, under the same load. Slots are off: with slots an individual's responses are held for
five of them.
"""

import json
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import Process

import httpx

from loadtests.bench_hot_path import bare, ours, sparse
from loadtests.load import Target, load
from loadtests.rig import Rig, client, count_query, register_people, serving, throw_away_home
from service.embedded import EmbeddedPostgres

QUERIES = 10_000
FILLING_S = 2.0
SUMMARIES = 15
ROUNDS = 150
READERS = 40
BUSY_CONNECTIONS = 4
P95 = 0.95

Call = Callable[[], httpx.Response]


def run() -> dict[str, float]:
    """The milliseconds of each read: medians, and the slowest in twenty while queries are asked."""
    with throw_away_home() as home, serving(home, environment={"SPARING_RELEASE_SLOT_MS": "0"}) as rig:
        register_people(rig)
        asked = fill(rig)
        figures = {"queries": float(asked), **summaries(rig)}
        with bare(str(EmbeddedPostgres(home).attach())) as bare_server, readers(rig) as individuals:
            calls = reads(rig, individuals, bare_server.target)
            figures |= measured(calls, "idle")
            with load_beside(ours(rig).target):
                figures |= measured(calls, "busy")
    for name in ("my_budget", "my_receipts", "receipts_by_key"):
        figures[f"{name}_busy_ratio"] = figures[f"{name}_busy_p95_ms"] / figures["bare_busy_p95_ms"]
    return figures


def fill(rig: Rig) -> int:
    """Ask at least QUERIES sparse queries, and return their number."""
    asked = 0
    while asked < QUERIES:
        asked += len(load(ours(rig).target, connections=64, seconds=FILLING_S))
    return asked


def summaries(rig: Rig) -> dict[str, float]:
    """The medians of the summary when it is made after a query, and when Redis holds it."""
    times: dict[str, list[float]] = {"summary_made": [], "summary_from_redis": []}
    for _ in range(SUMMARIES):
        key = os.urandom(12).hex()
        path, headers = "/v1/datasets/million/queries", {"Idempotency-Key": key}
        rig.analyst.post(path, json=count_query(), headers=headers).raise_for_status()
        for taken in times.values():
            taken.append(timed(lambda: rig.curator.get("/v1/datasets/million/budgets/summary")))
    return {f"{name}_ms": statistics.median(taken) for name, taken in times.items()}


@contextmanager
def readers(rig: Rig) -> Iterator[dict[str, httpx.Client]]:
    """Clients of some individuals, by key."""
    chosen = [f"p{number}" for number in random.Random(2).sample(range(1_000_000), READERS)]
    made = rig.curator.post("/v1/datasets/million/individuals/keys", json=chosen)
    made.raise_for_status()
    clients = {each["individual"]: client(rig.url, each["api_key"]) for each in made.json()}
    yield clients
    for each in clients.values():
        each.close()


def reads(rig: Rig, individuals: Mapping[str, httpx.Client], target: Target) -> dict[str, Call]:
    """The calls that are compared. Each goes round the individuals."""
    turn = iter(range(10**9))
    plain = httpx.Client(trust_env=False, timeout=60)

    def person() -> str:
        return list(individuals)[next(turn) % len(individuals)]

    def by_key() -> httpx.Response:
        return rig.curator.get("/v1/datasets/million/receipts", params={"individual": person(), "limit": 20})

    def bare_call() -> httpx.Response:
        headers = {"Idempotency-Key": os.urandom(12).hex(), "Content-Type": "application/json"}
        return plain.post(target.url, content=sparse(next(turn)), headers=headers)

    return {
        "bare": bare_call,
        "my_budget": lambda: individuals[person()].get("/v1/me/budgets"),
        "my_receipts": lambda: individuals[person()].get("/v1/me/receipts", params={"limit": 20}),
        "receipts_by_key": by_key,
    }


def measured(calls: Mapping[str, Call], state: str) -> dict[str, float]:
    """The median and the slowest in twenty of each call; the calls run in turn."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            times[name].append(timed(call))
    figures: dict[str, float] = {}
    for name, taken in times.items():
        figures[f"{name}_{state}_ms"] = statistics.median(taken)
        figures[f"{name}_{state}_p95_ms"] = sorted(taken)[int(P95 * (len(taken) - 1))]
    return figures


def timed(call: Call) -> float:
    """Milliseconds of a call that succeeds."""
    started = time.perf_counter()
    call().raise_for_status()
    return 1000 * (time.perf_counter() - started)


@contextmanager
def load_beside(target: Target) -> Iterator[None]:
    """Ask queries without a pause from another process during the block."""
    process = Process(target=keep_busy, args=[target.url, dict(target.headers)], daemon=True)
    process.start()
    time.sleep(1)
    try:
        yield
    finally:
        process.terminate()
        process.join()


def keep_busy(url: str, headers: Mapping[str, str]) -> None:
    """Ask until terminated."""
    while True:
        load(Target(url=url, headers=headers, body=sparse), connections=BUSY_CONNECTIONS, seconds=FILLING_S)


def main() -> None:
    """Print the figures."""
    print(json.dumps(run(), indent=2))


if __name__ == "__main__":
    main()
