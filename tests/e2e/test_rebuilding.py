"""An answer is deleted from the database: `sparing ledger rebuild-answer` puts it back while the service runs.

As docs/ledger.md tells it.
"""

import pytest

from tests.e2e.homes import SurveyHome
from tests.e2e.http_calls import ask, spent_units
from tests.e2e.processes import served, sparing

pytestmark = pytest.mark.slow

REBUILD = ["ledger", "rebuild-answer", "--dataset", "survey", "--sequence", "1", "--no-reuse", "--key"]


def test_a_deleted_answer_is_put_back_while_the_service_runs(answered_home: SurveyHome) -> None:
    """A wrong key gets nothing; then the key replays the same bytes, no individual is charged, and all is sound."""
    home, curator_key = answered_home.path, answered_home.curator_key
    with answered_home.owned() as owner:
        assert owner.execute("DELETE FROM answers WHERE idempotency_key = 'k1'").rowcount == 1

    with served(home) as running:
        before = spent_units(running.url, curator_key)
        found = sparing("ledger", "verify", home=home)
        assert found.returncode == 1
        assert found.stdout.endswith(", 1 findings\n")
        assert "survey: ledger row 1: the answer to it is missing from answers\n" in found.stderr
        wrong = sparing(*REBUILD, "k2", home=home)
        assert (wrong.returncode, wrong.stderr) == (1, "sparing: key: ledger row 1 was not asked under this key\n")
        for done in ("is there again", "was there already"):
            right = sparing(*REBUILD, "k1", home=home)
            assert right.returncode == 0, right.stderr
            assert right.stdout == f"survey: the answer to ledger row 1 {done}; nothing was charged\n"
        replayed = ask(running.url, answered_home.analyst_key, "k1")
        assert (replayed.status_code, replayed.content) == (200, answered_home.answers[0])
        assert spent_units(running.url, curator_key) == before
        assert sparing("ledger", "verify", home=home).returncode == 0
