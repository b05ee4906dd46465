"""Exports of a real server: many at once in bounded memory, refused beyond it, ended with their clients."""

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest

from service.reads.account_files import GROUP_ROWS_MAX
from service.writer.admission.transfers import EXPORT_BYTES
from tests.e2e.homes import Homes
from tests.e2e.http_calls import CSV, DATASET, analyst_of, ask, client
from tests.e2e.processes import Served, new_key, peak_bytes, served
from tests.waiting import until

PEOPLE = 135_000
AT_ONCE = 3
"""The exports of one curator that are admitted under a bound of twice as many."""
PATH = "/v1/datasets/survey/budgets/export"
PARQUET = {"Accept": "application/vnd.apache.parquet"}


@dataclass(frozen=True, kw_only=True)
class Site:
    """A server with a dataset of many people, its curator, and the key of an analyst."""

    running: Served
    curator: httpx.Client
    analyst_key: str


@pytest.fixture(scope="module")
def site(homes: Homes) -> Iterator[Site]:
    """One server for all."""
    home = homes.begun()
    rows = b"person_id,age\n" + b"".join(b"person-%06d,%d\n" % (number, number % 90) for number in range(PEOPLE))
    with (
        served(home, SPARING_MEMORY_BYTES_MAX=str(2 * 2 * AT_ONCE * EXPORT_BYTES)) as running,
        client(running.url, new_key(home, "curator")) as curator,
    ):
        assert curator.post("/v1/datasets", json={**DATASET, "capacity": PEOPLE}).status_code == 201
        sent = curator.post("/v1/datasets/survey/tables/people/rows", content=rows, headers=CSV)
        assert sent.status_code == 200, sent.text
        key = str(curator.headers["authorization"]).removeprefix("Bearer ")
        yield Site(running=running, curator=curator, analyst_key=analyst_of(running.url, key))


def test_many_exports_at_once_keep_within_their_memory(site: Site) -> None:
    """By the peak of the resident memory of the server, which answers a query meanwhile; every account is in each."""
    pid = site.running.process.pid
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")  # forget the peak
    before = peak_bytes(pid)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        sent = [pool.submit(site.curator.get, PATH, headers=PARQUET) for _ in range(AT_ONCE)]
        assert ask(site.running.url, site.analyst_key, "meanwhile").status_code == 200
        assert not any(each.done() for each in sent)
        files = [each.result() for each in sent]
    assert [each.status_code for each in files] == [200] * AT_ONCE
    assert peak_bytes(pid) - before < AT_ONCE * EXPORT_BYTES
    for each in files:
        found = pq.ParquetFile(io.BytesIO(each.content))
        groups = [found.metadata.row_group(number).num_rows for number in range(found.metadata.num_row_groups)]
        assert groups == [GROUP_ROWS_MAX, GROUP_ROWS_MAX, PEOPLE - 2 * GROUP_ROWS_MAX]
        assert found.read(["key"]).column("key")[PEOPLE - 1].as_py() == f"person-{PEOPLE - 1:06d}"


def test_an_export_beyond_the_memory_is_refused_until_a_client_goes_away(site: Site) -> None:
    """429 with Retry-After while clients hold their files open without reading; one that leaves makes room."""
    with ExitStack() as stack:
        first = stack.enter_context(site.curator.stream("GET", PATH))
        others = [stack.enter_context(site.curator.stream("GET", PATH)) for _ in range(AT_ONCE - 1)]
        assert [each.status_code for each in (first, *others)] == [200] * AT_ONCE
        refused = site.curator.get(PATH)
        assert (refused.status_code, refused.json()["type"]) == (429, "urn:sparing:problem:busy")
        assert int(refused.headers["retry-after"]) >= 1
        first.close()
        until(lambda: _begins(site.curator))


def _begins(curator: httpx.Client) -> bool:
    with curator.stream("GET", PATH) as answer:
        return answer.status_code == 200
