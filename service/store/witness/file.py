"""The witness as files: one per dataset, to which records of a fixed size are appended, each synced before it counts.

A record that was torn, or damaged later, fails its checksum and is ignored; all other records are read. Any number of
processes may share the folder: a process that appends holds the file's lock. A file is extended by a block of zeros at
a time, because syncing a file that grows costs half as much again.
"""

import errno
import fcntl
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from service.embedded.home import sync_directory
from service.ledger.model.rows import WitnessRecord
from service.ledger.ports.witness import WitnessUnavailable
from service.store.witness.combined import RECORD_BYTES, decode, encode

_BLOCK_BYTES: Final = 512 * RECORD_BYTES
_KEPT_WHOLE: Final = 2048
_FREE: Final = bytes(RECORD_BYTES)
_LOCK_WAIT_S: Final = 2.0
_LOCK_POLL_S: Final = 0.005
_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(slots=True, kw_only=True)
class _Place:
    """The place of the next record at the last look. `last` is the record before it, by which a file is recognised."""

    slot: int
    last: bytes
    farthest: WitnessRecord | None


@dataclass(frozen=True, slots=True)
class _File:
    """A locked file, and its size when it was locked."""

    descriptor: int
    size: int

    def contents(self) -> bytes:
        """All bytes of the file."""
        return os.pread(self.descriptor, self.size, 0)

    def records_at(self, slot: int) -> tuple[bytes, bytes]:
        """The record in a slot and the record in the next slot, as far as the file has them; slot -1 has no record."""
        if slot < 0:
            return b"", os.pread(self.descriptor, RECORD_BYTES, 0)
        both = os.pread(self.descriptor, 2 * RECORD_BYTES, slot * RECORD_BYTES)
        return both[:RECORD_BYTES], both[RECORD_BYTES:]


class FileWitness:
    """The port's Witness. No file is held open between two calls."""

    def __init__(self, folder: Path, *, records_max: int = 8192) -> None:
        """Take the `folder`, which is made at the first write. A file that has `records_max` records is thinned out."""
        self._folder, self._records_max = folder, records_max
        self._paths: dict[str, Path] = {}
        self._places: dict[str, _Place] = {}
        self._doubted: set[str] = set()
        self._seen: set[str] = set()  # files that were there: a disk that is gone takes all of them

    def history(self, dataset: str) -> list[WitnessRecord]:
        try:
            data = self.path(dataset).read_bytes()
        except FileNotFoundError:
            return []
        except OSError as fault:
            raise _unavailable(fault) from fault
        self._seen.add(dataset)
        return _records(dataset, data)

    def names(self) -> list[str]:
        try:
            return sorted(path.stem for path in self._folder.iterdir() if path.suffix == ".witness")
        except FileNotFoundError:
            return []
        except OSError as fault:
            raise _unavailable(fault) from fault

    def write(self, dataset: str, record: WitnessRecord) -> WitnessRecord | None:
        try:
            file = self._locked(dataset)
            try:
                return self._write(file, dataset, record)
            finally:
                os.close(file.descriptor)
        except OSError as fault:
            # The record may stand in the file and never reach the disk, and syncing again would not say so.
            self._doubted.add(dataset)
            raise _unavailable(fault) from fault

    def check(self) -> None:
        fault: OSError | None = None
        for dataset in tuple(self._seen):
            try:
                os.close(os.open(self.path(dataset), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW))
            except OSError as error:
                fault = error
            else:
                return
        if fault is not None:
            raise _unavailable(fault) from fault

    def path(self, dataset: str) -> Path:
        """The file of one dataset."""
        return self._folder / f"{dataset}.witness"

    def _locked(self, dataset: str) -> _File:
        """The file, opened and locked against every other process and thread. A file never seen is made if missing."""
        path = self._paths.get(dataset) or self._paths.setdefault(dataset, self.path(dataset))
        deadline = time.monotonic() + _LOCK_WAIT_S
        while True:
            # A file that was seen is not made anew: another folder may be in the place of a disk that is gone.
            descriptor = os.open(path, _OPEN & ~os.O_CREAT) if dataset in self._seen else self._made(path)
            file = None
            try:
                file = _lock(path, descriptor)
            finally:
                if file is None:
                    os.close(descriptor)
            if file is not None:
                self._seen.add(dataset)
                return file
            if time.monotonic() > deadline:
                raise OSError(errno.EAGAIN, "another process holds the witness")
            time.sleep(_LOCK_POLL_S)

    def _made(self, path: Path) -> int:
        """The descriptor of a file that this process has not seen before, made if it is missing."""
        try:
            return os.open(path, _OPEN, 0o600)
        except FileNotFoundError:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_directory(self._folder.parent)
            return os.open(path, _OPEN, 0o600)

    def _write(self, file: _File, dataset: str, record: WitnessRecord) -> WitnessRecord | None:
        place = self._find(file, dataset)
        before = place.farthest
        is_news = before is None or before.position < record.position
        if dataset in self._doubted or place.slot >= self._records_max:
            records = _records(dataset, file.contents())
            self._rewrite(dataset, [*records, record] if is_news else records)
        elif is_news:
            self._append(file, dataset, place, record)
        else:
            os.fdatasync(file.descriptor)  # the process that wrote it may have died before this
        return before

    def _find(self, file: _File, dataset: str) -> _Place:
        """Find the place of the next record, beginning at the last place if the file is still the same one."""
        place = self._places.get(dataset)
        last, following = (b"", b"") if place is None else file.records_at(place.slot - 1)
        if place is None or place.slot == 0 or last != place.last:
            place = self._places[dataset] = _first_look(dataset, file.contents())
            _, following = file.records_at(place.slot - 1)
        while len(following) == RECORD_BYTES and following != _FREE:
            record = decode(dataset, following)
            place.farthest = max((each for each in (place.farthest, record) if each), key=_position, default=None)
            place.slot, place.last = place.slot + 1, following
            _, following = file.records_at(place.slot - 1)
        return place

    def _append(self, file: _File, dataset: str, place: _Place, record: WitnessRecord) -> None:
        data, offset = encode(dataset, record), place.slot * RECORD_BYTES
        is_at_end = file.size < offset + RECORD_BYTES
        written = os.pwrite(file.descriptor, data.ljust(_BLOCK_BYTES, b"\0") if is_at_end else data, offset)
        if written < RECORD_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fdatasync(file.descriptor)
        if place.slot == 0:
            sync_directory(self._folder)
        place.slot, place.last, place.farthest = place.slot + 1, data, record

    def _rewrite(self, dataset: str, records: list[WitnessRecord]) -> None:
        """Replace the file by a new one with the newest records, and every other older one where the file is full."""
        older, newest = records[:-_KEPT_WHOLE], records[-_KEPT_WHOLE:]
        kept = [*(older[::2] if len(records) >= self._records_max else older), *newest]
        data = b"".join(encode(dataset, record) for record in kept)
        path = self.path(dataset)
        fresh = path.with_suffix(".fresh")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data + bytes(-len(data) % _BLOCK_BYTES))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        sync_directory(self._folder)
        self._places.pop(dataset, None)
        self._doubted.discard(dataset)


def _first_look(dataset: str, data: bytes) -> _Place:
    """The place behind the last record that is not free, whether that record is whole or damaged.

    Records are appended in order. So the last record that is whole is the farthest, and the thousands before it need
    not be decoded.
    """
    pieces = _pieces(data)
    used = next((slot for slot in range(len(pieces), 0, -1) if pieces[slot - 1] != _FREE), 0)
    whole = (record for piece in reversed(pieces[:used]) if (record := decode(dataset, piece)) is not None)
    return _Place(slot=used, last=pieces[used - 1] if used else b"", farthest=next(whole, None))


def _records(dataset: str, data: bytes) -> list[WitnessRecord]:
    decoded = (decode(dataset, piece) for piece in _pieces(data))
    return sorted((record for record in decoded if record is not None), key=_position)


def _pieces(data: bytes) -> list[bytes]:
    """The bytes cut into pieces of RECORD_BYTES; an incomplete piece at the end is left out."""
    return [data[at : at + RECORD_BYTES] for at in range(0, len(data) - RECORD_BYTES + 1, RECORD_BYTES)]


def _position(record: WitnessRecord) -> tuple[int, int, int]:
    return record.position


def _lock(path: Path, descriptor: int) -> _File | None:
    """The locked file; None if another process holds the lock, or a new file was put in its place before the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        there, here = path.stat(), os.fstat(descriptor)
    except (BlockingIOError, FileNotFoundError):
        return None
    return _File(descriptor, here.st_size) if os.path.samestat(there, here) else None


def _unavailable(fault: OSError) -> WitnessUnavailable:
    return WitnessUnavailable(errno.errorcode.get(fault.errno or 0, "unknown"))
