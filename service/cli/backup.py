"""The commands `sparing backup` and `sparing restore`."""

from pathlib import Path
from typing import Annotated

import typer

from service.cli.options import Home, existing_settings_of, fail, settings_of, tell


def backup(
    folder: Annotated[Path, typer.Argument(help="The folder to make; it must not be there yet.")], home: Home = None
) -> None:
    """Back the database up into a new folder, beside a running service; never the pepper or the witness."""
    from service.run.backup import BackupUnusable, back_up

    try:
        back_up(existing_settings_of(home), folder.absolute(), tell)
    except BackupUnusable as refusal:
        fail(str(refusal))


def restore(
    folder: Annotated[Path, typer.Argument(help="The folder that `sparing backup` made.")],
    aside: Annotated[
        bool, typer.Option("--aside", help="Keep a database that is not empty under another name, instead of refusing.")
    ] = False,
    home: Home = None,
) -> None:
    """Put a backup back into an empty database, and tell what was witnessed since. Nothing is overwritten."""
    from service.run.backup import BackupUnusable, put_back
    from service.store.postgres.dump import NotRestored

    try:
        put_back(settings_of(home), folder.absolute(), tell, aside=aside)
    except (BackupUnusable, NotRestored) as refusal:
        fail(str(refusal))
