"""A home whose pepper was replaced: every command says so in one line, and nothing is answered, charged or written."""

from tests.e2e.homes import ANSWERS, CHARGE_UNITS, Homes
from tests.e2e.http_calls import ask, spent_units
from tests.e2e.processes import served, sparing, sparing_apart

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


OTHER = "5e" * 32


def test_another_pepper_is_refused_and_the_first_goes_on(homes: Homes) -> None:
    """By a file in the home or by a setting, at a start and beside a service that runs; then all is as before."""
    answered_home = homes.answered()
    home, file = answered_home.path, answered_home.path / "pepper"
    ours = file.read_text()

    file.write_text(OTHER + "\n")
    for command in COMMANDS:
        run = sparing_apart if command[0] == "serve" else sparing
        refused = run(*command, home=home)
        assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", REFUSED), command
    several = sparing_apart("serve", "--port", "0", "--workers", "2", home=home)
    assert (several.returncode, several.stdout) == (1, "")
    assert set(several.stderr.splitlines(keepends=True)) == {REFUSED, "sparing: a worker could not start\n"}

    file.write_text(ours[:-9] + "\n")
    cut = sparing("keys", "list", home=home)
    assert (cut.returncode, cut.stderr) == (1, f"sparing: the pepper in {file} must be 64 hexadecimal digits\n")

    file.write_text(ours)
    with served(home) as running:
        beside = sparing("ledger", "verify", home=home, SPARING_PEPPER=OTHER)
        assert (beside.returncode, beside.stdout, beside.stderr) == (1, "", REFUSED)
        replayed = ask(running.url, answered_home.analyst_key, "k1")
        assert (replayed.status_code, replayed.content) == (200, answered_home.answers[0])
        spent = spent_units(running.url, answered_home.curator_key)
        assert set(spent.values()) == {ANSWERS * CHARGE_UNITS}
        assert sparing("ledger", "verify", home=home).returncode == 0
