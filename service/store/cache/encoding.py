"""What is shared, as bytes: a line of JSON with the small facts, then the blobs one after another."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import numpy as np
import orjson

from service.workflows.caching import AccountSlice, News, Place, SharedReply
from service.workflows.ledger import EncodedCharges, LedgerEntry
from service.workflows.records import AnswerRecord

_HEADER_LENGTH_BYTES: Final = 4
_NO_BLOB: Final = -1


def reply_bytes(reply: SharedReply) -> bytes:
    """A reply."""
    record = reply.record
    facts = {
        "fence": reply.fence,
        "principal_id": record.principal_id.hex,
        "key": record.key,
        "seq": record.seq,
        "query_id": record.query_id.hex,
        "at": record.at.isoformat(),
    }
    return _pack(facts, [reply.genesis, reply.entry_hash, record.request_hash, record.body])


def reply_of(data: bytes) -> SharedReply:
    """And back."""
    facts, (genesis, entry_hash, request_hash, body) = _unpack(data)
    record = AnswerRecord(
        principal_id=UUID(hex=facts["principal_id"]),
        key=facts["key"],
        request_hash=_there(request_hash),
        seq=facts["seq"],
        query_id=UUID(hex=facts["query_id"]),
        body=_there(body),
        at=datetime.fromisoformat(facts["at"]),
    )
    return SharedReply(genesis=_there(genesis), fence=facts["fence"], entry_hash=_there(entry_hash), record=record)


def entry_bytes(entry: LedgerEntry) -> bytes:
    """An entry of a ledger."""
    charges = entry.charges
    facts = {
        "seq": entry.seq,
        "query_id": entry.query_id.hex,
        "analyst_id": entry.analyst_id.hex,
        "analyst": entry.analyst,
        "epoch": entry.epoch,
        "query_hash": entry.query_hash,
        "sigma": entry.sigma,
        "grid_log2": entry.grid_log2,
        "dimension": entry.dimension,
        "worst_case_units": entry.worst_case_units,
        "worst_case_total_units": entry.worst_case_total_units,
        "form": charges.form,
        "charge_units": charges.charge_units,
        "charged_count": entry.charged_count,
        "left_out_count": entry.left_out_count,
        "charged_units": str(entry.charged_units),  # a million charges may exceed 64 bits
        "asked_at": entry.asked_at.isoformat(),
        "kind": entry.kind,
    }
    blobs = [entry.canonical, charges.slots, charges.active, charges.charges, entry.values]
    return _pack(facts, [*blobs, entry.previous_hash, entry.hash])


def entry_of(data: bytes) -> LedgerEntry:
    """And back."""
    facts, (canonical, slots, active, charges, values, previous_hash, own_hash) = _unpack(data)
    return LedgerEntry(
        query_id=UUID(hex=facts.pop("query_id")),
        analyst_id=UUID(hex=facts.pop("analyst_id")),
        charges=EncodedCharges(
            form=facts.pop("form"),
            slots=_there(slots),
            active=active,
            charge_units=facts.pop("charge_units"),
            charges=charges,
        ),
        charged_units=int(facts.pop("charged_units")),
        asked_at=datetime.fromisoformat(facts.pop("asked_at")),
        canonical=_there(canonical),
        values=_there(values),
        previous_hash=_there(previous_hash),
        hash=_there(own_hash),
        **facts,
    )


def slice_bytes(slice_: AccountSlice) -> bytes:
    """Accounts at their place."""
    place = slice_.place
    facts = {"fence": place.fence, "seq": place.seq, "data_version": place.data_version, "number": slice_.number}
    numbers = (slice_.limits.astype(">i8").tobytes(), slice_.spent.astype(">i8").tobytes())
    return _pack(facts, [place.genesis, place.hash, *numbers])


def slice_of(data: bytes) -> AccountSlice:
    """And back."""
    facts, (genesis, head_hash, limits, spent) = _unpack(data)
    number = facts.pop("number")
    return AccountSlice(
        place=Place(genesis=_there(genesis), hash=_there(head_hash), **facts),
        number=number,
        limits=np.frombuffer(_there(limits), dtype=">i8").astype(np.int64),
        spent=np.frombuffer(_there(spent), dtype=">i8").astype(np.int64),
    )


def news_bytes(news: News) -> bytes:
    """News."""
    facts = {"fence": news.fence, "seq": news.seq, "data_version": news.data_version, "hints": news.hints}
    return _pack(facts, [news.genesis])


def news_of(data: bytes) -> News:
    """And back."""
    facts, (genesis,) = _unpack(data)
    return News(genesis=_there(genesis), hints=tuple(facts.pop("hints")), **facts)


def _pack(facts: dict[str, Any], blobs: Sequence[bytes | None]) -> bytes:
    lengths = [_NO_BLOB if blob is None else len(blob) for blob in blobs]
    header = orjson.dumps([facts, lengths])
    return b"".join([len(header).to_bytes(_HEADER_LENGTH_BYTES, "big"), header, *filter(None, blobs)])


def _unpack(data: bytes) -> tuple[dict[str, Any], list[bytes | None]]:
    start = _HEADER_LENGTH_BYTES + int.from_bytes(data[:_HEADER_LENGTH_BYTES], "big")
    facts, lengths = orjson.loads(data[_HEADER_LENGTH_BYTES:start])
    blobs: list[bytes | None] = []
    for length in lengths:
        blobs.append(None if length == _NO_BLOB else data[start : start + length])
        start += max(length, 0)
    return facts, blobs


def _there(blob: bytes | None) -> bytes:
    if blob is None:
        raise ValueError("a part of a sealed value is missing")
    return blob
