"""`sparing ledger prune` beside a running service, as docs/ledger.md tells it."""

import pytest

from tests.e2e.homes import SurveyHome
from tests.e2e.http_calls import ask, client
from tests.e2e.processes import refusal, served, sparing

pytestmark = pytest.mark.slow

PRUNE = ["ledger", "prune", "--dataset", "survey", "--before"]


def test_a_ledger_is_pruned_beside_the_service(answered_home: SurveyHome) -> None:
    """After a stop checkpoints have come to the end; the service goes on, keys replay, and all is sound.

    A bound that makes no sense is refused with the forms that it may have.
    """
    home, analyst_key = answered_home.path, answered_home.analyst_key
    forms = "before must be a sequence, or a date or time such as 2026-01-31 or 2026-01-31T12:00"
    with served(home) as running:
        assert refusal(sparing(*PRUNE, "yesterday", home=home)) == f"sparing: {forms}\n"
        nothing = sparing(*PRUNE, "1999-12-31", home=home)
        assert refusal(nothing) == "sparing: before: no checkpoint covers an entry that could be pruned\n"
        assert ask(running.url, analyst_key, "k4").status_code == 200
        done = sparing(*PRUNE, "3", home=home)
        pruned = "survey: pruned up to sequence 2; before, up to 0\n"
        assert (done.returncode, done.stdout, done.stderr) == (0, pruned, "")
        assert ask(running.url, analyst_key, "k5").status_code == 200
        assert ask(running.url, analyst_key, "k1").content == answered_home.answers[0]
        with client(running.url, answered_home.curator_key) as curator:
            acts = curator.get("/v1/datasets/survey/acts").raise_for_status().json()["items"]
        assert [(act["act"], act["detail"]) for act in acts[:1]] == [("prune", {"seq": 2})]
        later = sparing(*PRUNE, "2199-01-01", home=home)
        assert later.stdout == "survey: pruned up to sequence 3; before, up to 2\n"
        assert sparing("ledger", "verify", home=home).returncode == 0
