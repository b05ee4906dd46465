"""A home whose pepper was replaced: every command says so in one line, and nothing is answered, charged or written."""

import secrets

import pytest

from tests.e2e.homes import SurveyHome
from tests.e2e.http_calls import ask
from tests.e2e.processes import served, sparing
from tests.e2e.surveys import spent_units

pytestmark = pytest.mark.slow

REFUSED = (
    "sparing: the pepper (SPARING_PEPPER, or the file pepper in the home) is not the one that this database was begun"
    " with: put that one back\n"
)
COMMANDS = [
    ("serve", "--port", "0"),
    ("ledger", "verify"),
    ("ledger", "reconcile", "--dataset", "survey", "--yes"),
    ("ledger", "rebuild-answer", "--dataset", "survey", "--sequence", "1", "--key", "k1"),
    ("keys", "create", "--role", "curator", "--name", "eve"),
]


def test_another_pepper_is_refused_and_the_first_goes_on(survey_home: SurveyHome) -> None:
    """By a file in the home or by a setting, at a start and beside a service that runs; then all is as before."""
    home, curator_key, analyst_key = survey_home.path, survey_home.curator_key, survey_home.analyst_key
    with served(home) as first:
        answered = ask(first.url, analyst_key, "k1")
        before = spent_units(first.url, curator_key)
        beside = sparing("ledger", "verify", home=home, SPARING_PEPPER=secrets.token_hex(32))
        assert (beside.returncode, beside.stdout, beside.stderr) == (1, "", REFUSED)
    file = home / "pepper"
    ours = file.read_text()

    file.write_text(secrets.token_hex(32) + "\n")
    for command in COMMANDS:
        refused = sparing(*command, home=home)
        assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", REFUSED), command
    several = sparing("serve", "--port", "0", "--workers", "2", home=home)
    assert (several.returncode, several.stdout) == (1, "")
    assert set(several.stderr.splitlines(keepends=True)) == {REFUSED, "sparing: a worker could not start\n"}

    file.write_text(ours[:-9] + "\n")
    cut = sparing("serve", "--port", "0", home=home)
    assert (cut.returncode, cut.stderr) == (1, f"sparing: the pepper in {file} must be 64 hexadecimal digits\n")

    file.write_text(ours)
    with served(home) as again:
        replayed = ask(again.url, analyst_key, "k1")
        assert (replayed.status_code, replayed.content) == (200, answered.content)
        assert spent_units(again.url, curator_key) == before
        assert sparing("ledger", "verify", home=home).returncode == 0
