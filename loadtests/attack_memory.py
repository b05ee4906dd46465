"""Memory attack: 256 small requests for answers of 2^20 numbers each, beside an honest analyst.

    python -m loadtests.attack_memory [queries]

The attacker sends them in one batch, on connections that it closes at once, on connections that it reads, and on
connections that it never reads. For each attack the program prints the serving process's peak resident memory and the
latencies of the honest analyst's counts. The server may address 8 GiB, so that it fails before the machine does.
"""

import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from loadtests.probes import encoded
from loadtests.rig import client, serving, throw_away_home
from loadtests.wires import PeerConnection

QUERIES = 256
NUMBERS = 2**20
ADDRESS_SPACE_BYTES = 8 * 2**30
BUFFER_BYTES = 2**16
PAUSE_S = 0.02
TABLES = {
    "people": {
        "kind": "individuals",
        "key": "id",
        "columns": {
            "age": {"type": "integer", "lower": 0, "upper": 120},
            "area": {"type": "category", "size": NUMBERS},
        },
    }
}
COUNT: dict[str, Any] = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 100.0}, "reuse": False}
LARGE: dict[str, Any] = {**COUNT, "select": [{"histogram": {"column": "area"}}], "noise": {"sigma": 1e9}}
PATH = "/v1/datasets/survey/queries"


@dataclass(kw_only=True)
class Honest:
    """An analyst that asks one count after the other. It keeps the latencies of answered counts, and all refusals."""

    url: str
    key: str
    taken_s: list[float] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def ask(self) -> None:
        """Ask until the event is set."""
        with client(self.url, self.key) as analyst:
            while not self.ended.is_set():
                started = time.monotonic()
                answer = analyst.post(PATH, json=COUNT, headers={"Idempotency-Key": uuid4().hex})
                if answer.status_code == 200:
                    self.taken_s.append(time.monotonic() - started)
                else:
                    self.refused.append(answer.status_code)
                time.sleep(PAUSE_S)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A server with a dataset, its process, and the keys of an attacker and of an honest analyst."""

    url: str
    pid: int
    attacker: str
    honest: str

    def forget_peak(self) -> None:
        """Reset the peak of resident memory."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def peak_bytes(self) -> int:
        """The largest resident memory of the serving process since the reset."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024

    @contextmanager
    def honest_beside(self, after_s: float = 1.0) -> Iterator[Honest]:
        """Run the honest analyst during the block, and a little longer."""
        honest = Honest(url=self.url, key=self.honest)
        thread = threading.Thread(target=honest.ask)
        thread.start()
        try:
            yield honest
            time.sleep(after_s)
        finally:
            honest.ended.set()
            thread.join()

    def begun(self, wire: PeerConnection) -> PeerConnection:
        """Begin one large query on a connection."""
        wire.begin(wire.request("POST", PATH, encoded(LARGE), {"Idempotency-Key": uuid4().hex}))
        return wire

    def wires(self, count: int) -> list[PeerConnection]:
        """Open `count` connections of the attacker with small receive buffers, each with a large query under way."""
        return [self.begun(PeerConnection(self.url, self.attacker, buffer_bytes=BUFFER_BYTES)) for _ in range(count)]


def prepared(url: str, pid: int, curator: httpx.Client) -> Scene:
    """Make a dataset of a hundred people and two analysts. The process cannot take more memory than the machine has."""
    resource.prlimit(pid, resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    body = {"name": "survey", "guarantee": {"rho": "1000"}, "capacity": 1000, "tables": TABLES}
    curator.post("/v1/datasets", json=body).raise_for_status()
    rows = "id,age,area\n" + "".join(f"p{n},{n},{n}\n" for n in range(100))
    path, headers = "/v1/datasets/survey/tables/people/rows", {"Content-Type": "text/csv"}
    curator.post(path, content=rows, headers=headers).raise_for_status()
    wishes = [{"role": "analyst", "name": name, "dataset": "survey"} for name in ("attacker", "honest")]
    attacker, honest = (curator.post("/v1/principals", json=wish).raise_for_status().json()["key"] for wish in wishes)
    return Scene(url=url, pid=pid, attacker=attacker, honest=honest)


# Attacks


def in_a_batch(scene: Scene, count: int) -> None:
    """Send all queries in one batch, and close the connection at once."""
    entries = [{"idempotency_key": uuid4().hex, "query": LARGE} for _ in range(count)]
    wire = PeerConnection(scene.url, scene.attacker)
    wire.begin(wire.request("POST", f"{PATH}/batch", encoded({"queries": entries})))
    wire.close()


def closed_at_once(scene: Scene, count: int) -> None:
    """Send each query on its own connection, and close all of them at once."""
    for wire in scene.wires(count):
        wire.close()


def read(scene: Scene, count: int) -> None:
    """Send each query on its own connection, and read its answer or refusal."""
    for wire in scene.wires(count):
        while wire.advance() is None:
            pass
        wire.close()


def never_read(scene: Scene, count: int) -> None:
    """Send each query on its own connection, one after the other. Read nothing, and leave all connections open."""
    wires = []
    for _ in range(count):
        wires += scene.wires(1)
        time.sleep(0.2)
    for wire in wires:
        wire.close()


ATTACKS: Mapping[str, Callable[[Scene, int], None]] = {
    each.__name__: each for each in (in_a_batch, closed_at_once, read, never_read)
}


def main() -> None:
    """Attack a server with the usual settings, and print peak memory and latencies."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else QUERIES
    with throw_away_home() as home, serving(home) as rig:
        scene = prepared(rig.url, rig.process.pid, rig.curator)
        for name, attack in ATTACKS.items():
            scene.forget_peak()
            before = scene.peak_bytes()
            with scene.honest_beside() as honest:
                attack(scene, count)
            grown_mib = (scene.peak_bytes() - before) / 2**20
            print(
                f"{name:16} peak +{grown_mib:.0f} MiB over {before / 2**20:.0f}; honest: {len(honest.taken_s)} counts,"
                f" slowest {max(honest.taken_s):.2f} s, refused {len(honest.refused)}",
                flush=True,
            )
        rig.process.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    main()
