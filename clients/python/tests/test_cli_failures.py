"""Failures of `sparing-client`: each has its exit status, and its reason on standard error."""

import io
import re

import pytest

from clients.python.tests.command_runs import COUNT, Run
from sparing._cli import main
from sparing.testing import FakeService


class Terminal(io.StringIO):
    """Standard input that nothing is redirected to."""

    def isatty(self) -> bool:
        return True


def test_a_refusal_names_the_fields(run: Run) -> None:
    """Status 1; the title, then each field, and the request to quote."""
    told = run("query", "shop", "--sigma", "3", stdin='{"select": [{"sum": {"column": "agee"}}]}')
    assert (told.status, told.out) == (1, "")
    title, *fields = told.err.splitlines()
    assert title == "422 The request is not valid."
    assert " ".join(fields).split("?")[0].split() == (
        "select[0].sum.column: there is no column 'agee' in this table; did you mean 'age'".split()
    )
    assert "--idempotency-key" not in told.err


def test_a_refusal_has_its_detail(run: Run, fake: FakeService) -> None:
    """The detail is shown where it says more than the title."""
    environ = {"SPARING_URL": fake.url, "SPARING_API_KEY": fake.add_analyst(allowance_rho="0.0001")}
    told = run("query", "shop", stdin=COUNT, environ=environ)
    assert told.status == 1
    assert re.search(r"^403 The query's worst-case cost.*\n  The query may cost rho 0\.00125", told.err)
    told = run("show", "shop", environ={"SPARING_URL": fake.url, "SPARING_API_KEY": "wrong"})
    assert (told.status, told.err.splitlines()[0]) == (1, "401 A valid API key is required.")


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_service_that_is_away_has_a_status_of_its_own(run: Run, fake: FakeService, status: int) -> None:
    """After all tries; a query tells its key."""
    fake.refuse(status, "unavailable", detail="The database is away.", times=5)
    told = run("query", "shop", stdin=COUNT)
    assert told.status == 3
    assert "The database is away." in told.err
    assert "--idempotency-key" in told.err


def test_an_unreachable_service(run: Run, fake: FakeService) -> None:
    """Names the address."""
    fake.break_connection(times=5)
    told = run("datasets")
    assert told.status == 3
    assert told.err == f"No reply from {fake.url}/v1/datasets: the fake service is unreachable\n"


@pytest.mark.parametrize(
    ("words", "stdin", "message"),
    [
        (["query", "shop"], "", "standard input is not JSON at line 1, column 1"),
        (["query", "shop"], "[]", "the query must be an object"),
        (["query", "shop"], '{"selec": []}', "the query has no member 'selec'; it may have from, group_by"),
        (["query", "shop"], '{"version": 2}', "version must be 1"),
        (["query", "shop"], '{"select": {}}', "select must be a list"),
        (["query", "shop"], '{"noise": {"sigm": 1}}', "noise has no member 'sigm'"),
        (["query", "shop"], "{}", "give --sigma, --rho, --share, --half-width or --scale, or a noise in the document"),
        (["query", "shop", "--sigma", "1", "--rho", "1"], "{}", "give exactly one of sigma, rho"),
        (["query", "shop", "--sigma", "1", "--confidence", "0.9"], "{}", "confidence goes with half_width"),
        (["query", "shop", "nowhere.json"], "", "nowhere.json: No such file"),
        (["query", "shop", "x.json", "--sql", "SELECT 1"], "", "give a file or --sql, not both"),
        (["query", "shop", "--sql", "SELECT COUNT(*) FROM people"], "", "give --sigma, --rho"),
        (["query", "shop", "--sql", "SELECT 1", "--sigma", "1"], "", "name the table: FROM people"),
    ],
)
def test_a_wrong_command_sends_nothing(run: Run, fake: FakeService, words: list[str], stdin: str, message: str) -> None:
    """Status 2, and the fault on standard error."""
    told = run(*words, stdin=stdin)
    assert (told.status, told.out, fake.requests) == (2, "", [])
    assert told.err.startswith("sparing-client query: ")
    assert message in told.err


def test_a_terminal_is_not_waited_for(run: Run) -> None:
    """Nothing would come."""
    told = run("query", "shop", "--sigma", "1", stdin=Terminal())
    assert (told.status, "on standard input" in told.err) == (2, True)


def test_address_and_key_are_needed(run: Run) -> None:
    """The address may be an option, the key may not."""
    assert "give --url, or set SPARING_URL" in run("datasets", environ={}).err
    told = run("datasets", "--url", "http://x", environ={})
    assert (told.status, "set SPARING_API_KEY" in told.err) == (2, True)


@pytest.mark.parametrize("number", ["1_0", " 5 ", "+5", "\u0661", "nan", ""])
@pytest.mark.parametrize("option", ["--sigma", "--rho", "--share", "--scale", "--timeout", "--rows"])
def test_a_number_that_may_be_misread_is_refused(option: str, number: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Python's own functions would read most of them."""
    with pytest.raises(SystemExit) as ended:
        main(["query", "shop", f"{option}={number}"])
    assert ended.value.code == 2
    assert option in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["ask"], ["query"], ["datasets", "--api-key", "k"], ["completion", "tcsh"]])
def test_unknown_words_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """By the parser, with status 2; a key is no option."""
    with pytest.raises(SystemExit) as exit_:
        main(words)
    assert exit_.value.code == 2
    assert "usage: sparing-client" in capsys.readouterr().err
