"""A byte is flipped in the database while nothing runs: the next start closes that dataset, and serves another.

As docs/operations.md tells it.
"""

from itertools import count

import httpx
import pytest

from tests.e2e.homes import SurveyHome
from tests.e2e.http_calls import CSV, analyst_of, ask, client, get, register
from tests.e2e.processes import served, sparing
from tests.waiting import until

CLOSED = (503, "urn:sparing:problem:ledger-damaged")
DAMAGE = "ledger row 1: its contents do not give its hash"


def flip_a_byte(home: SurveyHome) -> None:
    """In the first answer; doing it twice undoes it."""
    with home.owned() as owner:
        changed = owner.execute(
            'UPDATE ledger SET "values" = set_byte("values", 7, get_byte("values", 7) # 1)'
            " WHERE seq = 1 AND dataset_id = (SELECT id FROM datasets WHERE name = 'survey')"
        )
        assert changed.rowcount == 1


def met(reply: httpx.Response) -> tuple[int, str]:
    """Status, and the type of a problem."""
    return reply.status_code, reply.json().get("type", "")


def test_a_start_closes_a_damaged_dataset(answered_home: SurveyHome, capfd: pytest.CaptureFixture[str]) -> None:
    """Queries, reads and acts are refused; once the row was put right and the service started anew, it is open."""
    home, curator_key, key = answered_home.path, answered_home.curator_key, answered_home.analyst_key
    numbers = count()
    flip_a_byte(answered_home)
    capfd.readouterr()
    with served(home) as damaged:
        # Until its check has ended a dataset is served.
        until(lambda: met(ask(damaged.url, key, f"meanwhile-{next(numbers)}")) == CLOSED)
        assert met(ask(damaged.url, key, "k1")) == CLOSED
        with client(damaged.url, curator_key) as curator:
            replies = [
                curator.post("/v1/datasets/survey/epochs"),
                curator.get("/v1/datasets/survey/budgets"),
                curator.delete("/v1/datasets/survey/individual?individual=ann"),
                curator.post("/v1/datasets/survey/tables/people/rows", content=b"person_id,age\nb,4\n", headers=CSV),
            ]
        assert {met(reply) for reply in replies} == {CLOSED}
        register(damaged.url, curator_key, "other")
        other_key = analyst_of(damaged.url, curator_key, "other")
        assert ask(damaged.url, other_key, "o1", "other").status_code == 200
        ready = {"status": "ready", "closed": {"ledger-damaged": 1}, "datasets": {}, "shards": {}}
        assert get(f"{damaged.url}/readyz").json() == ready
        verified = sparing("ledger", "verify", home=home)
        assert verified.returncode == 1
        assert "survey: ledger row 1: its values do not give its values_digest\n" in verified.stderr
    said = capfd.readouterr().err
    (line,) = [line for line in said.splitlines() if "incident start check" in line]
    assert f"incident start check of dataset 1: {DAMAGE}" in line

    flip_a_byte(answered_home)
    with served(home) as mended:
        assert ask(mended.url, key, "k1").content == answered_home.answers[0]
        assert ask(mended.url, other_key, "o1", "other").status_code == 200
        assert ask(mended.url, key, "k9").status_code == 200
        assert get(f"{mended.url}/readyz").status_code == 200
    assert sparing("ledger", "verify", home=home).returncode == 0
