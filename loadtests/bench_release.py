"""The information in response times: without slots, with asyncio.sleep, and with the service's release slots.

    python -m loadtests.bench_release [requests of each class]

There are two classes of work in random order: 1.0 ms of arithmetic and 2.5 ms, about what a careless evaluation takes
for 40,000 people of whom 5 % can pay, and for 95 %. The work runs on a thread of its own, as the service's writer does,
behind uvicorn and the service's own layer. The client is another process on the loopback. A third class repeats the
first. These two must not differ: a rig that finds a difference (|t| > 4.5) has measured itself.

Reported are medians, their difference, and the largest |t| of Welch's test over crops of the slow tail, as in dudect:
above 4.5 is suspicious, above 10 certain.
"""

import asyncio
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from statistics import median

import numpy as np
import uvicorn
from numpy.typing import NDArray
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.middleware.release_clock import system_clock
from service.api.middleware.release_slots import ReleaseSlots, Slots
from service.ledger.ports.telemetry import NULL_TELEMETRY

SLOT_MS = 10
REQUESTS = 1000
WARM = 50
CLASSES: Mapping[str, float] = {"few": 1.0, "many": 2.5, "few again": 1.0}  # ms
POLICIES = ("no slot", "asyncio.sleep", "release slots")
CROPS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

Times = Mapping[str, NDArray[np.float64]]


def run(requests: int = REQUESTS) -> dict[str, float]:
    """For each policy: medians in us, the difference between the classes, the largest |t|; again for the control."""
    figures: dict[str, float] = {}
    for policy in POLICIES:
        with served(policy) as port:
            times = measured(port, requests)
        name = policy.replace(" ", "_").replace(".", "_")
        figures |= {
            f"{name}_few_us": median(times["few"]),
            f"{name}_many_us": median(times["many"]),
            f"{name}_difference_us": median(times["many"]) - median(times["few"]),
            f"{name}_t": largest_t(times["few"], times["many"]),
            f"{name}_control_difference_us": median(times["few again"]) - median(times["few"]),
            f"{name}_control_t": largest_t(times["few"], times["few again"]),
        }
    return figures


def main() -> None:
    """Print a table."""
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else REQUESTS
    figures = run(requests)
    print(f"{requests} requests of each class, slot {SLOT_MS} ms, one connection; times in us")
    columns = ("few", "many", "difference", "|t|", "A/A diff.", "A/A |t|")
    print(f"{'':14}" + "".join(f"{column:>12}" for column in columns))
    keys = ("few_us", "many_us", "difference_us", "t", "control_difference_us", "control_t")
    for policy in POLICIES:
        name = policy.replace(" ", "_").replace(".", "_")
        print(f"{policy:14}" + "".join(f"{figures[f'{name}_{key}']:12.1f}" for key in keys))


# The client


def measured(port: int, requests: int) -> Times:
    """Time from the request's last byte sent to the response's first byte, in us, by class, in random order."""
    order = [name for name in CLASSES for _ in range(requests)]
    random.Random(1).shuffle(order)
    taken: dict[str, list[float]] = {name: [] for name in CLASSES}
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for name in [*CLASSES] * (WARM // len(CLASSES)):
            exchange(connection, name)
        for name in order:
            taken[name].append(exchange(connection, name))
    return {name: np.array(times) for name, times in taken.items()}


def exchange(connection: socket.socket, name: str) -> float:
    """Send one request on an open connection, and return its time in us."""
    # A pause that does not depend on the class, so that no response shapes the next request's arrival.
    time.sleep(random.uniform(0.0005, 0.0015))
    request = f"GET /{name.split(maxsplit=1)[0]} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()
    started = time.perf_counter_ns()
    connection.sendall(request)
    received = connection.recv(65536)
    taken_us = (time.perf_counter_ns() - started) / 1000
    while not received.endswith(b"done"):
        received += connection.recv(65536)
    return taken_us


def largest_t(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The largest |t| of Welch's test, over crops of both samples at common quantiles."""
    both = np.concatenate([one, other])
    limits = [float(np.quantile(both, crop)) for crop in CROPS]
    return max(abs(welch_t(one[one <= limit], other[other <= limit])) for limit in limits)


def welch_t(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Welch's t: the difference of the means in units of its own standard error."""
    error = np.sqrt(one.var(ddof=1) / one.size + other.var(ddof=1) / other.size)
    return float((other.mean() - one.mean()) / error)


# The server


@contextmanager
def served(policy: str) -> Iterator[int]:
    """Run a server process under a policy; yields its port."""
    command = [sys.executable, "-m", "loadtests.bench_release", "serve", policy]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(process.stdout.readline() if process.stdout else "")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)


def serve(policy: str) -> None:
    """Serve until a signal comes; the first line printed holds the port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        print(listener.getsockname()[1], flush=True)
        config = uvicorn.Config(application(policy), log_level="warning", access_log=False, lifespan="off")
        uvicorn.Server(config).run(sockets=[listener])


def application(policy: str) -> ASGIApp:
    """An application that evaluates on a thread, as the service does, and answers under a policy."""
    works = {name: work(milliseconds) for name, milliseconds in CLASSES.items() if " " not in name}
    writer = ThreadPoolExecutor(1)

    async def evaluate(scope: Scope, _: Receive, send: Send) -> None:
        await asyncio.get_running_loop().run_in_executor(writer, works[scope["path"][1:]])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        await send({"type": "http.response.body", "body": b"done"})

    slots = Slots(length_ns=SLOT_MS * 1_000_000)
    policies: Mapping[str, Callable[[], ASGIApp]] = {
        "no slot": lambda: evaluate,
        "asyncio.sleep": lambda: Sleeping(evaluate),
        "release slots": lambda: ReleaseSlots(evaluate, slots=slots, clock=system_clock(), telemetry=NULL_TELEMETRY),
    }
    return Named(policies[policy]())


class Named:
    """Gives each request the state that the service's outermost layer would give it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Set the state and pass the request on."""
        scope["state"] = {}
        await self.app(scope, receive, send)


class Sleeping:
    """The naive deadline: `asyncio.sleep` for the rest of the slot."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sleep before the response begins."""
        due = time.monotonic() + SLOT_MS / 1000

        async def send_later(message: Message) -> None:
            if message["type"] == "http.response.start":
                await asyncio.sleep(due - time.monotonic())
            await send(message)

        await self.app(scope, receive, send_later)


def work(milliseconds: float) -> Callable[[], None]:
    """A function that does arithmetic on arrays, as an evaluation does, for this many milliseconds."""
    numbers = np.random.default_rng(1).integers(0, 2**30, 20_000)

    def evaluate() -> None:
        until_ns = time.monotonic_ns() + int(milliseconds * 1e6)
        while time.monotonic_ns() < until_ns:
            numbers.sum()

    return evaluate


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2])
    else:
        main()
