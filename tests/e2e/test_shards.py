"""A served dataset over two processes: killed shards, a killed coordinator, and what operators are shown of them."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from tests.e2e.homes import Homes
from tests.e2e.http_calls import analyst_of, ask, client
from tests.e2e.processes import Served, children_of, living, new_key, served, sparing
from tests.e2e.sharded import PEOPLE, health, insist, register
from tests.waiting import until

WORKER = b"service.store.shards.worker"


def shards_of(running: Served) -> list[int]:
    """The processes of shards."""
    found = []
    for pid, _ in children_of(running.process.pid):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended since
            found += [pid] * (WORKER in Path(f"/proc/{pid}/cmdline").read_bytes())
    return sorted(found)


def test_killed_shards_and_a_killed_coordinator_cost_nobody_anything(homes: Homes) -> None:
    """Each key has one answer and one charge; shards end with their coordinator; another number serves the same."""
    home = homes.begun()
    curator_key = new_key(home, "curator")
    bodies = {}
    with served(home, SPARING_SHARDS="2") as running:
        register(running.url, curator_key)
        analyst_key = analyst_of(running.url, curator_key)
        bodies["before"] = insist(running.url, analyst_key, "before").content
        assert health(running.url, curator_key) == {"backend": "processes", "shards": 2, "ready": 2, "restarts": 0}
        with client(running.url, analyst_key) as analyst:
            assert analyst.get("/readyz").json()["shards"] == {}
        for number in range(2):
            os.kill(shards_of(running)[number], signal.SIGKILL)
            bodies[f"after {number}"] = insist(running.url, analyst_key, f"after {number}").content
        assert health(running.url, curator_key)["restarts"] == 2
        shards = {(pid, each) for pid, each in children_of(running.process.pid) if pid in shards_of(running)}
        assert len(shards) == 2
        running.kill()
    until(lambda: not living(shards))
    with served(home, SPARING_SHARDS="1") as running:
        assert {key: ask(running.url, analyst_key, key).content for key in bodies} == bodies
        with client(running.url, curator_key) as curator:
            ledger = curator.get("/v1/datasets/survey/ledger").json()["items"]
        assert [row["charged"] for row in ledger] == [PEOPLE] * len(ledger)
        assert len(ledger) == len(bodies)
    verified = sparing("ledger", "verify", home=home)
    assert verified.returncode == 0
    assert verified.stdout.endswith("0 findings\n")
