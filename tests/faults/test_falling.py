"""Kill -9 of the whole of Postgres under load."""

from pathlib import Path

from tests.faults.falling import lose_database
from tests.faults.machine import machine
from tests.faults.replicas import Nursery
from tests.rotation import times

KILLS = times(1, 5)


def test_a_database_that_is_killed_goes_on_where_it_was(
    nursery: Nursery, valkey_url: str, server_directory: Path
) -> None:
    """It recovers by itself under a replica that stays; what was seen is there, and every key is answered."""
    folder = server_directory / "falling"
    folder.mkdir(mode=0o711)
    with machine(nursery, valkey_url, folder) as fallible:
        stage = lose_database(fallible, KILLS, seed=1)
    assert stage.answered() > KILLS * 10
