"""A backup is put back under real servers: the dataset stays closed until the forgotten charges are burned.

As docs/operations.md tells it, with the commands that stand there.
"""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from service.embedded.home import data_directories, find_home
from tests.e2e.http_calls import QUERY, analyst_of, client, register
from tests.e2e.processes import new_key, served, sparing

pytestmark = pytest.mark.slow

PATIENCE_S = 30.0
COST = 1_374_389_535  # units of a count at sigma 20 for each touched individual


@dataclass(kw_only=True)
class Deployment:
    """A home with a witness elsewhere, and the keys of the clients."""

    home: Path
    witness: Path
    curator_key: str = ""
    analyst_key: str = ""
    asked: int = 0

    @property
    def settings(self) -> dict[str, str]:
        """The environment of every command."""
        return {"SPARING_WITNESS": str(self.witness)}

    @property
    def data(self) -> Path:
        """The database's directory."""
        found = find_home(self.home)
        assert found is not None
        return data_directories(found.state)[0]

    @contextmanager
    def running(self) -> Iterator[str]:
        """`sparing serve`; its URL."""
        with served(self.home, **self.settings) as process:
            yield process.url

    def ledger(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """`sparing ledger`."""
        return sparing("ledger", *arguments, home=self.home, **self.settings)

    def ask(self, url: str) -> httpx.Response:
        """A new query under a new key."""
        self.asked += 1
        with client(url, self.analyst_key) as analyst:
            headers = {"Idempotency-Key": f"k{self.asked}"}
            return analyst.post("/v1/datasets/survey/queries", json=QUERY | {"reuse": False}, headers=headers)

    def spent(self, url: str) -> dict[str, int]:
        """Every individual's spent total, as the curator reads it."""
        with client(url, self.curator_key) as curator:
            rows = curator.get("/v1/datasets/survey/budgets").raise_for_status().json()["items"]
        return {row["key"]: row["spent_units"] for row in rows}


@pytest.fixture
def deployment(home: Path) -> Deployment:
    """A home of this test's own, and a place for its witness."""
    return Deployment(home=home, witness=home.with_name(f"{home.name}-witness"))


def begin(deployment: Deployment, url: str) -> None:
    """Keys, three people, and one answer."""
    deployment.curator_key = new_key(deployment.home, "curator", **deployment.settings)
    register(url, deployment.curator_key)
    deployment.analyst_key = analyst_of(url, deployment.curator_key)
    assert deployment.ask(url).status_code == 200


def copy(source: Path, target: Path) -> None:
    """With owners and modes: the database's server runs under another account."""
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


def met(deployment: Deployment, url: str) -> set[tuple[int, str]]:
    """The statuses of a query, a read, an act and /readyz."""
    ready = httpx.get(f"{url}/readyz")
    with client(url, deployment.curator_key) as curator, client(url, deployment.analyst_key) as analyst:
        replies = [
            deployment.ask(url),
            analyst.post("/v1/datasets/survey/queries/preview", json=QUERY),
            curator.get("/v1/datasets/survey/budgets"),
            curator.post("/v1/datasets/survey/epochs"),
        ]
    said = {(ready.status_code, ready.json()["detail"].removeprefix("Not ready: ").removesuffix("."))}
    return said | {(reply.status_code, reply.json().get("type", "").rpartition(":")[2]) for reply in replies}


def await_readiness(url: str) -> None:
    """A replica that was shut looks again at most once a second."""
    end = time.monotonic() + PATIENCE_S
    while httpx.get(f"{url}/readyz").status_code != 200:
        assert time.monotonic() < end, "it never was ready"
        time.sleep(0.05)


def test_a_restored_database_answers_nothing_until_it_was_reconciled(deployment: Deployment) -> None:
    """One answer is in the backup, three are not: they are burned, and everybody has spent the truth at least."""
    with deployment.running() as url:
        begin(deployment, url)
    data, backup = deployment.data, deployment.home.with_suffix(".backup")
    copy(data, backup)
    with deployment.running() as url:
        assert [deployment.ask(url).status_code for _ in range(3)] == [200] * 3
        truth = deployment.spent(url)
    assert truth == dict.fromkeys(["ann", "bob", "eve"], 4 * COST)
    shutil.rmtree(data)
    copy(backup, data)

    with deployment.running() as url:
        assert met(deployment, url) == {(503, "ledger-rollback")}
        verified = deployment.ledger("verify")
        expected = "survey: 1 entries, 1 answers, 1 acts, 3 accounts verified, 1 findings\n"
        assert (verified.returncode, verified.stdout) == (1, expected)
        assert re.match("survey: witness: has seen sequence 4 under fence 1 .* here are 1 under 1 ", verified.stderr)
        told = deployment.ledger("reconcile", "--dataset", "survey")
        assert (told.returncode, told.stderr) == (1, "sparing: nothing was done yet; add --yes to do it\n")
        assert "survey: to burn: 0.00375" in told.stdout
        assert met(deployment, url) == {(503, "ledger-rollback")}
        done = deployment.ledger("reconcile", "--dataset", "survey", "--yes")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(told.stdout)
        assert "open again at sequence 2, under fence 2" in done.stdout
        await_readiness(url)
        assert deployment.spent(url) == truth
        assert deployment.ask(url).json()["sequence"] == 3
        again = deployment.ledger("verify")
    expected = "survey: 3 entries, 2 answers, 2 acts, 3 accounts verified, 0 findings\n"
    assert (again.returncode, again.stdout) == (0, expected)


def test_a_witness_that_was_deleted_is_not_begun_anew(deployment: Deployment) -> None:
    """The loss is unknown, so an operator has to state it: until then nothing is answered, and nothing is written."""
    with deployment.running() as url:
        begin(deployment, url)
    shutil.rmtree(deployment.witness)
    with deployment.running() as url:
        assert met(deployment, url) == {(503, "witness-lost")}
        assert not deployment.witness.exists()
        asked = deployment.ledger("reconcile", "--dataset", "survey", "--yes")
        assert (asked.returncode, asked.stdout) == (1, "")
        assert "state how much to burn for every individual" in asked.stderr
        assert met(deployment, url) == {(503, "witness-lost")}
        assert not deployment.witness.exists()
        done = deployment.ledger("reconcile", "--dataset", "survey", "--burn-rho", "0.01", "--yes")
        assert (done.returncode, done.stderr) == (0, "")
        await_readiness(url)
        assert min(deployment.spent(url).values()) > COST + 0.01 * 2**40 - 1
        assert deployment.ask(url).json()["sequence"] == 3
        assert list(deployment.witness.glob("survey-*.witness"))
