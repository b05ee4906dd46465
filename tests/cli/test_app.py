"""`sparing --version`, and the list of commands."""

from importlib.metadata import version

from typer.testing import CliRunner

from service.cli.app import app


def test_the_version_is_that_of_the_distribution() -> None:
    """One line, without a home or a command."""
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"sparing {version('sparing')}\n")


def test_every_command_is_listed() -> None:
    """Without a command the help is shown."""
    shown = CliRunner().invoke(app, []).output
    assert all(name in shown for name in ("serve", "demo", "migrate", "calibrate", "keys", "ledger", "schema"))
