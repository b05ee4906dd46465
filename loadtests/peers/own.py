"""Sparing answers the same tasks: over HTTP with its durable ledger, and as an engine in this process."""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loadtests.peers.child import Answered
from loadtests.peers.tasks import PEOPLE, SIGMA, TASKS, Task
from loadtests.rig import Rig, arrow_bytes, serving, throw_away_home
from service.core.charge import UNITS_PER_RHO
from service.core.noise import rounded_gaussian
from service.core.release import answer
from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.query.columns import coding_of
from service.query.parse import kept_query
from service.query.plan import KeptPlans, compile_query
from service.query.schema import Schema
from service.store.entropy import system_entropy
from tests.digests import with_digests

Ask = Callable[[str], Answered]
Columns = Mapping[str, NDArray[np.int32]]

BUDGET_RHO = 100
"""A budget that suffices for every round, so that nobody is left out."""
ROUTE = "/v1/datasets/{}/queries"
_TABLES = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "town": {"type": "category", "size": TASKS["histogram"].size},
            "item": {"type": "category", "size": TASKS["vector"].size},
        },
    }
}


def query_of(task: Task) -> bytes:
    """The task in the query language. Nothing is reused: every answer has new noise and is charged."""
    body: dict[str, Any] = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": SIGMA}, "reuse": False}
    if task.column is not None:
        body["select"] = [{"histogram": {"column": task.column}}]
    return json.dumps(body).encode()


def engine(columns: Columns) -> Ask:
    """Parser, plan, charges and exact noise in this process, without HTTP or a database: Sparing as a library."""
    schema = Schema.model_validate(_TABLES)
    memories = {people: _memory(schema, columns, people) for people in {task.people for task in TASKS.values()}}
    budget_units = BUDGET_RHO * UNITS_PER_RHO
    plans = KeptPlans[Schema](partial(compile_query, capacity=PEOPLE, budget_units=budget_units))

    def ask(name: str) -> Answered:
        task = TASKS[name]
        memory, began = memories[task.people], time.perf_counter()
        plan = plans.of(kept_query(query_of(task), "analyst"), schema)
        release = answer(
            contributions(plan, memory),
            memory.accounts,
            plan.terms,
            noise=rounded_gaussian(plan.dimension, plan.scale.law.size_steps, system_entropy),
        )
        return Answered(ms=1000 * (time.perf_counter() - began), values=release.values.tolist())

    return ask


def _memory(schema: Schema, columns: Columns, people: int) -> DatasetMemory:
    memory = DatasetMemory(schema)
    coded = schema.tables["people"].columns
    codes = {name: column[:people].astype(coding_of(coded[name]).dtype) for name, column in columns.items()}
    memory.add_individuals(
        np.arange(people), with_digests(codes, range(people)), np.full(people, BUDGET_RHO * UNITS_PER_RHO)
    )
    return memory


@contextmanager
def served(columns: Columns, *, slots: bool) -> Iterator[Rig]:
    """Serve the people with embedded servers, and half of them as a second dataset of the same capacity."""
    environment = {} if slots else {"SPARING_RELEASE_SLOT_MS": "0"}
    with throw_away_home() as home, serving(home, environment=environment) as rig:
        for people in {task.people for task in TASKS.values()}:
            _register(rig, columns, people)
        yield rig


def _register(rig: Rig, columns: Columns, people: int) -> None:
    dataset = {"name": name_of(people), "guarantee": {"rho": BUDGET_RHO}, "capacity": PEOPLE, "tables": _TABLES}
    rig.curator.post("/v1/datasets", json=dataset).raise_for_status()
    keys = pa.array([f"p{number}" for number in range(people)])
    table = pa.table({"person_id": keys, **{name: pa.array(column[:people]) for name, column in columns.items()}})
    rig.curator.post(
        f"/v1/datasets/{name_of(people)}/tables/people/rows",
        content=arrow_bytes(table),
        headers={"Content-Type": "application/vnd.apache.arrow.stream"},
    ).raise_for_status()


def name_of(people: int) -> str:
    """The name of the dataset with `people` people."""
    return f"of{people}"


def over_http(url: str, headers: Mapping[str, str] = {}) -> Ask:
    """A function that asks a query as an analyst does, with the standard library's HTTP client, and reads the JSON."""
    return partial(_asked, url, headers)


def _asked(url: str, headers: Mapping[str, str], name: str) -> Answered:
    """Ask one query. The connection is open before, as an analyst's would be."""
    task, parts = TASKS[name], urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.connect()
    sent = {"Content-Type": "application/json", "Idempotency-Key": os.urandom(12).hex(), **headers}
    began = time.perf_counter()
    connection.request("POST", parts.path.format(name_of(task.people)), body=query_of(task), headers=sent)
    response = connection.getresponse()
    body = response.read()
    values = json.loads(body)["values"] if response.status == 200 else []
    taken_ms = 1000 * (time.perf_counter() - began)
    connection.close()
    if response.status != 200:
        raise RuntimeError(f"{name}: {response.status} {body[:200].decode()}")
    return Answered(ms=taken_ms, values=values)
