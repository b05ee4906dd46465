"""Options and endings that all commands share."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn, Optional

import typer

from service.logs import on_one_line
from service.numerals import integer_of

if TYPE_CHECKING:
    from service.run.adapters import Adapters
    from service.settings.settings import Settings

Home = Annotated[
    Optional[Path],  # noqa: UP045 - typer reads it at run time
    typer.Option(help="The home of this deployment; by default SPARING_HOME, else ~/.local/share/sparing."),
]


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """The parser of an option that is a whole number within bounds, in the digits 0 to 9."""
    bounds = f"at least {least}" if most is None else f"{least} to {most}"

    def parsed(text: str | int) -> int:
        try:
            number = integer_of(text) if isinstance(text, str) else text  # a default is a number
        except ValueError as error:
            raise typer.BadParameter(f"{text!r} {error}") from None
        if number < least or (most is not None and number > most):
            raise typer.BadParameter(f"must be {bounds}, got {number}")
        return number

    parsed.__name__ = "integer"  # of which the help makes the name of the value
    return parsed


PORT: Final = whole(0, 65535)


def settings_of(home: Path | None) -> "Settings":
    """The settings of the environment and of the home that is named. Ends the command if they are invalid."""
    from service.settings.settings import Settings, SettingsError

    try:
        return Settings.of(os.environ, home=home)
    except SettingsError as error:
        fail(str(error))


def existing_settings_of(home: Path | None) -> "Settings":
    """Give the settings of a deployment that exists: no command but `serve` and `demo` may begin one.

    An embedded database must have been started in the home before. With another database, a home that is named must
    exist. Without a named home none is needed, since settings may state everything that it would keep.
    """
    from service.embedded.home import find_home
    from service.run.lost_database import loss_of_home

    settings = settings_of(home)
    if settings.database_url is None:
        loss = loss_of_home(settings)
        if loss is not None:
            fail(loss)
        exists = find_home(settings.home) is not None
    else:
        exists = settings.home.is_dir() or (home is None and "SPARING_HOME" not in os.environ)
    if not exists:
        fail(f"there is no deployment in {settings.home}: nothing was done; `sparing serve` begins one")
    return settings


@contextmanager
def opened_service(home: Path | None) -> Iterator["Adapters"]:
    """The service of a deployment that exists. A workflow's refusal ends the command in one line."""
    from service.ledger.model.errors import WorkflowError
    from service.run.composition import open_service

    with open_service(existing_settings_of(home)) as opened:
        try:
            yield opened
        except WorkflowError as refusal:
            fail(str(refusal))


def tell_whole_losses(opened: "Adapters") -> int:
    """Say on stderr which witnessed datasets are missing from the database, and return their number.

    A database that was lost as a whole looks like one in which nothing was ever done.
    """
    from service.ledger.ports.witness import WitnessUnavailable
    from service.writer.rollback.losses import whole_losses

    try:
        found = list(whole_losses(opened.store, opened.witness))
    except WitnessUnavailable:
        fail("the witness cannot be read: nothing can say whether a dataset is missing")
    for loss in found:
        tell(f"sparing: {loss}; `sparing restore` puts a backup back", is_error=True)
    return len(found)


def tell(told: object, *, is_error: bool = False) -> None:
    """Print lines without control characters for the terminal: names come from the database, and from backups."""
    stream = sys.stderr if is_error else sys.stdout
    print("\n".join(map(on_one_line, str(told).split("\n"))), file=stream, flush=True)


def fail(message: str) -> NoReturn:
    """End the command with one line and status 1."""
    tell(f"sparing: {message}", is_error=True)
    raise SystemExit(1)
