"""An answer is deleted from the database: `sparing ledger rebuild-answer` puts it back while the service runs.

As docs/operations.md tells it.
"""

from pathlib import Path

import psycopg
import pytest

from service.embedded import EmbeddedPostgres
from service.settings import Settings
from tests.e2e.homes import SurveyHome
from tests.e2e.http_calls import ask
from tests.e2e.processes import served, sparing
from tests.e2e.surveys import spent_units

pytestmark = pytest.mark.slow


def delete_the_answer(home: Path) -> None:
    """With an owner's rights, while nothing runs."""
    with (
        EmbeddedPostgres(Settings.of({}, home=home).home) as server,
        psycopg.connect(server.url_of("sparing")) as owner,
    ):
        owner.execute("SET session_replication_role = replica")
        assert owner.execute("DELETE FROM answers WHERE idempotency_key = 'k1'").rowcount == 1


def test_a_deleted_answer_is_put_back_while_the_service_runs(survey_home: SurveyHome) -> None:
    """A wrong key gets nothing; then the key replays the same bytes, no individual is charged, and all is sound."""
    home, curator_key, analyst_key = survey_home.path, survey_home.curator_key, survey_home.analyst_key
    with served(home) as first:
        answered = ask(first.url, analyst_key, "k1")
        assert answered.status_code == 200
        before = spent_units(first.url, curator_key)
    delete_the_answer(home)

    command = ["ledger", "rebuild-answer", "--dataset", "survey", "--sequence", "1", "--key"]
    with served(home) as running:
        found = sparing("ledger", "verify", home=home)
        assert (found.returncode, found.stderr) == (
            1,
            "survey: ledger row 1: the answer to it is missing from answers\n",
        )
        wrong = sparing(*command, "k2", home=home)
        assert (wrong.returncode, wrong.stderr) == (1, "sparing: key: ledger row 1 was not asked under this key\n")
        for done in ("is there again", "was there already"):
            right = sparing(*command, "k1", home=home)
            assert right.returncode == 0, right.stderr
            assert right.stdout == f"survey: the answer to ledger row 1 {done}; nothing was charged\n"
        replayed = ask(running.url, analyst_key, "k1")
        assert (replayed.status_code, replayed.content) == (200, answered.content)
        assert spent_units(running.url, curator_key) == before
        assert sparing("ledger", "verify", home=home).returncode == 0
