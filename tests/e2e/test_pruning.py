"""`sparing ledger prune` beside a running service, as docs/ledger.md tells it."""

from collections.abc import Iterator

import pytest

from tests.e2e.homes import Homes, SurveyHome
from tests.e2e.http_calls import ask, client
from tests.e2e.processes import Served, refusal, served, sparing

pytestmark = pytest.mark.slow

PRUNE = ["ledger", "prune", "--dataset", "survey", "--before"]


@pytest.fixture(scope="module")
def survey(homes: Homes) -> SurveyHome:
    """A home whose last end has left checkpoints up to the third answer."""
    return homes.answered()


@pytest.fixture(scope="module")
def running(survey: SurveyHome) -> Iterator[Served]:
    """The service."""
    with served(survey.path) as opened:
        yield opened


def test_a_ledger_is_pruned_beside_the_service(survey: SurveyHome, running: Served) -> None:
    """After a stop checkpoints have come to the end; the service goes on, keys replay, and all is sound."""
    home, analyst_key = survey.path, survey.analyst_key
    nothing = sparing(*PRUNE, "1999-12-31", home=home)
    assert refusal(nothing) == "sparing: before: no checkpoint covers an entry that could be pruned\n"
    assert ask(running.url, analyst_key, "k4").status_code == 200
    done = sparing(*PRUNE, "3", home=home)
    assert (done.returncode, done.stdout, done.stderr) == (0, "survey: pruned up to sequence 2; before, up to 0\n", "")
    assert ask(running.url, analyst_key, "k5").status_code == 200
    assert ask(running.url, analyst_key, "k1").content == survey.answers[0]
    with client(running.url, survey.curator_key) as curator:
        acts = curator.get("/v1/datasets/survey/acts").raise_for_status().json()["items"]
    assert [(act["act"], act["detail"]) for act in acts[:1]] == [("prune", {"seq": 2})]
    later = sparing(*PRUNE, "2199-01-01", home=home)
    assert later.stdout == "survey: pruned up to sequence 3; before, up to 2\n"
    assert sparing("ledger", "verify", home=home).returncode == 0


@pytest.mark.usefixtures("running")
def test_a_bound_that_makes_no_sense_is_refused_in_one_line(survey: SurveyHome) -> None:
    """The refusal names the bound, and the forms that it may have."""
    refused = sparing(*PRUNE, "yesterday", home=survey.path)
    told = "before must be a sequence, or a date or time such as 2026-01-31 or 2026-01-31T12:00"
    assert refusal(refused) == f"sparing: {told}\n"
