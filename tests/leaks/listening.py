"""A real server under a load of many connections, whose schedule is listened to, and what it should have done."""

import json
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from loadtests.probes import encoded
from loadtests.wires import PeerConnection
from tests.e2e.homes import made_known
from tests.e2e.processes import environment, new_key
from tests.leaks.crowd import Ask, Crowd, Heard
from tests.leaks.oracle import Oracle, Rules
from tests.waiting import PATIENCE_S

CONNECTIONS = 64
ANALYSTS = 8
BATCH = 5
PEOPLE = 2000
TABLES = {
    "people": {
        "kind": "individuals",
        "key": "id",
        "columns": {"age": {"type": "integer", "lower": 0, "upper": 120}, "area": {"type": "category", "size": 4096}},
    }
}
COUNT = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 1e6}, "reuse": False}

Slots = tuple[int, int | None, int | None]
"""A request, its first slot and its departure."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """A server's schedule events, the responses of its clients, and its own count of late answers."""

    events: list[dict[str, Any]]
    heard: list[Heard]
    gone: int
    overruns: int

    def begun(self) -> list[Slots]:
        """The requests in the order in which the server began them."""
        told = [event for event in self.events if event["event"] == "begun"]
        return [(event["request"], event["begins_ns"], event["leaves_ns"]) for event in told]

    def oracle(self) -> Oracle:
        """An oracle that has heard all arrivals and disconnects."""
        rules, *events = self.events
        oracle = Oracle(Rules(**{name: value for name, value in rules.items() if name != "event"}))
        for event in events:
            oracle.hear(event)
        oracle.end()
        return oracle


@dataclass(frozen=True, kw_only=True)
class Query:
    """A query that was answered: its sequence and the one foretold, and by how much its answer came after its instant.

    Of a batch, the sequence of its first query.
    """

    sequence: int
    foretold: int
    late_ms: float


def queries(load: Load, oracle: Oracle) -> list[Query]:
    """Every query that was answered, with what the oracle says of it."""
    asked = {event["request"]: event for event in load.events if event["event"] == "arrived"}
    places: dict[str, tuple[int, int]] = {}
    next_of: dict[int, int] = {}
    for number in oracle.order:
        dataset, key = asked[number]["dataset"], asked[number]["key"]
        if dataset is not None:
            place = next_of.get(dataset, 1)
            places[key.removesuffix("-0")] = place, oracle.foretold[number].leaves_ns or 0
            next_of[dataset] = place + (BATCH if key.endswith("-0") else 1)
    answered = [heard for heard in load.heard if heard.key in places and heard.answer.status == 200]
    return [_query(heard, *places[heard.key]) for heard in answered if heard.kind in QUERIES]


def _query(heard: Heard, foretold: int, leaves_ns: int) -> Query:
    document = json.loads(heard.answer.body)
    first = document["answers"][0] if heard.kind == "batch" else document
    return Query(sequence=first["sequence"], foretold=foretold, late_ms=(heard.heard_ns - leaves_ns) / 1e6)


# The load


def loaded(home: Path, requests: int, plant: str = "", *, connections: int = CONNECTIONS, **settings: str) -> Load:
    """Let everybody ask a server, with a leak planted if one is named, and look at what was told.

    Settings are given by the names of their environment variables.
    """
    file = home.with_suffix(".json")
    with _observed(made_known(home), file, plant, settings) as (url, metrics_url):
        keys = _prepared(url, new_key(home, "curator"))
        crowd = Crowd(url=url, keys=keys, connections=connections, source=random.Random(7))
        crowd.ask(requests, KINDS)
        metrics = httpx.get(metrics_url, trust_env=False, timeout=PATIENCE_S).text
    overruns = float(re.findall(r"^sparing_slot_overruns_total (\S+)$", metrics, re.MULTILINE)[0])
    return Load(events=json.loads(file.read_text()), heard=crowd.heard, gone=crowd.gone, overruns=int(overruns))


@contextmanager
def _observed(home: Path, file: Path, plant: str, settings: dict[str, str]) -> Iterator[tuple[str, str]]:
    """A server whose events are in the file once this is left: its address and that of its metrics."""
    command = [sys.executable, "-m", "tests.leaks.observed", str(home), str(file), plant]
    env = {**environment(), "SPARING_METRICS_PORT": "0", **settings}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            lines = [process.stdout.readline() if process.stdout else "" for _ in range(2)]
            yield lines[0].split()[1], lines[1].split()[1]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=PATIENCE_S)


def _prepared(url: str, curator_key: str) -> list[str]:
    """Two datasets with people, one of them for batches, and the keys of the analysts."""
    rows = "id,age,area\n" + "".join(f"p{n},{n % 121},{n % 4096}\n" for n in range(PEOPLE))
    headers = {"Authorization": f"Bearer {curator_key}"}
    with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=PATIENCE_S) as curator:
        for name in ("singles", "batches"):
            body = {"name": name, "guarantee": {"rho": "1000"}, "capacity": 4096, "tables": TABLES}
            curator.post("/v1/datasets", json=body).raise_for_status()
            path = f"/v1/datasets/{name}/tables/people/rows"
            curator.post(path, content=rows, headers={"Content-Type": "text/csv"}).raise_for_status()
        wish = {"role": "analyst", "name": "ana"}
        return [curator.post("/v1/principals", json=wish).raise_for_status().json()["key"] for _ in range(ANALYSTS)]


def _single(**query: Any) -> Ask:
    """One query to the first dataset."""
    path, body = "/v1/datasets/singles/queries", encoded(COUNT | query)
    return lambda wire, key: wire.request("POST", path, body, {"Idempotency-Key": key})


def _batch(wire: PeerConnection, key: str) -> bytes:
    """Some queries to the second dataset."""
    entries = [{"idempotency_key": f"{key}-{n}", "query": COUNT} for n in range(BATCH)]
    return wire.request("POST", "/v1/datasets/batches/queries/batch", encoded({"queries": entries}))


QUERIES: dict[str, Ask] = {
    "count": _single(where={"eq": [{"col": "age"}, 7]}),
    "sum": _single(select=[{"sum": {"column": "age"}}]),
    "histogram": _single(select=[{"histogram": {"column": "area"}}]),
    "batch": _batch,
}
KINDS: dict[str, Ask] = {
    **QUERIES,
    "list": lambda wire, _: wire.request("GET", "/v1/queries?limit=5"),
    "dataset": lambda wire, _: wire.request("GET", "/v1/datasets/singles"),
}
