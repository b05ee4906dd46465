"""The connections of a client: each process has its own."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

ASKING = """
import asyncio, os, sys
import httpx, sparing

is_async, has_transport = sys.argv[2] == "AsyncClient", sys.argv[3] == "transport"
given = {}
if has_transport:
    given["transport"] = httpx.AsyncHTTPTransport() if is_async else httpx.HTTPTransport()
client = getattr(sparing, sys.argv[2])(base_url=sys.argv[1], api_key="k", **given)
loop = asyncio.new_event_loop()


def told():
    try:
        listed = client.allowances.list()
        if is_async:
            loop.run_until_complete(listed)
    except sparing.APIConnectionError as error:
        return str(error)
    return "answered"


print(told(), flush=True)
child = os.fork()
if child == 0:
    loop = asyncio.new_event_loop()
    print(told(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(told(), flush=True)
"""


@pytest.fixture
def ports() -> list[int]:
    """The ports that requests came from, each of one connection."""
    return []


@pytest.fixture
def address(ports: list[int]) -> Iterator[str]:
    """The address of a service without allowances, which keeps connections open."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """An empty list."""
            ports.append(self.client_address[1])
            reply = json.dumps([]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def run(*arguments: str) -> list[str]:
    """The lines that a process and its forked child print."""
    command = [sys.executable, "-W", "error", "-c", ASKING, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("kind", ["Client", "AsyncClient"])
def test_a_forked_child_has_a_connection_of_its_own(kind: str, address: str, ports: list[int]) -> None:
    """It is answered, and its parent goes on over the first connection."""
    assert run(address, kind, "default") == ["answered"] * 3
    assert ports[0] == ports[2] != ports[1]


@pytest.mark.parametrize("kind", ["Client", "AsyncClient"])
def test_a_forked_child_does_not_use_its_parents_transport(kind: str, address: str, ports: list[int]) -> None:
    """Its connections cannot be made anew here: nothing is sent, and the error says what to do."""
    before, of_child, after = run(address, kind, "transport")
    assert (before, after, len(ports)) == ("answered", "answered", 2)
    assert "make a client in this process" in of_child
