"""Faults of a served home for the soak: killed servers, full disks, uploads that swell, crowds, random walks."""

import asyncio
import random
import resource
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from tests.e2e.asking import Asking, check_answers, kill_servers
from tests.e2e.full_disks import fill, mounted_disk
from tests.e2e.homes import Homes
from tests.e2e.http_calls import client
from tests.e2e.processes import peak_bytes, served
from tests.engine.ingest.bombs import BOMBS, DATASET, PATH
from tests.stateful.walk import STEPS, walked

KILLS, FULL_DISKS, CROWD = 5, 3, 5_000
SMALL_BYTES = 64 * 2**20
"""How much the peak of a server's memory may grow for an upload that is refused."""


def embedded_kills(homes: Homes, seed: int) -> int:
    """Kill Postgres and Valkey of a served home with one or two workers."""
    home = homes.surveyed()
    with served(home.path, SPARING_WORKERS=str(1 + seed % 2)) as running:
        with Asking([running.url], home.analyst_key) as asking:
            for _ in range(KILLS):
                asking.await_more(1 + seed % 7)
                kill_servers(home.path)
            asking.await_more(3)
        if not set(asking.failures) <= {503}:
            raise AssertionError(f"other failures than 503: {set(asking.failures)}")
        check_answers(asking, running.url, home)
    return KILLS


def full_disks(homes: Homes, seed: int) -> int:
    """Fill the disk of a served home and make room again, while an analyst repeats its keys."""
    home = homes.surveyed()
    with mounted_disk(homes.missing()) as disk:
        subprocess.run(["cp", "-a", f"{home.path}/.", str(disk)], check=True)  # noqa: S607 - with owners
        copy = type(home)(path=disk, curator_key=home.curator_key, analyst_key=home.analyst_key)
        witness = homes.missing()
        with served(disk, SPARING_WITNESS=str(witness)) as running:
            with Asking([running.url], home.analyst_key) as asking:
                for _ in range(FULL_DISKS):
                    asking.await_more(1 + seed % 7)
                    ballast = fill(disk)
                    time.sleep(1 + seed % 3)
                    ballast.unlink()
                asking.await_more(3)
            check_answers(asking, running.url, copy, SPARING_WITNESS=str(witness))
    return FULL_DISKS


def swelling_uploads(homes: Homes, seed: int) -> int:
    """Send every body that stands for gigabytes, in random order.

    Each must be refused, nothing stored, the server small.
    """
    home, names = homes.surveyed(), list(BOMBS)
    random.Random(seed).shuffle(names)
    with served(home.path) as running, client(running.url, home.curator_key) as curator:
        curator.post("/v1/datasets", json=DATASET).raise_for_status()
        before = peak_bytes(running.process.pid)
        for name in names:
            bomb = BOMBS[name]
            answer = curator.post(PATH, content=bomb.body(), headers={"Content-Type": bomb.content_type})
            if answer.status_code != httpx.codes.UNPROCESSABLE_ENTITY:
                raise AssertionError(f"{name}: {answer.status_code}")
        rows = curator.get("/v1/datasets/bombs").json()["rows"]["visits"]
        grown = peak_bytes(running.process.pid) - before
        if rows or grown > SMALL_BYTES:
            raise AssertionError(f"{rows} rows are stored, and the peak has grown by {grown} bytes")
    return len(names)


def idle_crowds(homes: Homes, _seed: int) -> int:
    """Open thousands of silent connections to a server with 1,024 files. An analyst must be answered throughout."""
    home = homes.surveyed()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, files[1]))  # the server inherits it
    with ExitStack() as stack:
        running = stack.enter_context(served(home.path))
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(files[1], 2 * CROWD), files[1]))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, files)
        asking = stack.enter_context(Asking([running.url], home.analyst_key))
        asking.await_more(1)
        parts = urlsplit(running.url)
        for number in range(CROWD):
            stack.enter_context(socket.create_connection((parts.hostname, parts.port), timeout=30))
            if number % 500 == 0:
                asking.await_more(1)
        asking.await_more(3)
    return CROWD


def walks(_homes: Homes, seed: int) -> int:
    """Walk at random over roles, datasets, keys and cookies."""
    return sum(asyncio.run(walked(seed, STEPS)).values())


def homes_in(folder: Path) -> Homes:
    """The homes of a soak."""
    folder.mkdir(mode=0o711, exist_ok=True)
    return Homes(folder)
