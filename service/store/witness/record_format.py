"""A witness record as 128 bytes: its numbers, its dataset, and a checksum over both."""

import hashlib
import struct
from typing import Final

from service.workflows.model.rows import WitnessRecord

_LAYOUT: Final = struct.Struct(">16s5Q8x32s")  # a mark, five numbers, a gap, the hash of the ledger's last entry
_MARK: Final = b"sparing witness1"
_CHECKSUM_BYTES: Final = 32
RECORD_BYTES: Final = _LAYOUT.size + _CHECKSUM_BYTES


def encode(dataset: str, record: WitnessRecord) -> bytes:
    """The bytes of a record of `dataset`."""
    body = _LAYOUT.pack(
        _MARK, record.fence, record.seq, record.acts, record.slots, record.worst_case_total_units, record.hash
    )
    return body + _checksum(dataset, body)


def decode(dataset: str, data: bytes) -> WitnessRecord | None:
    """The record in RECORD_BYTES bytes; None when they are torn, damaged, or of another dataset."""
    body, checksum = data[: _LAYOUT.size], data[_LAYOUT.size :]
    if len(data) != RECORD_BYTES or checksum != _checksum(dataset, body):
        return None
    _, fence, seq, acts, slots, units, digest = _LAYOUT.unpack(body)
    return WitnessRecord(fence=fence, seq=seq, acts=acts, slots=slots, worst_case_total_units=units, hash=digest)


def _checksum(dataset: str, body: bytes) -> bytes:
    return hashlib.sha256(dataset.encode() + b"\0" + body).digest()
