"""Several witnesses as one, and the bytes in which each of them keeps a record.

The first witness must have recorded a head before anything leaves. The other witnesses help when the first is lost.
"""

import hashlib
import struct
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

from service.incidents import report_incident
from service.ledger.model.rows import WitnessRecord
from service.ledger.ports.witness import Witness, WitnessUnavailable

_REST_S: Final = 5.0

Answer = TypeVar("Answer")


class Secondary(Witness, Protocol):
    """A witness to which a record can be sent without waiting at once for its reply."""

    def begin(self, dataset: str, record: WitnessRecord) -> Callable[[], WitnessRecord | None]:
        """Begin to write, and return a function that finishes the write and returns what `write` returns.

        The function must be called once, whatever has happened since. Both raise WitnessUnavailable.
        """


class CombinedWitness:
    """The port's Witness. A record that any witness has counts. A secondary that fails is left alone for a while."""

    def __init__(
        self, primary: Witness, secondaries: Sequence[Secondary], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take the witnesses. `clock` counts seconds."""
        self._primary, self._secondaries, self._clock = primary, secondaries, clock
        self._resting_until: dict[int, float] = {}

    def history(self, dataset: str) -> list[WitnessRecord]:
        records = set(self._primary.history(dataset))
        for _, answer in self._ask([(place, partial(each.history, dataset)) for place, each in self._awake()]):
            records.update(answer)
        return sorted(records, key=lambda record: record.position)

    def names(self) -> list[str]:
        return self._primary.names()

    def check(self) -> None:
        self._primary.check()

    def write(self, dataset: str, record: WitnessRecord) -> WitnessRecord | None:
        # The record is committed already, so that a secondary may know of it before the first does.
        begun = self._ask([(place, partial(each.begin, dataset, record)) for place, each in self._awake()])
        try:
            farthest = self._primary.write(dataset, record)
        finally:  # a reply that is not taken here would be taken for the next one
            told = self._ask(begun)
        for _, before in told:
            if before is not None and (farthest is None or farthest.position < before.position):
                farthest = before
        return farthest

    def _awake(self) -> list[tuple[int, Secondary]]:
        """The secondaries that are not left alone now, with their places."""
        now = self._clock()
        return [(n, each) for n, each in enumerate(self._secondaries) if now >= self._resting_until.get(n, now)]

    def _ask(self, requests: Sequence[tuple[int, Callable[[], Answer]]]) -> list[tuple[int, Answer]]:
        """The answers of the witnesses that answer, with their places."""
        answers = []
        for place, request in requests:
            try:
                answers.append((place, request()))
            except WitnessUnavailable as fault:
                self._resting_until[place] = self._clock() + _REST_S
                report_incident(fault, f"secondary witness {place}")
        return answers


_LAYOUT: Final = struct.Struct(">16s5Q8x32s")  # a mark, five numbers, a gap, the hash of the ledger's last entry
_MARK: Final = b"sparing witness1"
_CHECKSUM_BYTES: Final = 32
RECORD_BYTES: Final = _LAYOUT.size + _CHECKSUM_BYTES


def encode(dataset: str, record: WitnessRecord) -> bytes:
    """A record as RECORD_BYTES bytes: its numbers, and a checksum over them and the dataset's name."""
    body = _LAYOUT.pack(
        _MARK, record.fence, record.seq, record.acts, record.slots, record.worst_case_total_units, record.hash
    )
    return body + hashlib.sha256(dataset.encode() + b"\0" + body).digest()


def decode(dataset: str, data: bytes) -> WitnessRecord | None:
    """The record in RECORD_BYTES bytes; None when they are torn, damaged, or of another dataset."""
    if len(data) != RECORD_BYTES:
        return None
    _, fence, seq, acts, slots, units, digest = _LAYOUT.unpack_from(data)
    record = WitnessRecord(fence=fence, seq=seq, acts=acts, slots=slots, worst_case_total_units=units, hash=digest)
    return record if encode(dataset, record) == data else None
