"""The rules for individuals that cannot pay, beside each other: one query's work in the writer, or its answer.

    python -m loadtests.bench_rules [people] [--http]

In process, the dataset has an age for each of a million people, of whom a tenth can pay for nothing more. Reported are
medians of the processor time of interleaved calls (`*_ms`), and their ratios to the skip rule (`*_ratio`).

With `--http` a service with slots off answers, with its durable commits. It is asked one query after another in which
all are touched, and rounds of sparse counts over one connection and over sixteen. A tenth have spent what a clip query
could charge. Reported are medians of interleaved requests and rounds, and for sparse counts also the server's processor
time (`*_processor_ms`).
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from loadtests.bench_hot_path import DENSE, Round, Server, measured
from loadtests.bench_hot_path import sparse as sparse_body
from loadtests.in_process import drawn, medians_ms
from loadtests.load import Target
from loadtests.rig import Rig, count_query, register_people, serving, throw_away_home
from loadtests.worst_data import made
from loadtests.writer_work import work
from service.engine.memory import DatasetMemory
from service.query.language import Query
from service.query.plan import compile_query

K = TypeVar("K")
T = TypeVar("T")

PEOPLE: Final = 10**6
ROUNDS: Final = 41
OUT_EVERY: Final = 10
RULES: Final = ("skip", "drop", "clip")
QUERIES: Final[Mapping[str, dict[str, Any]]] = {
    "count": {"select": [{"count": {}}]},
    "sum": {"select": [{"sum": {"column": "age"}}]},
    "real": {"select": [{"sum": {"column": "real"}}]},
    "sparse": {"select": [{"count": {}}], "where": {"eq": [{"col": "at"}, 0]}},
}
DENSE_ROUNDS: Final = 21
SPARSE_ROUNDS: Final = 11
CONNECTIONS: Final = (1, 16)
ASKED_OF_ALL: Final[Mapping[str, dict[str, Any]]] = {"count": count_query(), "sum": {**count_query(), **DENSE}}
EXHAUSTING: Final = {
    **count_query(where={"in": [{"col": "country"}, list(range(50 // OUT_EVERY))]}),
    "noise": {"sigma": 0.5},
    "rule": "clip",
}
"""A query that costs more than the whole budget. Its rule leaves next to nothing of the budget."""


def run(people: int = PEOPLE) -> dict[str, float]:
    """Measure each query under each rule."""
    memory = made(people)
    out, whole = slice(None, people, OUT_EVERY), memory.accounts.limits.copy()
    figures: dict[str, float] = {}
    for name, query in QUERIES.items():
        calls = [answered(memory, query, rule) for rule in RULES]
        for each in calls:
            each()  # what a first query makes
        memory.accounts.set_spent(slice(None), 0)
        memory.accounts.set_spent(out, whole[out])
        skip_ms, drop_ms, clip_ms = medians_ms(*calls, rounds=ROUNDS)
        figures |= {f"{name}_skip_ms": skip_ms, f"{name}_drop_ms": drop_ms, f"{name}_clip_ms": clip_ms}
        figures |= {f"{name}_drop_ratio": drop_ms / skip_ms, f"{name}_clip_ratio": clip_ms / skip_ms}
    return figures


def answered(memory: DatasetMemory, query: Mapping[str, Any], rule: str) -> Callable[[], None]:
    """A function that does the work of a query under a rule, and stores nothing.

    The clip rule belongs to the query, the other rules to the dataset.
    """
    asked = Query.model_validate(
        {"version": 1, "noise": {"sigma": 200.0}, "reuse": False, "rule": "clip" if rule == "clip" else "skip", **query}
    )
    plan = compile_query(asked, memory.schema, capacity=memory.slots_used, budget_units=2**40)
    return lambda: work(plan, memory, drawn, "drop" if rule == "drop" else "skip")


def over_http(people: int = PEOPLE) -> dict[str, float]:
    """Measure the answers of a service under each rule."""
    figures: dict[str, float] = {}
    with throw_away_home() as home, serving(home, environment={"SPARING_RELEASE_SLOT_MS": "0"}) as rig:
        for rule in ("skip", "drop"):
            register_people(rig, people, name=rule, rule=rule)
            post(rig, rule, EXHAUSTING)
        for name, query in ASKED_OF_ALL.items():
            calls = {rule: partial(post, rig, dataset_of(rule), query | query_rule(rule)) for rule in RULES}
            taken_ms = in_turn(calls, DENSE_ROUNDS)
            figures |= compared(f"http_{name}", {rule: statistics.median(each) for rule, each in taken_ms.items()})
        for connections in CONNECTIONS:
            rounds = in_turn({rule: partial(sparse_round, rig, rule, connections) for rule in RULES}, SPARSE_ROUNDS)
            figures |= compared(f"http_sparse_at_{connections}", medians_of(rounds, lambda each: 1000 / each.per_s))
            processor_ms = medians_of(rounds, lambda each: each.processor_ms)
            figures |= compared(f"http_sparse_at_{connections}_processor", processor_ms)
    return figures


def compared(name: str, ms: Mapping[str, float]) -> dict[str, float]:
    """The figures of each rule, and the ratios to the skip rule."""
    ratios = {f"{name}_{rule}_ratio": ms[rule] / ms["skip"] for rule in ("drop", "clip")}
    return {f"{name}_{rule}_ms": each for rule, each in ms.items()} | ratios


def medians_of(rounds: Mapping[str, list[Round]], figure: Callable[[Round], float]) -> dict[str, float]:
    """The median of a figure under each rule."""
    return {rule: statistics.median(map(figure, each)) for rule, each in rounds.items()}


def in_turn(calls: Mapping[K, Callable[[], T]], rounds: int) -> dict[K, list[T]]:
    """The results of each call, round by round.

    Every round begins with another call, and the first round does not count.
    """
    returned: dict[K, list[T]] = {name: [] for name in calls}
    names = list(calls)
    for number in range(rounds + 1):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            found = calls[name]()
            if number > 0:
                returned[name].append(found)
    return returned


def dataset_of(rule: str) -> str:
    """The name of the dataset to ask: a clip query is asked of the dataset with the skip rule."""
    return "drop" if rule == "drop" else "skip"


def query_rule(rule: str) -> dict[str, str]:
    """The part of a query that states its rule."""
    return {"rule": "clip" if rule == "clip" else "skip"}


def post(rig: Rig, dataset: str, query: Mapping[str, Any]) -> float:
    """Ask one query, and return its milliseconds."""
    headers = {"Idempotency-Key": os.urandom(12).hex()}
    began = time.perf_counter()
    rig.analyst.post(f"/v1/datasets/{dataset}/queries", json=query, headers=headers).raise_for_status()
    return (time.perf_counter() - began) * 1000


def sparse_round(rig: Rig, rule: str, connections: int) -> Round:
    """Ask sparse counts for two seconds."""
    headers = {"Authorization": str(rig.analyst.headers["authorization"])}

    def body(number: int) -> bytes:
        return json.dumps(json.loads(sparse_body(number)) | query_rule(rule)).encode()

    url = f"{rig.url}/v1/datasets/{dataset_of(rule)}/queries"
    return measured(Server(Target(url=url, headers=headers, body=body), rig.process.pid), connections)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="loadtests.bench_rules", description="The rules beside each other.")
    parser.add_argument("people", type=int, nargs="?", default=PEOPLE)
    parser.add_argument("--http", action="store_true", help="ask a service, with its durable commits")
    options = parser.parse_args()
    figures = over_http(options.people) if options.http else run(options.people)
    print(json.dumps({name: round(figure, 4) for name, figure in figures.items()}, indent=2))


if __name__ == "__main__":
    main()
