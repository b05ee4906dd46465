"""The bytes of uploads on disk, counted by principal and in total, as they are written.

An upload of more than a quarter of a megabyte is spooled to disk, where the bound on memory does not limit it: eight
gzip bodies of a megabyte can unpack to eight gigabytes. The bytes of a gzip and the bytes that it unpacks to both
count, since both are on disk at once.
"""

import logging
import os
import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Final

from service.bounds import SPOOL_BYTES_MAX, SPOOL_BYTES_TOTAL_MAX
from service.ledger.model.errors import DiskFull, TooManyBytesSpooled

UNSETTLED_BYTES_MAX: Final = 2**23
"""The bytes that an upload may have written before they are forced to the disk."""

log = logging.getLogger("sparing.uploads")


@contextmanager
def refusing_a_full_disk() -> Iterator[None]:
    """Raise DiskFull for an error of the folder in which uploads are spooled, and log which error it was."""
    try:
        yield
    except OSError as error:
        log.warning("an upload was refused, for TMPDIR: %s", error.strerror)
        raise DiskFull from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolBounds:
    """The most bytes on disk of one principal's uploads, and of all uploads."""

    principal_bytes_max: int = SPOOL_BYTES_MAX
    bytes_max: int = SPOOL_BYTES_TOTAL_MAX


class Spools:
    """A count of the bytes that uploads have spooled. Thread-safe."""

    def __init__(self, bounds: SpoolBounds | None = None) -> None:
        self.bounds = bounds or SpoolBounds()
        self.bytes_held = 0
        self._own: Counter[Hashable] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def spool(self, principal: Hashable) -> Iterator["Spool"]:
        """The spool of one upload; at the end its bytes are no longer counted."""
        spool = Spool(self, principal)
        try:
            yield spool
        finally:
            self._give_back(principal, spool.bytes_taken)

    def take(self, principal: Hashable, size: int) -> None:
        """Count `size` bytes.

        Raises TooManyBytesSpooled beyond the principal's own bound, DiskFull beyond the bound on all.
        """
        with self._lock:
            if self._own[principal] + size > self.bounds.principal_bytes_max:
                raise TooManyBytesSpooled(self.bounds.principal_bytes_max)
            if self.bytes_held + size > self.bounds.bytes_max:
                raise DiskFull(DiskFull.of_all(self.bounds.bytes_max))
            self._own[principal] += size
            self.bytes_held += size

    def _give_back(self, principal: Hashable, size: int) -> None:
        with self._lock:
            self.bytes_held -= size
            self._own[principal] -= size
            if self._own[principal] == 0:
                del self._own[principal]


class Spool:
    """The spooled bytes of one upload. Only one thread at a time may use it."""

    def __init__(self, spools: Spools, principal: Hashable) -> None:
        self._spools, self._principal, self.bytes_taken, self._bytes_on_disk = spools, principal, 0, 0

    def take(self, size: int) -> None:
        """Count `size` more bytes before they are written. Raises as `Spools.take` does."""
        self._spools.take(self._principal, size)
        self.bytes_taken += size

    def settle(self, file: BinaryIO) -> None:
        """Force the bytes of this upload's file to the disk once there are UNSETTLED_BYTES_MAX new ones.

        Raises DiskFull.

        The commit of a database on the same disk waits for everything that any process wrote to the disk before.
        """
        if self.bytes_taken - self._bytes_on_disk >= UNSETTLED_BYTES_MAX:
            with refusing_a_full_disk():
                file.flush()
                os.fsync(file.fileno())
            self._bytes_on_disk = self.bytes_taken
