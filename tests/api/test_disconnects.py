"""A client that goes away in the middle takes nothing with it: over real sockets, behind the real server."""

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import pytest
import uvicorn

from service.api.app import HttpOptions
from service.api.middleware.release_clock import system_clock
from service.api.middleware.release_slots import Slots
from service.query.parse import parse_query
from tests.api.world import COUNT, World, build_world
from tests.gated_store import GatedStore
from tests.waiting import PATIENCE_S, until

PATH = "/v1/datasets/care/queries"
FRESH = COUNT.replace(b"20.0", b"21.0")
BATCH = (
    b'{"queries":['
    + b",".join(b'{"idempotency_key":"b%d","query":%s}' % (n, COUNT.replace(b"20.0", b"3%d.0" % n)) for n in range(3))
    + b"]}"
)


@dataclass
class Server:
    """A served world, and the store that can be held."""

    world: World
    store: GatedStore
    port: int

    def send(self, path: str, body: bytes, key: str) -> socket.socket:
        """A whole request on a connection of its own."""
        connection = socket.create_connection(("127.0.0.1", self.port))
        head = (
            f"POST {path} HTTP/1.1\r\nHost: sparing\r\nAuthorization: Bearer {self.world.keys['analyst']}\r\n"
            f"Idempotency-Key: {key}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body)
        return connection

    def ask(self, path: str, body: bytes, key: str) -> httpx.Response:
        """Post a body and wait for the response."""
        headers = {"Authorization": f"Bearer {self.world.keys['analyst']}", "Idempotency-Key": key}
        return httpx.post(
            f"http://127.0.0.1:{self.port}{path}", content=body, headers=headers, timeout=PATIENCE_S, trust_env=False
        )

    def spent(self) -> list[int]:
        """The spent totals of all people."""
        return [row.spent_units for row in self.world.replica.curators.budgets("care", cursor=None, limit=10).items]

    def entries(self) -> int:
        """The length of the ledger."""
        return self.store.head(1).seq


@pytest.fixture
def server() -> Iterator[Server]:
    """A world behind uvicorn, on slots of 10 ms."""
    with served(deadline_s=PATIENCE_S) as opened:
        yield opened


@contextmanager
def served(*, deadline_s: float) -> Iterator[Server]:
    """A service with a deadline, whose store waits at a gate."""
    store = GatedStore()
    edge = HttpOptions(slots=Slots(length_ns=10_000_000), clock=system_clock(), deadline_s=deadline_s)
    world = build_world(edge=edge, store=store)
    config = uvicorn.Config(world.app, log_level="critical", timeout_graceful_shutdown=int(PATIENCE_S))
    uvicorn_server = uvicorn.Server(config)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        thread = threading.Thread(target=uvicorn_server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield Server(world, store, listener.getsockname()[1])
        store.gate.set()
        uvicorn_server.should_exit = True
        thread.join()
    world.replica.close()


@pytest.mark.parametrize("how", ["closed", "reset"])
def test_a_query_whose_client_goes_away_is_charged_and_kept(server: Server, how: str) -> None:
    """In the middle of its transaction: the same durable state as with the client, and the bytes under the key."""
    server.store.gate.clear()
    connection = server.send(PATH, FRESH, "k")
    server.store.wait_until_reached()
    if how == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    connection.close()
    server.store.gate.set()
    answered = server.ask(PATH, FRESH, "k")
    assert answered.status_code == 200
    assert server.entries() == 2  # the one of the world, and this
    spent = server.spent()
    read = server.ask(PATH, FRESH, "k")
    assert read.content == answered.content
    assert (server.entries(), server.spent()) == (2, spent)

    alone = build_world()
    analyst = alone.replica.principals.authenticate_all([alone.keys["analyst"]])[0]
    assert analyst is not None
    alone.replica.analysts.submit(analyst, "care", "k", parse_query(FRESH)).result(timeout=PATIENCE_S)
    rows = alone.replica.curators.budgets("care", cursor=None, limit=10).items
    assert [row.spent_units for row in rows] == spent
    alone.replica.close()


def test_a_batch_whose_client_goes_away_is_done_to_its_end(server: Server) -> None:
    """Every entry is charged once and under its key."""
    server.store.gate.clear()
    connection = server.send(f"{PATH}/batch", BATCH, "")
    server.store.wait_until_reached()
    connection.close()
    server.store.gate.set()
    answers = server.ask(f"{PATH}/batch", BATCH, "").json()["answers"]
    assert [answer["sequence"] for answer in answers] == [2, 3, 4]
    assert server.entries() == 4


def test_what_the_deadline_refuses_is_charged_and_kept_once_it_has_begun() -> None:
    """503 in the middle of its transaction; the work goes on, and a retry gets its bytes without another charge."""
    with served(deadline_s=0.3) as server:
        server.store.gate.clear()
        assert server.ask(PATH, FRESH, "k").status_code == 503
        server.store.wait_until_reached()
        server.store.gate.set()
        until(lambda: server.entries() == 2)
        answered, spent = server.ask(PATH, FRESH, "k"), server.spent()
        assert (answered.status_code, answered.json()["sequence"]) == (200, 2)
        assert server.ask(PATH, FRESH, "k").content == answered.content
        assert (server.entries(), server.spent()) == (2, spent)


def test_what_the_deadline_refuses_before_it_has_begun_can_be_asked_again() -> None:
    """It waits behind work that does not end; whether it is worked on later or never, its key has one answer."""
    with served(deadline_s=0.3) as server:
        server.store.gate.clear()
        behind = FRESH.replace(b"21.0", b"22.0")
        with ThreadPoolExecutor(2) as clients:
            first = clients.submit(server.ask, PATH, FRESH, "k")
            server.store.wait_until_reached()
            second = clients.submit(server.ask, PATH, behind, "l")
            assert (first.result().status_code, second.result().status_code) == (503, 503)
        server.store.gate.set()
        bodies = [server.ask(PATH, body, key).content for body, key in ((FRESH, "k"), (behind, "l"))]
        assert [json.loads(body)["sequence"] for body in bodies] == [2, 3]
        assert [server.ask(PATH, body, key).content for body, key in ((FRESH, "k"), (behind, "l"))] == bodies
        assert server.entries() == 3


def test_half_a_request_is_nothing(server: Server) -> None:
    """A body that ends before its length asks nothing and charges no individual."""
    connection = socket.create_connection(("127.0.0.1", server.port))
    head = f"POST {PATH} HTTP/1.1\r\nAuthorization: Bearer {server.world.keys['analyst']}\r\nIdempotency-Key: h\r\n"
    connection.sendall(f"{head}Host: sparing\r\nContent-Length: {len(FRESH)}\r\n\r\n".encode() + FRESH[:-1])
    connection.close()
    assert server.ask(PATH, json.dumps({"version": 2}).encode(), "h").status_code == 422
    assert server.entries() == 1
