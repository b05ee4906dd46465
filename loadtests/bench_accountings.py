"""The accountings beside each other, and Laplace noise beside Gaussian noise, on datasets that have aged.

    python -m loadtests.bench_accountings [people] [rows] [--work]

First comes one query's work in the writer, in process. The accounts have spent different amounts, and a tenth can pay
for nothing more. Reported are medians of the processor time of interleaved calls (`work_*_ms`).

Then, without `--work`, a service with slots off has a dataset for each row of VARIANTS. First, `rows` ledger rows are
written, divided among the datasets: sparse counts, all answered and committed. Then come rounds of queries of
everybody, one after another, and of sparse counts over one connection and over sixteen. Reported are medians of
interleaved requests and rounds, and for sparse counts also the server's processor time (`*_processor_ms`).

`*_to_gdp` is the ratio to the same query and noise under gdp. `*_to_gaussian` is that of Laplace noise to Gaussian
noise in the same dataset. A pure dataset has no Gaussian noise, so that it has a ratio to gdp alone, of Laplace noise.
"""

import argparse
import json
import os
import statistics
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np

from loadtests.bench_hot_path import DENSE, Round, Server, measured
from loadtests.bench_hot_path import sparse as sparse_body
from loadtests.bench_rules import QUERIES, in_turn, post
from loadtests.in_process import drawn, medians_ms
from loadtests.load import Target
from loadtests.rig import DATASET, Rig, arrow_bytes, count_query, people, serving, throw_away_home
from loadtests.worst_data import made
from loadtests.writer_work import work
from service.accounting.accountings import Accounting, accounting_of
from service.accounting.monitor import Monitor, monitor_of
from service.core.charge import UNITS_PER_RHO
from service.engine.memory import DatasetMemory
from service.query.language import Query
from service.query.plan import compile_query

PEOPLE: Final = 300_000
ROWS: Final = 300_000
BASE: Final = "gdp"
VARIANTS: Final[Mapping[str, Mapping[str, Any]]] = {
    BASE: {"accounting": "gdp", "guarantee": {"rho": "1000"}},
    "zcdp": {"accounting": {"kind": "zcdp"}, "guarantee": {"rho": "1000"}},
    "rdp": {"accounting": {"kind": "rdp", "order": 16}, "guarantee": {"rho": "1000"}},
    "pure": {"accounting": {"kind": "pure"}, "guarantee": {"epsilon": "1000"}},
    "monitor": {
        "accounting": "gdp",
        "guarantee": {"rho": "1000"},
        "monitor": {"rho": "0.001", "ticks": 1024, "share": 0.5},
    },
}
"""The registration of each dataset. No tick of its monitor is asked."""
GAUSSIAN: Final = "gaussian"
NOISES: Final[Mapping[str, Mapping[str, Any]]] = {
    GAUSSIAN: {"noise": {"sigma": 5000.0}},
    "laplace": {"noise": {"scale": 5000.0}, "mechanism": "laplace"},
}
WORK_ROUNDS: Final = 41
DENSE_ROUNDS: Final = 21
SPARSE_ROUNDS: Final = 7
CONNECTIONS: Final = (1, 16)
OF_EVERYBODY: Final[Mapping[str, Mapping[str, Any]]] = {"count": {}, "sum": {"select": DENSE["select"]}}
OUT_EVERY: Final = 10
AT_ONCE: Final = 256

Case = tuple[str, str]
"""(row of VARIANTS, row of NOISES)."""


def cases() -> list[Case]:
    """All pairs of a dataset and a noise that has a price in it."""
    return [
        (variant, noise)
        for variant, fields in VARIANTS.items()
        for noise in NOISES
        if noise != GAUSSIAN or "gaussian" in stated(fields).mechanisms
    ]


def stated(fields: Mapping[str, Any]) -> Accounting:
    """The accounting of a registration."""
    document = fields["accounting"]
    has_conversion = isinstance(document, dict) and document["kind"] != "pure"
    return accounting_of({"conversion": "optimal", **document} if has_conversion else document)


def stated_monitor(fields: Mapping[str, Any]) -> Monitor | None:
    """The monitor of a registration, if there is one."""
    return monitor_of(fields["monitor"], budget_units=UNITS_PER_RHO) if "monitor" in fields else None


def of_work(count: int) -> dict[str, float]:
    """Measure the writer's work on each query in each case."""
    memory = made(count)
    figures: dict[str, float] = {}
    for name, query in QUERIES.items():
        calls = {case: answered(memory, query, *case) for case in cases()}
        for each in calls.values():
            each()  # what a first query makes
        aged(memory)
        medians = medians_ms(*calls.values(), rounds=WORK_ROUNDS)
        figures |= compared(f"work_{name}", dict(zip(calls, medians, strict=True)))
    return figures


def aged(memory: DatasetMemory) -> None:
    """Let the accounts have spent different amounts; every tenth has nothing left."""
    accounts = memory.accounts
    spent = np.random.default_rng(3).integers(0, 2**40, accounts.size)
    spent[::OUT_EVERY] = accounts.limits[::OUT_EVERY]
    accounts.set_spent(slice(None), spent)


def answered(memory: DatasetMemory, query: Mapping[str, Any], variant: str, noise: str) -> Callable[[], None]:
    """A function that does the work of a query and stores nothing."""
    accounting, monitor = stated(VARIANTS[variant]), stated_monitor(VARIANTS[variant])
    asked = Query.model_validate({"version": 1, "reuse": False, **NOISES[noise], **query})
    plan = compile_query(
        asked, memory.schema, capacity=memory.slots_used, budget_units=UNITS_PER_RHO, pricing=accounting
    )
    return lambda: work(plan, memory, drawn, "skip", accounting, monitor)


def over_http(count: int, rows: int) -> dict[str, float]:
    """Measure the answers of a service."""
    figures: dict[str, float] = {}
    with throw_away_home() as home, serving(home, environment={"SPARING_RELEASE_SLOT_MS": "0"}) as rig:
        table = arrow_bytes(people(count))
        for variant in VARIANTS:
            register(rig, variant, table, count)
            grow_ledger(rig, variant, rows // len(VARIANTS))
        for name, query in OF_EVERYBODY.items():
            dense = {case: partial(post, rig, case[0], asked(case[1], **query)) for case in cases()}
            taken_ms = in_turn(dense, DENSE_ROUNDS)
            figures |= compared(f"http_{name}", {case: statistics.median(each) for case, each in taken_ms.items()})
        for connections in CONNECTIONS:
            sparse = {case: partial(sparse_round, rig, *case, connections) for case in cases()}
            rounds = in_turn(sparse, SPARSE_ROUNDS)
            for suffix, figure in (
                ("", lambda each: 1000 / each.per_s),
                ("_processor", lambda each: each.processor_ms),
            ):
                medians = {case: statistics.median(map(figure, each)) for case, each in rounds.items()}
                figures |= compared(f"http_sparse_at_{connections}{suffix}", medians)
    return figures


def register(rig: Rig, variant: str, table: bytes, count: int) -> None:
    """Register a dataset and upload its people."""
    rig.curator.post(
        "/v1/datasets", json={**DATASET, "name": variant, "capacity": count, **VARIANTS[variant]}
    ).raise_for_status()
    arrow = {"Content-Type": "application/vnd.apache.arrow.stream"}
    rig.curator.post(f"/v1/datasets/{variant}/tables/people/rows", content=table, headers=arrow).raise_for_status()


def grow_ledger(rig: Rig, variant: str, rows: int) -> None:
    """Ask `rows` sparse counts, many in a request, with the noises of the variant by turns."""
    noises = [noise for each, noise in cases() if each == variant]
    bodies = (
        {
            "idempotency_key": os.urandom(12).hex(),
            "query": json.loads(sparse_body(number)) | NOISES[noises[number % len(noises)]],
        }
        for number in range(rows)
    )
    while unit := list(islice(bodies, AT_ONCE)):
        response = rig.analyst.post(f"/v1/datasets/{variant}/queries/batch", json={"queries": unit})
        response.raise_for_status()
        if not all("sequence" in each for each in response.json()["answers"]):
            raise RuntimeError(f"a query was refused: {response.text[:200]}")


def asked(noise: str, **query: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A query of everybody with a noise."""
    return {**count_query(), **NOISES[noise], **query}


def sparse_round(rig: Rig, variant: str, noise: str, connections: int) -> Round:
    """Ask sparse counts for two seconds."""
    headers = {"Authorization": str(rig.analyst.headers["authorization"])}

    def body(number: int) -> bytes:
        return json.dumps(json.loads(sparse_body(number)) | NOISES[noise]).encode()

    url = f"{rig.url}/v1/datasets/{variant}/queries"
    return measured(Server(Target(url=url, headers=headers, body=body), rig.process.pid), connections)


def compared(name: str, ms: Mapping[Case, float]) -> dict[str, float]:
    """The figures of each case, and the ratios."""
    figures = {f"{name}_{variant}_{noise}_ms": each for (variant, noise), each in ms.items()}
    for (variant, noise), each in ms.items():
        if variant != BASE:
            figures[f"{name}_{variant}_{noise}_to_{BASE}"] = each / ms[BASE, noise]
        if noise != GAUSSIAN and (variant, GAUSSIAN) in ms:
            figures[f"{name}_{variant}_{noise}_to_{GAUSSIAN}"] = each / ms[variant, GAUSSIAN]
    return figures


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="loadtests.bench_accountings", description="Accountings beside each other.")
    parser.add_argument("people", type=int, nargs="?", default=PEOPLE)
    parser.add_argument("rows", type=int, nargs="?", default=ROWS, help="ledger rows of all datasets together")
    parser.add_argument("--work", action="store_true", help="the writer's work alone, in process")
    options = parser.parse_args()
    figures = of_work(options.people)
    if not options.work:
        figures |= over_http(options.people, options.rows)
    print(json.dumps({name: round(figure, 4) for name, figure in figures.items()}, indent=2))


if __name__ == "__main__":
    main()
