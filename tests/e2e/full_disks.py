"""A small file system in memory that can be filled to the last byte: what fails is the kernel's own ENOSPC."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DISK_BYTES = 220 * 2**20


class CannotMount(Exception):
    """No file system may be mounted here."""


@contextmanager
def mounted_disk(place: Path) -> Iterator[Path]:
    """A disk at a place that is not there yet. Raises CannotMount."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=0711", "sparing-test", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        place.rmdir()
        raise CannotMount
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)
        place.rmdir()


def fill(disk: Path) -> Path:
    """Write a file until the disk takes not one byte more."""
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(b"\0" * 4096) > 0:
            pass
    if shutil.disk_usage(disk).free != 0:
        raise AssertionError("the disk has room left")
    return ballast
