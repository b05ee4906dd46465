"""Ledger entries, answers and pages to and from rows of the database: which columns, in which order.

Statements on behalf of analysts read PUBLIC_COLUMNS of the ledger alone: the value or the size of a field that
`tells_charges` depends on charges. The pieces of an entry are sealed, so that a reader of the database or its backups
learns no norms.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from operator import attrgetter
from struct import Struct
from typing import Any, Final

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from service.engine.pages import PageTotals
from service.ledger.model.entry_fields import ENTRY_FIELDS, entry_values
from service.ledger.model.ledger_entry import EntryRecord, LedgerEntry, PublicEntry
from service.ledger.model.long_answers import with_values, without_values
from service.ledger.model.parameters import KeptParameters
from service.ledger.model.pieces import WHOLE, Piece
from service.ledger.model.rows import AnswerRecord, StoredPage
from service.query.layout import LABELS_MAX
from service.query.stated_noise import unpacked

_TAG: Final = b"sparing pieces"  # at most 16 bytes: what the derivation is for
_REVISION: Final = Struct("!I")
_NONCE: Final = Struct("!Iq")
_TAG_BYTES: Final = 16
SEAL_BYTES: Final = _REVISION.size + _TAG_BYTES
"""The bytes that sealing adds to a piece."""


class Unreadable(ValueError):
    """A sealed piece was changed, or sealed under another pepper."""


class LedgerSeal:
    """Seals pieces with AES-256-GCM and opens them, under a key for each entry.

    The key of an entry is derived from the ledger's key and the entry's random salt. So no two entries share a key,
    also after a restore. The nonce is the piece's revision, which is drawn anew when the piece is rewritten, and the
    piece's number.
    """

    def __init__(self, key: bytes) -> None:
        """Take the `key`: 32 secret bytes, never in the database."""
        self._key = key

    def close(self, salt: bytes, piece: Piece, *, revision: int = 0) -> bytes:
        """The piece of an entry as it is stored. Two contents must not share salt, number and revision."""
        nonce = _NONCE.pack(revision, piece.number)
        return _REVISION.pack(revision) + self._cipher(salt).encrypt(nonce, piece.content, None)

    def open(self, salt: bytes, number: int, sealed: bytes) -> Piece:
        """The piece, with the digest of its content. Raises Unreadable."""
        revision = sealed[: _REVISION.size]
        try:
            nonce = _NONCE.pack(int.from_bytes(revision, "big"), number)
            content = self._cipher(salt).decrypt(nonce, sealed[_REVISION.size :], None)
        except InvalidTag as refusal:
            raise Unreadable("a sealed piece was changed, or sealed under another pepper") from refusal
        return Piece.of(salt, number, content)

    def _cipher(self, salt: bytes) -> AESGCM:
        # A keyed hash of blake2b's own; `hmac` would give up the GIL.
        return AESGCM(hashlib.blake2b(salt, digest_size=32, key=self._key, person=_TAG).digest())


_RESERVED: Final = {"values"}
_UNITS: Final = np.dtype(">i8")
_COUNT: Final = np.dtype(">u4")
_TICK: Final = np.dtype(">u2")

SealedPiece = tuple[int, bytes, bytes]
"""The number of a piece, its sealed bytes, and the digest that it was first written with."""


def columns_of(kind: type[Any], *left_out: str, **renamed: str) -> str:
    """The columns of a stored dataclass, in the order of its fields; `renamed` gives some of them another name."""
    return _columns(renamed.get(each.name, each.name) for each in fields(kind) if each.name not in left_out)


def _columns(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' if name in _RESERVED else name for name in names)


@cache
def names_in(columns: str) -> list[str]:
    """The names of some columns."""
    return columns.replace('"', "").split(", ")


def insertion(table: str, columns: str) -> str:
    """The statement that inserts one row."""
    return f"INSERT INTO {table} ({columns}) VALUES ({', '.join(['%s'] * len(names_in(columns)))})"


_FIRST_FIELDS, _LAST_FIELD = ENTRY_FIELDS[:-1], ENTRY_FIELDS[-1]
ENTRY_COLUMNS: Final = f"{_columns(each.name for each in _FIRST_FIELDS)}, piece, first_digest, {_LAST_FIELD.name}"
"""The columns of an entry's row, in the order of the table.

`piece` is the sealed piece of an entry that has one piece over all slots, and `first_digest` is the digest that this
piece was first written with. The last field came to the table after both.
"""
ENTRY_TYPES: Final = " ".join([*(each.type for each in _FIRST_FIELDS), "bytea", "bytea", _LAST_FIELD.type])
"""The types of ENTRY_COLUMNS, as `append.columns` takes them."""
PIECE_COLUMNS: Final = "seq, number, digest, sealed"
PUBLIC_COLUMNS: Final = columns_of(PublicEntry)
LISTED_COLUMNS: Final = columns_of(EntryRecord, "values")
PAGE_COLUMNS: Final = "page, seq, spent, charged, left_out, ticks"
PARAMETERS_COLUMNS: Final = "principal_id, sha256, classes, numbers"
"""`classes` is the number of rows of numbers, 0 if the numbers are one list."""
ANSWER_COLUMNS: Final = columns_of(AnswerRecord, key="idempotency_key")
STORED_COUNT: Final = len(fields(AnswerRecord))
SHOWN_COLUMNS: Final = 'shown."values", shown.sigma, shown.grid_log2, shown.sigmas'
"""The columns, joined by `shown_by`, that an answer of more than 10,000 numbers is stored without."""
ANSWER_COUNT: Final = STORED_COUNT + SHOWN_COLUMNS.count(",") + 1


def by_name(columns: str, row: Sequence[Any]) -> dict[str, Any]:
    """A row's values by the names of its columns; instants in UTC, and numerics as whole numbers."""
    values = dict(zip(names_in(columns), row, strict=True))
    return values | {name: _READ_AS[type(each)](each) for name, each in values.items() if type(each) in _READ_AS}


_READ_AS: Final[Mapping[type, Callable[[Any], object]]] = {Decimal: int, datetime: lambda value: value.astimezone(UTC)}


def entry_row(entry: LedgerEntry, seal: LedgerSeal) -> tuple[Any, ...]:
    """The values of ENTRY_COLUMNS."""
    only = entry.pieces[0] if entry.pieces else None
    sealed = None if only is None or only.number != WHOLE else seal.close(entry.salt, only)
    *first, last = entry_values(entry)
    return (*first, sealed, b"", last)


def entry_of(
    row: Sequence[Any], seal: LedgerSeal, pieces_of: Callable[[int], Sequence[SealedPiece]], *, pruned_seq: int
) -> LedgerEntry:
    """An entry from the values of ENTRY_COLUMNS; `pieces_of` reads the pieces of an entry that have rows of their own.

    An entry whose pieces cannot be opened has no pieces. An entry up to `pruned_seq` has none either, although its
    pieces may still be stored.
    """
    values = by_name(ENTRY_COLUMNS, row)
    whole, first_digest = values.pop("piece"), values.pop("first_digest")
    entry = LedgerEntry(**values)
    if entry.seq <= pruned_seq:
        return entry.pruned()
    sealed = [(WHOLE, whole, first_digest)] if whole is not None else pieces_of(entry.seq)
    try:
        pieces = tuple(opened(seal, entry.salt, each) for each in sealed)
    except Unreadable:  # `LedgerEntry.quantities` says so to a caller that needs them
        return entry
    return replace(entry, pieces=pieces)


def opened(seal: LedgerSeal, salt: bytes, stored: SealedPiece) -> Piece:
    """The opened piece, with the digest that it was first written with. Raises Unreadable."""
    number, sealed, first_digest = stored
    piece = seal.open(salt, number, bytes(sealed))
    return piece if bytes(first_digest) in {b"", piece.digest} else replace(piece, first_digest=bytes(first_digest))


def public_entry_of(row: Sequence[Any]) -> PublicEntry:
    """The public part of an entry from the values of PUBLIC_COLUMNS."""
    return PublicEntry(**by_name(PUBLIC_COLUMNS, row))


def entry_record_of(row: Sequence[Any]) -> EntryRecord:
    """The row of a listing from the values of LISTED_COLUMNS."""
    return EntryRecord(**by_name(LISTED_COLUMNS, row))


answer_row: Final[Callable[[AnswerRecord], tuple[Any, ...]]] = attrgetter(*(each.name for each in fields(AnswerRecord)))
"""Gives the values of ANSWER_COLUMNS for an answer."""


def shown_by(table: str) -> str:
    """A join of the answers in `table` with the numbers of the entries that they show, where these are many."""
    return (
        ' LEFT JOIN LATERAL (SELECT "values", sigma, grid_log2, sigmas FROM ledger'
        f" WHERE ledger.dataset_id = {table}.dataset_id AND ledger.seq = {table}.seq AND dimension > {LABELS_MAX}"
        " LIMIT 1) AS shown ON true"
    )


def stored(answer: AnswerRecord) -> AnswerRecord:
    """An answer without its numbers, as a long answer is stored."""
    return replace(answer, body=without_values(answer.body))


def answer_of(row: Sequence[Any]) -> AnswerRecord:
    """A whole answer from the values of ANSWER_COLUMNS and SHOWN_COLUMNS."""
    values = by_name(ANSWER_COLUMNS, row[:STORED_COUNT])
    released, sigma, grid_log2, sigmas = row[STORED_COUNT:]
    if released is not None:
        own = unpacked(bytes(sigmas))
        values["body"] = with_values(values["body"], released, sigma=sigma, grid_log2=grid_log2, sigmas=own)
    return AnswerRecord(key=values.pop("idempotency_key"), **values)


def parameters_row(kept: KeptParameters) -> tuple[bytes, bytes, int, bytes]:
    """The values of PARAMETERS_COLUMNS, in the form in which they are sent in binary."""
    classes = kept.shape[0] if len(kept.shape) > 1 else 0
    return kept.principal_id.bytes, bytes.fromhex(kept.sha256), classes, kept.numbers


def parameters_of(row: Sequence[Any]) -> KeptParameters:
    """Parameters from the values of PARAMETERS_COLUMNS."""
    principal_id, digest, classes, numbers = row
    count = len(numbers) // 8
    shape = (classes, count // classes) if classes else (count,)
    return KeptParameters(principal_id=principal_id, sha256=bytes(digest).hex(), shape=shape, numbers=bytes(numbers))


def page_row(totals: PageTotals) -> tuple[bytes, bytes, bytes, bytes]:
    """The values of the last four of PAGE_COLUMNS. Without a monitor the value of `ticks` is empty."""
    counters = totals.charged.astype(_COUNT).tobytes(), totals.left_out.astype(_COUNT).tobytes()
    return totals.spent.astype(_UNITS).tobytes(), *counters, totals.ticks.astype(_TICK).tobytes()


def page_of(row: Sequence[Any]) -> StoredPage:
    """A page from the values of PAGE_COLUMNS."""
    number, seq, spent, *counters, ticks = row
    charged, left_out = (np.frombuffer(each, dtype=_COUNT).astype(np.uint32) for each in counters)
    totals = PageTotals(
        spent=np.frombuffer(spent, dtype=_UNITS).astype(np.int64),
        charged=charged,
        left_out=left_out,
        ticks=np.frombuffer(ticks, dtype=_TICK).astype(np.uint16),
    )
    return StoredPage(number=number, seq=seq, totals=totals)
