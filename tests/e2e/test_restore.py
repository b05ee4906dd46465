"""A backup is put back under real servers: the dataset stays closed until the forgotten charges are burned.

As docs/ledger.md tells it, with the commands that stand there.
"""

import re
import shutil
from itertools import count
from pathlib import Path

from tests.e2e.homes import ANSWERS, CHARGE_UNITS, SurveyHome
from tests.e2e.http_calls import DATASET, QUERY, ask, client, get, spent_units
from tests.e2e.processes import refusal, said, served, sparing
from tests.waiting import until

RECONCILE = ["ledger", "reconcile", "--dataset", "survey"]
VISITS = {"kind": "events", "key": "person_id", "columns": {"day": {"type": "integer", "lower": 0, "upper": 9}}}
NUMBERS = count()


def met(home: SurveyHome, url: str) -> set[tuple[int, str]]:
    """The statuses of a query, a read, an act and /readyz."""
    ready = get(f"{url}/readyz")
    with client(url, home.curator_key) as curator, client(url, home.analyst_key) as analyst:
        replies = [
            ask(url, home.analyst_key, f"met-{next(NUMBERS)}"),
            analyst.post("/v1/datasets/survey/queries/preview", json=QUERY),
            curator.get("/v1/datasets/survey/budgets"),
            curator.post("/v1/datasets/survey/epochs"),
        ]
    said = {(ready.status_code, ready.json()["detail"].removeprefix("Not ready: ").removesuffix("."))}
    return said | {(reply.status_code, reply.json().get("type", "").rpartition(":")[2]) for reply in replies}


def is_ready(url: str) -> bool:
    """A replica that was shut looks again at most once a second."""
    return get(f"{url}/readyz").status_code == 200


def test_a_backup_answers_nothing_in_its_home_until_it_was_reconciled(
    answered_home: SurveyHome, tmp_path: Path
) -> None:
    """Two answers and an epoch are not in it: they are burned, and everybody has spent the truth at least."""
    home, key, curator_key = answered_home.path, answered_home.analyst_key, answered_home.curator_key
    backup = tmp_path / "backup"
    with served(home) as running:
        assert "survey: up to sequence 3, with 1 acts\n" in said(sparing("backup", str(backup), home=home))
        assert "is there already" in refusal(sparing("backup", str(backup), home=home))
        assert [ask(running.url, key, name).status_code for name in ("k4", "k5")] == [200] * 2
        with client(running.url, curator_key) as curator:
            assert curator.post("/v1/datasets/survey/epochs").status_code == 201
            assert curator.post("/v1/datasets", json=DATASET | {"name": "town"}).status_code == 201
        truth = spent_units(running.url, curator_key)
        assert "stop the service first" in refusal(sparing("restore", str(backup), "--aside", home=home))
    assert truth == dict.fromkeys(["ann", "bob", "eve"], (ANSWERS + 2) * CHARGE_UNITS)
    assert {path.name for path in backup.iterdir()} == {"database.dump", "backup.json"}
    assert {oct(path.stat().st_mode & 0o777) for path in [backup, *backup.iterdir()]} == {"0o700", "0o600"}
    secret = (home / "pepper").read_text().strip()
    assert all(secret.encode() not in path.read_bytes() for path in backup.iterdir())

    assert "--aside keeps it under another name" in refusal(sparing("restore", str(backup), home=home))
    told = said(sparing("restore", str(backup), "--aside", home=home))
    assert "survey: witnessed and missing: ledger entries 4 to 5, act 2\n" in told
    assert "closed until `sparing ledger reconcile" in told
    with served(home) as running:
        assert met(answered_home, running.url) == {(503, "ledger-rollback")}
        verified = sparing("ledger", "verify", home=home)
        expected = "survey: 3 entries, 3 answers, 1 acts, 3 accounts verified, 1 findings\n"
        assert (verified.returncode, verified.stdout) == (1, expected)
        assert re.match("survey: witness: has seen sequence 5 under fence 1 .* here are 3 under 1 ", verified.stderr)
        planned = sparing(*RECONCILE, home=home)
        assert (planned.returncode, planned.stderr) == (1, "sparing: nothing was done yet; add --yes to do it\n")
        assert "survey: to burn: 0.0025" in planned.stdout
        assert met(answered_home, running.url) == {(503, "ledger-rollback")}
        done = said(sparing(*RECONCILE, "--yes", home=home))
        assert done.startswith(planned.stdout)
        assert "open again at sequence 4, under fence 2" in done
        until(lambda: is_ready(running.url))
        assert spent_units(running.url, curator_key) == truth
        assert ask(running.url, key, "k1").content == answered_home.answers[0]
        assert ask(running.url, key, "k6").json()["sequence"] == 5
        with client(running.url, curator_key) as curator:  # its tables are the service's own again
            tables = {"tables": {**DATASET["tables"], "visits": VISITS}}
            assert curator.patch("/v1/datasets/survey", json=tables).status_code == 200
    assert said(sparing("ledger", "verify", home=home)).startswith("survey: 5 entries, 4 answers, ")


def test_a_witness_that_was_deleted_is_not_begun_anew(answered_home: SurveyHome) -> None:
    """The loss is unknown, so an operator has to state it: until then nothing is answered, and nothing is written."""
    home, witness = answered_home.path, answered_home.path / "witness"
    shutil.rmtree(witness)
    with served(home) as running:
        assert met(answered_home, running.url) == {(503, "witness-lost")}
        assert not witness.exists()
        asked = sparing(*RECONCILE, "--yes", home=home)
        assert (asked.returncode, asked.stdout) == (1, "")
        assert "state how much to burn for every individual" in asked.stderr
        assert met(answered_home, running.url) == {(503, "witness-lost")}
        assert not witness.exists()
        done = sparing(*RECONCILE, "--burn-rho", "0.01", "--yes", home=home)
        assert (done.returncode, done.stderr) == (0, "")
        until(lambda: is_ready(running.url))
        spent = spent_units(running.url, answered_home.curator_key)
        assert min(spent.values()) > ANSWERS * CHARGE_UNITS + 0.01 * 2**40 - 1
        assert ask(running.url, answered_home.analyst_key, "k6").json()["sequence"] == ANSWERS + 2
        assert list(witness.glob("survey-*.witness"))
