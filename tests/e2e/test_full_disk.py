"""The disk under the embedded Postgres is full: the service is not ready, says so once, and goes on once there is room.

The disk is a file system of its own in memory, really full: what fails is the kernel's own ENOSPC.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.full_disks import CannotMount, fill, mounted_disk
from tests.e2e.homes import Homes, SurveyHome
from tests.e2e.http_calls import asked, client, get
from tests.e2e.processes import served, sparing
from tests.waiting import until


@pytest.fixture
def small_disk(homes: Homes) -> Iterator[Path]:
    """The place of a home on a small disk of its own."""
    try:
        with mounted_disk(homes.missing()) as place:
            yield place
    except CannotMount:
        pytest.skip("no file system may be mounted here: it takes root, and a kernel that lets it")


def test_a_full_disk_is_told_once_and_nothing_is_lost(
    small_disk: Path, survey_home: SurveyHome, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Queries get 503, /readyz names the disk, the log has one line; with room the same keys fetch their answers."""
    subprocess.run(["cp", "-a", f"{survey_home.path}/.", str(small_disk)], check=True)
    witness = tmp_path / "witness"  # on another disk, as it should be: only the database's is full
    with (
        served(small_disk, SPARING_WITNESS=str(witness)) as running,
        client(running.url, survey_home.analyst_key) as analyst,
    ):

        def ask(number: int) -> httpx.Response:
            return asked(analyst, f"k{number}")

        def readiness() -> tuple[int, str]:
            reply = analyst.get("/readyz")
            return reply.status_code, reply.json().get("detail", "")

        assert ask(0).status_code == 200
        ballast = fill(small_disk)
        replies = [ask(number) for number in range(1, 60)]
        refused = [n for n, reply in enumerate(replies, start=1) if reply.status_code == 503]
        assert refused, "the disk is not full enough"
        until(lambda: readiness() == (503, "Not ready: database-disk-full."))
        assert get(f"{running.url}/livez").status_code == 200
        ballast.unlink()
        until(lambda: readiness()[0] == 200)
        answers = [ask(number) for number in range(60)]
        assert {reply.status_code for reply in answers} == {200}
        released = [reply.content for reply in replies if reply.status_code == 200]
        assert released == [answers[n].content for n in range(1, 60) if n not in refused]
        verified = sparing("ledger", "verify", home=small_disk, SPARING_WITNESS=str(witness))
        assert verified.returncode == 0
        assert verified.stdout.startswith("survey: 60 entries, 60 answers, ")
    said = [line for line in capfd.readouterr().err.splitlines() if "database" in line]
    assert [line for line in said if "refuses to write: database-disk-full" in line] == said[:1]
    assert "the database writes again; " in said[1]
    assert len(said) == 2
