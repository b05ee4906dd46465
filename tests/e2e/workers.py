"""Workers as /proc shows them: which processes they are, and which of them holds the other end of a connection."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import psycopg

from service.embedded import attach_postgres
from tests.e2e.processes import children_of

PATIENCE_S = 60
LISTENING = "0A"


def workers_of(parent: int) -> set[int]:
    """The pids of a parent's workers."""
    return {pid for pid, _ in children_of(parent) if b"spawn_main" in _command_of(pid)}


def server_of(client: httpx.Client, parent: int) -> int:
    """The pid of the worker that answers a client, which keeps one connection."""
    alive = client.get("/livez")
    port: int = alive.extensions["network_stream"].get_extra_info("client_addr")[1]
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if int(row[2].partition(":")[2], 16) == port}
    (server,) = [pid for pid in workers_of(parent) if sockets & _open_in(pid)]
    return server


def owner_of(home: Path, parent: int) -> int:
    """The pid of the worker that owns the one dataset of a home, by the address at which it can be reached."""
    with psycopg.connect(str(attach_postgres(home))) as connection:
        row = connection.execute("SELECT url FROM dataset_owners WHERE expires_at > clock_timestamp()").fetchone()
    if row is None:
        raise LookupError("no worker owns the dataset")
    port = int(row[0].rpartition(":")[2])
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    doors = {f"socket:[{row[9]}]" for row in rows if row[3] == LISTENING and int(row[1].partition(":")[2], 16) == port}
    (owner,) = [pid for pid in workers_of(parent) if doors & _open_in(pid)]
    return owner


@contextmanager
def clients_of_all(parent: int, connect: Callable[[], httpx.Client]) -> Iterator[dict[int, httpx.Client]]:
    """A client of each worker: connections are made until every worker has taken one."""
    clients: dict[int, httpx.Client] = {}
    deadline = time.monotonic() + PATIENCE_S
    with ExitStack() as connected:
        while set(clients) != workers_of(parent):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{workers_of(parent) - set(clients)} take no connection")
            client = connected.enter_context(connect())
            clients.setdefault(server_of(client, parent), client)
        yield clients


def await_that(happens: Callable[[], bool]) -> None:
    """Wait until it does; TimeoutError when it does not."""
    deadline = time.monotonic() + PATIENCE_S
    while not happens():
        if time.monotonic() > deadline:
            raise TimeoutError("it does not happen")
        time.sleep(0.02)


def _command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _open_in(pid: int) -> set[str]:
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.add(str(entry.readlink()))
        except OSError:
            continue  # it was closed since
    return found
