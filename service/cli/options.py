"""Options and endings that all commands share."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, Optional

import typer

if TYPE_CHECKING:
    from service.settings import Settings

__all__ = ["Home", "fail", "settings_of"]

Home = Annotated[
    Optional[Path],  # noqa: UP045 - typer reads it at run time
    typer.Option(help="The home of this deployment; by default SPARING_HOME, else ~/.local/share/sparing."),
]


def settings_of(home: Path | None) -> "Settings":
    """The settings of the environment and of a home that was named; ends the command where they make no sense."""
    from service.settings import Settings, SettingsError

    try:
        return Settings.of(os.environ, home=home)
    except SettingsError as error:
        fail(str(error))


def fail(message: str) -> NoReturn:
    """End the command with one line and status 1."""
    print(f"sparing: {message}", file=sys.stderr)
    raise SystemExit(1)
