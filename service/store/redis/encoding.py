"""Shared values as bytes: the small facts as JSON, then the blobs one after another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import numpy as np
import orjson

from service.ledger.model.entry_fields import ENTRY_FIELDS, FieldType, entry_from, entry_values
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.pieces import Piece
from service.ledger.ports.cache import AccountSlice, CommitNotice, LedgerPosition, SharedSummary

_HEADER_LENGTH_BYTES: Final = 4
_WRITTEN: Final[Mapping[FieldType, Callable[[Any], str]]] = {
    "uuid": lambda value: value.hex,
    "timestamptz": lambda value: value.isoformat(),
    "numeric": str,  # a million charges may exceed 64 bits
}
_READ: Final[Mapping[FieldType, Callable[[str], object]]] = {
    "uuid": lambda text: UUID(hex=text),
    "timestamptz": datetime.fromisoformat,
    "numeric": int,
}
_BLOBS: Final = [n for n, each in enumerate(ENTRY_FIELDS) if each.type == "bytea"]
_FACTS: Final = [
    (n, each.name, _WRITTEN.get(each.type), _READ.get(each.type))
    for n, each in enumerate(ENTRY_FIELDS)
    if each.type != "bytea"
]
_PIECES: Final = "pieces"


def entry_bytes(entry: LedgerEntry) -> bytes:
    """The bytes of a ledger entry."""
    values = entry_values(entry)
    facts: dict[str, Any] = {}
    for n, column, write, _ in _FACTS:
        facts[column] = values[n] if write is None else write(values[n])
    facts[_PIECES] = [piece.number for piece in entry.pieces]
    return _pack(facts, [*(values[n] for n in _BLOBS), *(piece.content for piece in entry.pieces)])


def entry_of(data: bytes) -> LedgerEntry:
    """The ledger entry from the bytes of `entry_bytes`."""
    facts, blobs = _unpack(data)
    values: list[Any] = [None] * len(ENTRY_FIELDS)
    for n, column, _, read in _FACTS:
        values[n] = facts[column] if read is None else read(facts[column])
    for n, blob in zip(_BLOBS, blobs, strict=False):
        values[n] = blob
    entry = entry_from(values)
    contents = zip(facts[_PIECES], blobs[len(_BLOBS) :], strict=True)
    return replace(entry, pieces=tuple(Piece.of(entry.salt, number, content) for number, content in contents))


def slice_bytes(slice_: AccountSlice) -> bytes:
    """The bytes of a slice of accounts, with its position."""
    place = slice_.place
    facts = {**_facts(place), "number": slice_.number}
    units = (each.astype(">i8").tobytes() for each in (slice_.limits, slice_.spent))
    counters = (each.astype(">u4").tobytes() for each in (slice_.charged, slice_.left_out))
    return _pack(facts, [place.genesis, place.hash, *units, slice_.paused.tobytes(), *counters])


def slice_of(data: bytes) -> AccountSlice:
    """The slice from the bytes of `slice_bytes`."""
    facts, (genesis, head_hash, limits, spent, paused, charged, left_out) = _unpack(data)
    number = facts.pop("number")
    return AccountSlice(
        place=LedgerPosition(genesis=genesis, hash=head_hash, **facts),
        number=number,
        limits=np.frombuffer(limits, dtype=">i8").astype(np.int64),
        spent=np.frombuffer(spent, dtype=">i8").astype(np.int64),
        paused=np.frombuffer(paused, dtype=np.bool_),
        charged=np.frombuffer(charged, dtype=">u4").astype(np.uint32),
        left_out=np.frombuffer(left_out, dtype=">u4").astype(np.uint32),
    )


def summary_bytes(summary: SharedSummary) -> bytes:
    """The bytes of a summary, with its position."""
    place = summary.place
    return _pack(_facts(place), [place.genesis, place.hash, summary.body])


def summary_of(data: bytes) -> SharedSummary:
    """The summary from the bytes of `summary_bytes`."""
    facts, (genesis, head_hash, body) = _unpack(data)
    place = LedgerPosition(genesis=genesis, hash=head_hash, **facts)
    return SharedSummary(place=place, body=body)


def notice_bytes(notice: CommitNotice) -> bytes:
    """The bytes of a notice of a commit."""
    return _pack(_facts(notice), [notice.genesis])


def notice_of(data: bytes) -> CommitNotice:
    """The notice from the bytes of `notice_bytes`."""
    facts, (genesis,) = _unpack(data)
    return CommitNotice(genesis=genesis, **facts)


def _facts(place: CommitNotice) -> dict[str, Any]:
    return {"fence": place.fence, "seq": place.seq, "data_version": place.data_version}


def _pack(facts: dict[str, Any], blobs: Sequence[bytes]) -> bytes:
    header = orjson.dumps([facts, [len(blob) for blob in blobs]])
    return b"".join([len(header).to_bytes(_HEADER_LENGTH_BYTES, "big"), header, *blobs])


def _unpack(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    start = _HEADER_LENGTH_BYTES + int.from_bytes(data[:_HEADER_LENGTH_BYTES], "big")
    facts, lengths = orjson.loads(data[_HEADER_LENGTH_BYTES:start])
    blobs: list[bytes] = []
    for length in lengths:
        blobs.append(data[start : start + length])
        start += length
    return facts, blobs
