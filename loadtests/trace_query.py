"""The files and functions of ours that one query visits in a running server, on all of its threads.

    python -m loadtests.trace_query            # the figures
    python -m loadtests.trace_query --list     # of different texts, and every function, in the order of the first visit

The server runs in this process, on embedded servers in a temporary home, with release slots. A profiler on each thread
counts calls from the client's request to its response. Background work falls into some of the queries, so that only
visits count that most queries share. Work that goes on all the time, and so falls into most queries, is left out by
name. The slots are longer than the default, so that answers are in time on a loaded machine too. The visits are counted
for texts that are all different, and for one text asked again.

The last figure counts every call of a function, of libraries and of C too, for each query of a load from another
process: 16 connections, without slots, as in `loadtests.bench_hot_path`.
"""

import asyncio
import json
import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import Any

import httpx

import service
from loadtests.load import Target, load
from loadtests.raw_http import Wire
from loadtests.rig import throw_away_home
from service.run.serve import serving
from service.settings.settings import Settings

SOURCE = f"{Path(service.__file__).parent}{os.sep}"
WARM_UP, QUERIES = 15, 15
EXCEPTIONS = 5
SLOT_MS = 80
LISTENING_THREAD = "listening"
BY_CHANCE = frozenset({"GracefulServer.on_tick", "BoundedProtocol._count_body"})
"""Functions that only some queries visit: the server's tick, and the second piece of a body that comes in two."""
CONNECTIONS, SECONDS = 16, 3.0
DATASET = {
    "name": "care",
    "guarantee": {"epsilon": 1, "delta": 1e-6},
    "capacity": 1000,
    "tables": {
        "people": {
            "kind": "individuals",
            "key": "id",
            "columns": {"age": {"type": "integer", "lower": 0, "upper": 120}},
        }
    },
}


class Trace:
    """Counts calls while `is_on`: of our functions in the order of their first visit, and all calls.

    All threads share it.
    """

    def __init__(self) -> None:
        self.is_on = False
        self.calls = 0
        self.visits: dict[tuple[str, str], int] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG002 - a profiler's signature
        """Count one event of a thread."""
        if not self.is_on or event not in {"call", "c_call"}:
            return
        self.calls += 1
        if event == "c_call" or threading.current_thread().name == LISTENING_THREAD:
            return
        code = frame.f_code
        is_ours = code.co_filename.startswith(SOURCE) and not code.co_name.startswith("<")
        if is_ours and code.co_qualname not in BY_CHANCE:
            place = code.co_filename.removeprefix(SOURCE), code.co_qualname
            self.visits[place] = self.visits.get(place, 0) + 1

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count the calls during the block alone."""
        self.calls, self.visits = 0, {}
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False


def question(age: int) -> dict[str, Any]:
    """A sparse count."""
    return {
        "version": 1,
        "select": [{"count": {}}],
        "where": {"eq": [{"col": "age"}, age]},
        "noise": {"sigma": 50.0},
        "reuse": False,
    }


def sparse(number: int) -> bytes:
    """The n-th query of a load."""
    return json.dumps(question(number % 120)).encode()


@contextmanager
def analyst_of_a_server(**settings: str) -> Iterator[httpx.Client]:
    """A client of a server in this process, which has a dataset of a thousand people."""
    with (
        throw_away_home() as home,
        serving(Settings.of({"SPARING_HOME": str(home), **settings}), host="127.0.0.1", port=0) as (url, replica),
    ):
        keys = [replica.principals.create(role=role, name=role)[1] for role in ("curator", "analyst")]
        curator, analyst = (
            httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60) for key in keys
        )
        with curator, analyst:
            curator.post("/v1/datasets", json=DATASET).raise_for_status()
            rows = "id,age\n" + "".join(f"p{n},{n % 120}\n" for n in range(1000))
            curator.post(
                "/v1/datasets/care/tables/people/rows", content=rows, headers={"Content-Type": "text/csv"}
            ).raise_for_status()
            yield analyst


def traced(trace: Trace, *, different: bool) -> dict[tuple[str, str], int]:
    """The visits that QUERIES sparse counts share, all but EXCEPTIONS of them, asked one after the other.

    Their texts are all `different`, or all alike. Head and body are sent at once, because the credential of a body that
    is waited for is checked once more.
    """
    with analyst_of_a_server(SPARING_RELEASE_SLOT_MS=str(SLOT_MS)) as analyst:
        found = asyncio.run(_visits(trace, analyst, different=different))
    counts = {place: sorted(each.get(place, 0) for each in found) for each in found for place in each}
    return {place: min(filter(None, rising)) for place, rising in counts.items() if rising[EXCEPTIONS]}


async def _visits(trace: Trace, analyst: httpx.Client, *, different: bool) -> list[dict[tuple[str, str], int]]:
    """The visits of each query after the first ones. Raises RuntimeError if a query is not answered."""
    url, found = analyst.base_url, []
    wire = await Wire.to((url.host, url.port or 80))
    for number in range(WARM_UP + QUERIES):
        body = json.dumps(question(number if different else 7)).encode()
        head = (
            f"POST /v1/datasets/care/queries HTTP/1.1\r\nHost: {url.netloc.decode()}\r\n"
            f"Authorization: {analyst.headers['authorization']}\r\nIdempotency-Key: k{number}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with trace.counting():
            reply = await wire.ask(head.encode() + body)
        if reply.status != HTTPStatus.OK:
            raise RuntimeError(reply.body.decode())
        found.append(trace.visits)
    wire.close()
    return found[WARM_UP:]


def calls_of_each(trace: Trace) -> float:
    """The number of calls in this process for each query of a load."""
    with (
        analyst_of_a_server(SPARING_RELEASE_SLOT_MS="0") as analyst,
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool,
    ):
        headers = {"Authorization": str(analyst.headers["authorization"])}
        target = Target(url=f"{analyst.base_url}/v1/datasets/care/queries", headers=headers, body=sparse)
        pool.submit(load, target, connections=CONNECTIONS, seconds=SECONDS).result()
        with trace.counting():
            done = pool.submit(load, target, connections=CONNECTIONS, seconds=SECONDS).result()
    return trace.calls / len(done)


def main() -> None:
    """Print the figures, and with --list the visits behind them."""
    trace = Trace()
    threading.setprofile(trace)
    sys.setprofile(trace)
    is_list = "--list" in sys.argv
    for name, different in [("different texts", True), ("one text", False)][: 1 if is_list else 2]:
        visits = traced(trace, different=different)
        files = {path for path, _ in visits}
        print(f"{name}: files {len(files)}, functions {len(visits)}, calls {sum(visits.values())}")
        if is_list:
            for (path, function), count in visits.items():
                print(f"service/{path} {function} {count}")
    if not is_list:
        print(f"with libraries, at {CONNECTIONS} connections: calls {calls_of_each(trace):.0f}")
    sys.setprofile(None)


if __name__ == "__main__":
    main()
