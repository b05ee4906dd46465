"""The rig of the benchmarks: a served replica in a temporary home, and a million made-up people in it."""

import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa

PEOPLE = 1_000_000
DATASET = {
    "name": "million",
    "guarantee": {"epsilon": 1, "delta": 1e-6},
    "capacity": PEOPLE,
    "tables": {
        "people": {
            "kind": "individuals",
            "key": "person_id",
            "columns": {
                "age": {"type": "integer", "lower": 0, "upper": 120},
                "country": {"type": "category", "size": 50},
            },
        }
    },
}
TWO_COLUMNS = {"and": [{"ge": [{"col": "age"}, 40]}, {"in": [{"col": "country"}, [1, 2, 3]]}]}


@dataclass(frozen=True)
class Rig:
    """A running service, with a curator's and an analyst's client for it."""

    process: "subprocess.Popen[str]"
    home: Path
    url: str
    curator: httpx.Client
    analyst: httpx.Client


def people(count: int = PEOPLE) -> pa.Table:
    """Generated people with uniform ages and countries, the same in every run."""
    source = np.random.default_rng(1)
    return pa.table(
        {
            "person_id": pa.array([f"p{n}" for n in range(count)]),
            "age": pa.array(source.integers(0, 121, count)),
            "country": pa.array(source.integers(0, 50, count)),
        }
    )


def arrow_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


@contextmanager
def throw_away_home() -> Iterator[Path]:
    """A folder that an unprivileged account can pass through, deleted at the end."""
    home = Path(tempfile.mkdtemp(prefix="sparing-bench-"))
    home.chmod(0o711)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def serving(
    home: Path, *, environment: dict[str, str] | None = None, checkout: Path | None = None, service: str = "service"
) -> Iterator[Rig]:
    """Run `sparing serve` on a free port, with keys for both roles; of another checkout, if one is given.

    `service` is the module that is served.
    """
    env = {**os.environ, **(environment or {})}
    command = [sys.executable, "-m", "service"]
    serve = [sys.executable, "-m", service, "serve", "--home", str(home), "--port", "0"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, env=env, cwd=checkout) as process:
        try:
            url = (process.stdout.readline() if process.stdout else "").split()[1]
            curator_key = subprocess.run(
                [*command, "keys", "create", "--role", "curator", "--name", "bench", "--home", str(home)],
                capture_output=True,
                text=True,
                check=True,
                env=env,
                cwd=checkout,
            ).stdout.strip()
            with client(url, curator_key) as curator:
                key = curator.post("/v1/principals", json={"role": "analyst", "name": "bench"}).json()["key"]
                with client(url, key) as analyst:
                    yield Rig(process, home, url, curator, analyst)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=120)


def client(url: str, key: str) -> httpx.Client:
    """A client with a key. It uses no proxy, as the service is on loopback."""
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=300, trust_env=False)


def register_people(rig: Rig, count: int = PEOPLE, *, name: str = "million", rule: str = "skip") -> None:
    """Register a dataset with this capacity and rule, and fill it with Arrow streams of a million rows."""
    registration = {**DATASET, "name": name, "rule": rule, "capacity": count}
    rig.curator.post("/v1/datasets", json=registration).raise_for_status()
    everybody = people(count)
    for first in range(0, count, PEOPLE):
        rig.curator.post(
            f"/v1/datasets/{name}/tables/people/rows",
            content=arrow_bytes(everybody.slice(first, PEOPLE)),
            headers={"Content-Type": "application/vnd.apache.arrow.stream"},
        ).raise_for_status()


def count_query(**more: object) -> dict[str, Any]:
    """A count with a large sigma, so that no budget ends during a benchmark."""
    return {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 5000.0}, "reuse": False, **more}


def processor_seconds(pid: int) -> float:
    """Processor seconds of all threads of a process, so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
