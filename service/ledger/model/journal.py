"""Acts in the journal, each chained to the one before by hashes; requests, outcomes and records of uploads.

A replica applies an act by reading again the slots that the act has touched, if any (`replication.act_changes`). The
slots of an upload are a compressed bitmap: two hundred bytes for a million consecutive slots, twenty-one thousand for
ten thousand slots scattered among a million. If the bitmap is too long, the act names the touched pages instead.
"""

import hashlib
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import numpy as np
import rfc8785

from service.arrays import Integers
from service.engine import ingest
from service.engine.ingest import upload_size
from service.engine.pages import pages_of
from service.ledger.model.rows import Address
from service.ledger.model.views import UploadReport
from service.query.division import PAGE_SLOTS

TOUCHED_BYTES_MAX: Final = 2**16
"""The greatest length of a compressed bitmap in bytes. Every replica reads the detail of an act."""
TOUCHED: Final = ("joined", "slots")
"""The names of the fields in an upload's detail that hold bitmaps of slots; a listing of acts leaves the fields out."""
SPAN_MAX: Final = 2**27
"""The greatest distance between the first slot and the last in a bitmap, which has 16 MiB before compression."""
_TAG: Final = b"sparing journal 1\0"
_ZLIB_LEVEL: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalAct:
    """The act of a curator or an individual that is number `number` in the journal, after the ledger entry `at_seq`."""

    number: int
    at_seq: int
    act: str
    detail: Mapping[str, Any]
    previous_hash: bytes
    hash: bytes

    @classmethod
    def following(cls, previous_hash: bytes, *, number: int, at_seq: int, act: str, detail: Mapping[str, Any]) -> Self:
        """The act, chained by its hash to the one before it, or to the dataset's genesis."""
        facts: dict[str, Any] = {"number": number, "at_seq": at_seq, "act": act, "detail": dict(detail)}
        digest = hashlib.sha256(_TAG + previous_hash + rfc8785.dumps(facts)).digest()
        return cls(number=number, at_seq=at_seq, act=act, detail=dict(detail), previous_hash=previous_hash, hash=digest)

    @property
    def is_itself(self) -> bool:
        """Tell whether the hash is that of the contents."""
        made = JournalAct.following(
            self.previous_hash, number=self.number, at_seq=self.at_seq, act=self.act, detail=self.detail
        )
        return made.hash == self.hash


def told_slots(*, joined: Integers, rows: Integers) -> dict[str, Any]:
    """An upload's fields on slots, both in increasing order: the new individuals, and the individuals with new rows."""
    return {"joined": _told(joined), "slots": _told(rows)}


def joined_slots(detail: Mapping[str, Any]) -> Integers:
    """The slots of individuals that joined by an upload; all slots of their pages where the act names pages."""
    return _slots(detail["joined"])


def rows_slots(detail: Mapping[str, Any]) -> Integers:
    """The slots of individuals that got rows by an upload; all slots of their pages where the act names pages."""
    return _slots(detail["slots"])


def _told(slots: Integers) -> dict[str, Any]:
    if slots.size == 0 or int(slots[-1]) - int(slots[0]) < SPAN_MAX:
        told = _bits(slots)
        if len(told["bits"]) <= TOUCHED_BYTES_MAX:
            return told
    return _bits(pages_of(slots)) | {"of": "pages"}


def _slots(told: Mapping[str, Any]) -> Integers:
    numbers = _numbers(told)
    if "of" not in told:
        return numbers
    return (numbers[:, None] * PAGE_SLOTS + np.arange(PAGE_SLOTS)).reshape(-1)


def _bits(numbers: Integers) -> dict[str, Any]:
    """The numbers as a bitmap from `first` on, compressed, in base64; `first` is the highest bit of a byte."""
    first = int(numbers[0]) if numbers.size else 0
    is_in = np.zeros(int(numbers[-1]) - first + 1 if numbers.size else 0, dtype=np.bool_)
    is_in[numbers - first] = True
    compressed = zlib.compress(np.packbits(is_in).tobytes(), _ZLIB_LEVEL)
    return {"first": first, "bits": b64encode(compressed).decode()}


def _numbers(told: Mapping[str, Any]) -> Integers:
    packed = np.frombuffer(zlib.decompress(b64decode(told["bits"])), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(packed)) + int(told["first"])


RowsOverLimit = Literal["refuse", "truncate"]
UnknownIndividuals = Literal["as_declared", "drop"]
Duplicates = ingest.Duplicates
DecimalMark = ingest.DecimalMark
FileForm = ingest.FileForm
UploadBounds = upload_size.UploadBounds


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadRequest:
    """The table, type and options of an upload; `address` is the principal and its idempotency key, if any."""

    table: str
    content_type: str
    form: FileForm = ingest.USUAL_FORM
    accept: tuple[str, ...] = ()  # columns that are stored though many of their values are not as declared
    rows_over_limit: RowsOverLimit = "refuse"
    unknown_individuals: UnknownIndividuals = "as_declared"
    duplicates: Duplicates = "keep"
    is_dry_run: bool = False
    address: Address | None = None
    bounds: UploadBounds = upload_size.BOUNDS

    def options(self) -> dict[str, object]:
        """Everything that changes the effect of the same bytes.

        Defaults are left out, so that a later option changes no digest.
        """
        said = {"table": self.table, "content_type": self.content_type}
        usual = _stated(UploadRequest(table=self.table, content_type=self.content_type))
        return said | {name: value for name, value in _stated(self).items() if value != usual[name]}


def _stated(request: UploadRequest) -> dict[str, object]:
    return {
        "delimiter": request.form.delimiter,
        "decimal": request.form.decimal,
        "columns": dict(request.form.columns),
        "accept": ",".join(sorted(request.accept)),
        "rows_over_limit": request.rows_over_limit,
        "unknown_individuals": request.unknown_individuals,
        "duplicates": request.duplicates,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadRecord:
    """A stored upload: principal and idempotency key, a keyed digest of bytes and options, and the report as JSON."""

    address: Address
    digest: bytes
    report: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadOutcome:
    """The report of an upload, and whether it was stored by an earlier request under the same key."""

    report: UploadReport
    is_repeat: bool = False
