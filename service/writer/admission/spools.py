"""The bytes of uploads on disk: counted by principal and all together, as they are written.

A spool is on disk beyond a quarter of a megabyte, so that memory does not bound it: eight bodies of gzip of a megabyte
unpacked to eight gigabytes. A gzip counts with what it unpacks to, since both are there at once.
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
"""The bytes that an upload may have written while the disk has none of them."""

log = logging.getLogger("sparing.uploads")


@contextmanager
def refusing_a_full_disk() -> Iterator[None]:
    """Raise DiskFull for an error of the folder in which uploads are spooled; the log says which error."""
    try:
        yield
    except OSError as error:
        log.warning("an upload was refused, for TMPDIR: %s", error.strerror)
        raise DiskFull from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolBounds:
    """The most bytes of one principal, and of all."""

    principal_bytes_max: int = SPOOL_BYTES_MAX
    bytes_max: int = SPOOL_BYTES_TOTAL_MAX


class Spools:
    """Counts the bytes that uploads have spooled. Thread-safe."""

    def __init__(self, bounds: SpoolBounds | None = None) -> None:
        self.bounds = bounds or SpoolBounds()
        self.bytes_held = 0
        self._own: Counter[Hashable] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def spool(self, principal: Hashable) -> Iterator["Spool"]:
        """The spool of one upload; its bytes are given back at the end."""
        spool = Spool(self, principal)
        try:
            yield spool
        finally:
            self._give_back(principal, spool.bytes_taken)

    def take(self, principal: Hashable, size: int) -> None:
        """Count so many bytes. Raises TooManyBytesSpooled for the principal's own bound, DiskFull for that of all."""
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
    """The bytes of one upload. Belongs to one thread at a time."""

    def __init__(self, spools: Spools, principal: Hashable) -> None:
        self._spools, self._principal, self.bytes_taken, self._bytes_on_disk = spools, principal, 0, 0

    def take(self, size: int) -> None:
        """Count so many bytes more, before they are written. Raises as `Spools.take`."""
        self._spools.take(self._principal, size)
        self.bytes_taken += size

    def settle(self, file: BinaryIO) -> None:
        """Write the bytes of this upload's file through to the disk, once they are so many. Raises DiskFull.

        A commit of a database on the same disk waits for all that was written before it, by whomever.
        """
        if self.bytes_taken - self._bytes_on_disk >= UNSETTLED_BYTES_MAX:
            with refusing_a_full_disk():
                file.flush()
                os.fsync(file.fileno())
            self._bytes_on_disk = self.bytes_taken
