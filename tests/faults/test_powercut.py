"""The power goes: whatever a client has seen is there when it comes back, charged once and witnessed.

Needs the right to mount an image on a loop device; where that is missing these tests are skipped, and reported so.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.falling import lose_power
from tests.faults.machine import can_mount, machine, mounted, prepare
from tests.faults.replicas import Nursery
from tests.faults.scenario import Stage
from tests.rotation import one_of, times

LOSS = r"was answered and has no stored reply|witness: has seen sequence"
pytestmark = [
    pytest.mark.skipif(not can_mount(), reason="without the right to mount, no file system's power can be cut")
]

CUTS = times(1, 10)
UNSAFE_CUTS = 10


@pytest.fixture(scope="module")
def image(server_directory: Path) -> Iterator[Path]:
    """A disk with a database on it, to copy."""
    path = server_directory / "prepared.image"
    prepare(server_directory / "prepared", path)
    yield path
    path.unlink()


def cut(nursery: Nursery, redis_url: str, folder: Path, image: Path, seed: int, cuts: int, **settings: str) -> Stage:
    """A machine that loses its power again and again."""
    with mounted(folder, image) as disk, machine(nursery, redis_url, disk.mount, settings) as fallible:
        return lose_power(disk, fallible, cuts, seed)


@pytest.mark.parametrize("seed", one_of([1, 2]))
def test_nothing_that_was_seen_is_lost(
    nursery: Nursery, valkey_url: str, server_directory: Path, image: Path, seed: int
) -> None:
    """One order throughout, and every key is answered in the end."""
    stage = cut(nursery, valkey_url, server_directory / f"disk-{seed}", image, seed, CUTS)
    assert stage.answered() > CUTS * 10


@pytest.mark.parametrize(
    "settings", [{"fsync": "off"}, {"synchronous_commit": "off", "wal_writer_delay": "10s"}], ids=min
)
def test_a_database_that_may_forget_is_seen_to_forget(
    nursery: Nursery, valkey_url: str, server_directory: Path, image: Path, settings: dict[str, str]
) -> None:
    """The settings that `serve` refuses: with them this very test finds answers, or a witness, ahead of the ledger.

    The log is written so seldom that a slow machine does not have it on the disk before the cut.
    """
    with pytest.raises(AssertionError, match=LOSS):
        cut(nursery, valkey_url, server_directory / f"disk-{min(settings)}", image, 3, UNSAFE_CUTS, **settings)
