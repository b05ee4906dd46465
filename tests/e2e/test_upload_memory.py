"""Uploads to a real server: bodies that stand for gigabytes, and a body beside a request for another protocol."""

import gzip
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from service.embedded.process import arguments_of
from tests.e2e.homes import Homes, SurveyHome
from tests.e2e.http_calls import client
from tests.e2e.processes import Served, children_of, peak_bytes, served
from tests.engine.ingest.bombs import BOMBS, DATASET, PATH
from tests.waiting import PATIENCE_S, until

MEMORY_BYTES = 2**30
BASE_BYTES = 160 * 2**20
"""The memory of the process that forks decoders, with the libraries of the tests, and of decoders without work."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """A server with a dataset, and its curator."""

    running: Served
    key: str
    curator: httpx.Client

    def rows(self) -> int:
        """The number of visits that are stored."""
        return int(self.curator.get("/v1/datasets/bombs").json()["rows"]["visits"])


@pytest.fixture(scope="module")
def site(homes: Homes) -> Iterator[Site]:
    """One server for all."""
    home: SurveyHome = homes.surveyed()
    with (
        served(home.path, SPARING_MEMORY_BYTES_MAX=str(MEMORY_BYTES)) as running,
        client(running.url, home.curator_key) as curator,
    ):
        assert curator.post("/v1/datasets", json=DATASET).status_code == 201
        yield Site(running=running, key=home.curator_key, curator=curator)


@pytest.mark.parametrize(("name", "is_packed"), [("rows_of_one_key", False), ("runs_of_300_million", True)])
def test_a_body_that_stands_for_gigabytes_is_refused_by_a_server_that_stays_small(
    site: Site, name: str, is_packed: bool
) -> None:
    """422 that says what is too large, nothing stored, the same connection usable, no memory kept.

    A decoder refuses every kind of body in `tests/store/decoder`.
    """
    pid, bomb = site.running.process.pid, BOMBS[name]
    stored = site.rows()
    body = bomb.body()
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")  # forget the peak
    before = peak_bytes(pid)
    headers = {"Content-Type": bomb.content_type, **({"Content-Encoding": "gzip"} if is_packed else {})}
    answer = site.curator.post(PATH, content=gzip.compress(body) if is_packed else body, headers=headers)
    assert answer.status_code == 422
    assert bomb.speaks_of in answer.json()["errors"][0]["message"]
    assert peak_bytes(pid) - before < 64 * 2**20
    assert site.rows() == stored


def test_many_at_once_keep_within_the_memory_of_uploads(site: Site) -> None:
    """Their decoders' resident memory, summed while they work; each is refused for its size, or waits for its turn."""
    bomb = BOMBS["rows_of_one_key"]
    sizes: list[int] = []
    body, headers = bomb.body(), {"Content-Type": bomb.content_type}
    with ThreadPoolExecutor(8) as pool:
        sent = [pool.submit(site.curator.post, PATH, content=body, headers=headers) for _ in range(8)]

        def is_measured_to_the_end() -> bool:
            sizes.append(decoders_bytes(site.running.process.pid))
            return all(each.done() for each in sent)

        until(is_measured_to_the_end)
    assert {each.result().status_code for each in sent} <= {422, 429}
    assert 0 < max(sizes) < MEMORY_BYTES // 2 + BASE_BYTES


def test_a_body_beside_a_request_for_another_protocol_is_stored_or_refused(site: Site) -> None:
    """A request of curl with --http2 is never taken for one without rows."""
    parts = urlsplit(site.running.url)
    body, stored = b"id,item\nann,1\n", site.rows()
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {site.key}\r\n"
        "Content-Type: text/csv\r\n"
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE_S) as wire:
        wire.sendall(head.encode() + body)
        answer = wire.recv(65_536).decode()
    assert (int(answer.split()[1]), site.rows() - stored) in {(200, 1), (400, 0), (422, 0)}


def decoders_bytes(pid: int) -> int:
    """The memory of all decoders of a server, where shared pages count once."""
    descendants = [each for each, _ in children_of(pid)]
    return sum(shared_bytes(each) for each in descendants if any("fork_server" in word for word in arguments_of(each)))


def shared_bytes(pid: int) -> int:
    """The memory of a process with its part of shared pages; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
