"""`sparing ledger prune` beside a running service, as docs/operations.md tells it."""

import httpx
import pytest

from tests.e2e.homes import SurveyHome
from tests.e2e.http_calls import QUERY, client
from tests.e2e.processes import served, sparing

pytestmark = pytest.mark.slow

PRUNE = ["ledger", "prune", "--dataset", "survey", "--before"]


def ask(url: str, analyst_key: str, key: str) -> httpx.Response:
    """One query, charged anew for every key."""
    with client(url, analyst_key) as analyst:
        query = {**QUERY, "reuse": False}
        return analyst.post("/v1/datasets/survey/queries", json=query, headers={"Idempotency-Key": key})


def test_a_ledger_is_pruned_beside_the_service(survey_home: SurveyHome) -> None:
    """After a stop checkpoints have come to the end; the service goes on, keys replay, and all is sound."""
    home, curator_key, analyst_key = survey_home.path, survey_home.curator_key, survey_home.analyst_key
    with served(home) as first:
        answered = [ask(first.url, analyst_key, f"k{number}") for number in range(3)]
        assert {each.status_code for each in answered} == {200}
    with served(home) as running:
        assert ask(running.url, analyst_key, "k3").status_code == 200
        done = sparing(*PRUNE, "3", home=home)
        assert (done.returncode, done.stdout, done.stderr) == (
            0,
            "survey: pruned up to sequence 2; before, up to 0\n",
            "",
        )
        assert ask(running.url, analyst_key, "k4").status_code == 200
        assert ask(running.url, analyst_key, "k0").content == answered[0].content
        with client(running.url, curator_key) as curator:
            acts = curator.get("/v1/datasets/survey/acts").raise_for_status().json()["items"]
        assert [(act["act"], act["detail"]) for act in acts[:1]] == [("prune", {"seq": 2})]
        later = sparing(*PRUNE, "2199-01-01", home=home)
        assert later.stdout == "survey: pruned up to sequence 3; before, up to 2\n"
        assert sparing("ledger", "verify", home=home).returncode == 0


SENSELESS = {
    "yesterday": "before must be a sequence, or a date or time such as 2026-01-31 or 2026-01-31T12:00",
    "1999-12-31": "before: no checkpoint covers an entry that could be pruned",
}


def test_a_bound_that_makes_no_sense_is_refused_in_one_line(survey_home: SurveyHome) -> None:
    """And nothing is pruned."""
    with served(survey_home.path):
        for before, said in SENSELESS.items():
            refused = sparing(*PRUNE, before, home=survey_home.path)
            assert (refused.returncode, refused.stderr) == (1, f"sparing: {said}\n")
