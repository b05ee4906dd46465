"""Both clients over a real connection: bodies arrive whole, and a try that takes too long ends."""

import contextlib
import gzip
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

import pytest

from sparing import APITimeoutError, Client

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
ROWS = b"person_id,age\n" + b"a,1\n" * 200_000


@dataclass
class Served:
    """A service on this machine, and what it was sent."""

    answers: threading.Event = field(default_factory=threading.Event)
    lengths: list[str | None] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)


@pytest.fixture
def served() -> Served:
    """Answers everything, until a test stops it."""
    found = Served()
    found.answers.set()
    return found


@pytest.fixture
def remote(served: Served, connect: Any) -> Iterator[Client]:
    """A client of it."""

    class Handler(BaseHTTPRequestHandler):
        """Reads a whole request, waits for `answers`, and reports an upload of one row."""

        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Read either kind of body."""
            length = self.headers["Content-Length"]
            body = self.rfile.read(int(length)) if length else b"".join(iter(self.chunk, b""))
            served.lengths.append(length)
            served.bodies.append(body)
            served.answers.wait(30)
            reply = json.dumps({"rows": 1, "individuals": 1}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def chunk(self) -> bytes:
            """The next chunk of a body without a length."""
            found = self.rfile.read(int(self.rfile.readline(), 16))
            self.rfile.readline()
            return found

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    with connect(base_url=f"http://127.0.0.1:{server.server_port}", transport=None) as client:
        yield client
    served.answers.set()
    server.shutdown()
    server.server_close()
    thread.join()


def test_files_arrive_whole(remote: Client, served: Served, tmp_path: Path) -> None:
    """Announced with their length, or in chunks where it is not known."""
    plain, packed = tmp_path / "rows.csv", tmp_path / "rows.csv.gz"
    plain.write_bytes(ROWS)
    packed.write_bytes(gzip.compress(ROWS))
    told: list[int] = []
    for source in (plain, packed, ROWS):
        remote.datasets.upload(dataset="d", table="t", file=source, progress=lambda sent, _: told.append(sent))
        remote.datasets.upload(dataset="d", table="t", file=source)
    assert served.bodies == [ROWS] * 6
    assert served.lengths == [str(len(ROWS))] * 2 + [None] * 2 + [str(len(ROWS))] * 2
    assert told.count(len(ROWS)) == 3


def test_a_try_that_takes_too_long_ends(remote: Client, served: Served) -> None:
    """With the key, and the connection is not used again for another reply."""
    served.answers.clear()
    quick = remote.with_options(timeout=0.05, max_retries=0)
    with pytest.raises(APITimeoutError) as late:
        quick.datasets.upload(dataset="d", table="t", file=b"a\n", idempotency_key="mine")
    assert late.value.idempotency_key == "mine"
    served.answers.set()
    assert remote.datasets.upload(dataset="d", table="t", file=b"b\n").rows == 1
    assert b"b\n" in served.bodies


DRIPS = {"a head": b"", "informational heads": b"HTTP/1.1 100 Continue\r\n\r\n", "a body": HEAD}
TRICKLE = {"a head": b"H", "informational heads": b"HTTP/1.1 100 Continue\r\n\r\n", "a body": b" "}


@pytest.mark.parametrize("what", DRIPS)
def test_a_server_that_drips_does_not_hold_a_try(connect: Any, what: str) -> None:
    """No wait is as long as the timeout, and all together are longer."""
    ended = threading.Event()

    class Dripping(BaseRequestHandler):
        def handle(self) -> None:
            """Send a little, again and again, until the client has gone."""
            self.request.recv(65_536)
            self.request.sendall(DRIPS[what])
            with contextlib.suppress(OSError):
                while not ended.wait(0.002):
                    self.request.sendall(TRICKLE[what])

    server = ThreadingTCPServer(("127.0.0.1", 0), Dripping)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        quick = connect(base_url=address, transport=None, timeout=0.1, max_retries=1)
        with quick as client, pytest.raises(APITimeoutError, match="No reply in time"):
            client.queries.ask(dataset="d", sigma=1)
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
