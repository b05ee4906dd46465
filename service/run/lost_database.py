"""The check for a database that was lost as a whole, before a new one is begun in its place.

A new database does not know what every individual has spent. Two things outside the database show that there was an
earlier one: the pepper in the home, which is made after the first database, and the witness, which has a file of each
dataset.
"""

from pathlib import Path

from service.embedded.home import data_directories, find_home
from service.run.home import has_pepper
from service.settings.settings import Settings


class DatabaseLost(Exception):
    """The database is empty, but it may have held datasets before."""


def loss_of_home(settings: Settings) -> str | None:
    """The loss of an embedded database whose files are gone, in words; None if they exist, or never did."""
    if settings.database_url is not None:
        return None
    found = find_home(settings.home)
    if found is not None and data_directories(found.state):
        return None
    if not has_pepper(settings) and (_witnessed(settings.witness) or 0) == 0:
        return None
    return (
        f"the database in {settings.home} is gone, and was there once: nothing was done; `sparing restore` puts"
        " a backup back, and the witness then says what is missing; to begin anew on purpose, name another home"
        " and another folder for the witness"
    )


def refuse_to_begin(witness: Path) -> None:
    """Raise DatabaseLost where the witness has seen datasets, so that this empty database is another one.

    Raises DatabaseLost too where the witness cannot be read.
    """
    seen = _witnessed(witness)
    if seen is None:
        raise DatabaseLost(
            f"the database is empty, and the witness in {witness} cannot be read: nothing can say whether it always was"
        )
    if seen > 0:
        raise DatabaseLost(
            f"the database is empty, and the witness in {witness} has seen {seen} datasets: nothing was done;"
            " `sparing restore` puts a backup back; to begin anew on purpose, name another folder for the witness"
        )


def _witnessed(folder: Path) -> int | None:
    """The number of datasets that the witness has seen; None where it cannot be read."""
    # A start with its database in place need not wait for these.
    from service.ledger.ports.witness import WitnessUnavailable  # noqa: PLC0415
    from service.store.witness.file import FileWitness  # noqa: PLC0415

    try:
        return len(FileWitness(folder).names())
    except WitnessUnavailable:
        return None
