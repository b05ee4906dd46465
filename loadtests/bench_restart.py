"""A restart on a million people: from the start of the process to the answer of the first query.

    python -m loadtests.bench_restart

The dataset has a long history: eight thousand commits, so that its witness is about as long as it ever gets.

Three kinds of restart are measured five times each: after a clean stop, after kill -9 with a thousand entries since the
last checkpoint, and without preloading. The times are those until connections are accepted, from there to the first
answer, and both together. The processor time of the process does not depend on other load. Then come the memory per
person, and the bytes of a query in the ledger.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg

from loadtests.rig import PEOPLE, client, count_query, processor_seconds, register_people, serving, throw_away_home
from service.embedded import EmbeddedPostgres

ROUNDS = 5
TAIL = 1000
AGE = 6800
"""Commits before the first stop.

With those of the starts they are a little fewer than those at which a witness is thinned.
"""
FEW = {"and": [{"eq": [{"col": "country"}, 7]}, {"eq": [{"col": "age"}, 33]}]}  # about 165 people
QUERIES = {
    "few": count_query(where=FEW),
    "everybody_alike": count_query(),
    "everybody_else": {**count_query(), "select": [{"sum": {"column": "age"}}], "noise": {"sigma": 500_000.0}},
}
ENTRY_BYTES = (
    'SELECT coalesce(octet_length(piece), 0) + octet_length(canonical) + octet_length("values")'
    " + coalesce((SELECT sum(octet_length(sealed)) FROM pieces p"
    " WHERE p.dataset_id = l.dataset_id AND p.seq = l.seq), 0)::bigint, charged_count FROM ledger l ORDER BY seq"
)
SWITCHES = {"SPARING_RELEASE_SLOT_MS": "0", "SPARING_DRAIN_NOTICE_MS": "0"}


@dataclass(frozen=True)
class Start:
    """One start of the service: seconds until ready, from there to the answer, and of processor; bytes of memory."""

    ready_s: float
    answer_s: float
    processor_s: float
    bytes_before: int
    bytes_after: int


def run() -> dict[str, float]:
    """The medians of all restarts."""
    figures: dict[str, float] = {}
    with throw_away_home() as home:
        with serving(home, environment=SWITCHES) as rig:
            register_people(rig)
            key = rig.analyst.headers["Authorization"].removeprefix("Bearer ")
            for number, query in enumerate(QUERIES.values()):
                ask(rig.analyst, query, f"size-{number}")
            figures |= ledger_bytes(home)
            for number in range(AGE):
                ask(rig.analyst, QUERIES["few"], f"age-{number}")
        figures |= medians("clean_stop", [start(home, key) for _ in range(ROUNDS)])
        without = [start(home, key, preload=False) for _ in range(ROUNDS)]
        figures |= medians("not_ahead", without)
        held = statistics.median(each.bytes_after - each.bytes_before for each in without)
        figures["memory_bytes_per_person"] = held / PEOPLE
        start(home, key, tail=TAIL)
        figures |= medians("killed", [start(home, key, tail=1) for _ in range(ROUNDS)])
    return figures


def start(home: Path, key: str, *, preload: bool = True, tail: int = 0) -> Start:
    """Start, ask once, and stop cleanly; or ask `tail` times and kill, so that these entries have to be replayed."""
    environment = {**os.environ, **SWITCHES, "SPARING_PRELOAD": str(int(preload))}
    command = [sys.executable, "-m", "service", "serve", "--home", str(home), "--port", "0"]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        url = (process.stdout.readline() if process.stdout else "").split()[1]
        ready = time.perf_counter()
        before = resident_bytes(process.pid)
        with client(url, key) as analyst:
            ask(analyst, QUERIES["few"], os.urandom(8).hex())
            answered = time.perf_counter()
            processor_s, after = processor_seconds(process.pid), resident_bytes(process.pid)
            for _ in range(tail - 1):
                ask(analyst, QUERIES["few"], os.urandom(8).hex())
        process.send_signal(signal.SIGKILL if tail else signal.SIGTERM)
    return Start(ready - began, answered - ready, processor_s, before, after)


def ask(analyst: httpx.Client, query: dict[str, object], key: str) -> None:
    """Ask one query."""
    reply = analyst.post("/v1/datasets/million/queries", json=query, headers={"Idempotency-Key": key})
    reply.raise_for_status()


def medians(name: str, starts: list[Start]) -> dict[str, float]:
    """The medians of one way to stop."""
    return {
        f"{name}_ready_s": statistics.median(each.ready_s for each in starts),
        f"{name}_answer_s": statistics.median(each.answer_s for each in starts),
        f"{name}_total_s": statistics.median(each.ready_s + each.answer_s for each in starts),
        f"{name}_processor_s": statistics.median(each.processor_s for each in starts),
    }


def ledger_bytes(home: Path) -> dict[str, float]:
    """The bytes of each of the first queries in the ledger, its fixed 300 aside, and its number of charged people."""
    url = EmbeddedPostgres(home).attach()
    if url is None:
        raise RuntimeError("no server in this home")
    with psycopg.connect(url) as connection:
        rows = connection.execute(ENTRY_BYTES).fetchall()
    figures: dict[str, float] = {}
    for name, (size, people) in zip(QUERIES, rows, strict=True):
        figures |= {f"ledger_{name}_bytes": size, f"ledger_{name}_people": people}
    return figures


def resident_bytes(pid: int) -> int:
    """The resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Print the figures."""
    print(json.dumps(run(), indent=2))


if __name__ == "__main__":
    main()
