"""Workers as /proc shows them: which processes they are, and which of them holds the other end of a connection."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import psycopg

from service.embedded import EmbeddedPostgres
from tests.e2e.processes import children_of
from tests.waiting import until

LISTENING = "0A"
OWNER = """
SELECT o.url FROM dataset_owners o JOIN datasets d ON d.id = o.dataset_id
WHERE d.name = %s AND o.expires_at > clock_timestamp() - %s * interval '1 second'
"""
PAST_S = 1.0
"""After the end of a lease; by then every process knows of it."""


def workers_of(parent: int) -> set[int]:
    """The pids of a parent's workers."""
    return {pid for pid, _ in children_of(parent) if b"spawn_main" in _command_of(pid)}


def server_of(client: httpx.Client, parent: int) -> int:
    """The pid of the worker that answers a client, which keeps one connection."""
    alive = client.get("/livez")
    port: int = alive.extensions["network_stream"].get_extra_info("client_addr")[1]
    (server,) = _holders(parent, {row[9] for row in _connections() if _port(row[2]) == port})
    return server


def await_end_of_lease(home: Path, dataset: str) -> None:
    """Wait until the lease of the worker that owned a dataset has run out a while ago."""
    with psycopg.connect(str(EmbeddedPostgres(home).attach()), autocommit=True) as connection:
        until(lambda: connection.execute(OWNER, [dataset, PAST_S]).fetchone() is None)


def owner_of(home: Path, parent: int, dataset: str = "survey") -> int:
    """The pid of the worker that owns a dataset, by the address at which it can be reached."""
    with psycopg.connect(str(EmbeddedPostgres(home).attach())) as connection:
        row = connection.execute(OWNER, [dataset, 0.0]).fetchone()
    if row is None:
        raise LookupError("no worker owns the dataset")
    url = str(row[0])
    port = int(url.rpartition(":")[2])
    listening = {row[9] for row in _connections() if row[3] == LISTENING and _port(row[1]) == port}
    (owner,) = _holders(parent, listening)
    return owner


@contextmanager
def clients_of_all(parent: int, connect: Callable[[], httpx.Client]) -> Iterator[dict[int, httpx.Client]]:
    """A client of each worker: connections are made until every worker has taken one."""
    clients: dict[int, httpx.Client] = {}
    with ExitStack() as connected:

        def is_complete() -> bool:
            client = connected.enter_context(connect())
            clients.setdefault(server_of(client, parent), client)
            return set(clients) == workers_of(parent)

        until(is_complete)
        yield clients


def _connections() -> list[list[str]]:
    """The kernel's table of TCP: local and remote address, state, ..., inode."""
    return [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]


def _port(address: str) -> int:
    return int(address.partition(":")[2], 16)


def _holders(parent: int, inodes: set[str]) -> list[int]:
    """The workers that have one of these sockets open."""
    sockets = {f"socket:[{inode}]" for inode in inodes}
    return [pid for pid in workers_of(parent) if sockets & _open_in(pid)]


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
