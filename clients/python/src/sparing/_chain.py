"""The chain of a ledger, checked from an auditor's listing without trusting the service."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from sparing._errors import APIReplyError, misread

_PUBLIC = (
    *("format", "kind", "sequence", "query_id", "epoch", "mechanism", "query_sha256", "query_hash", "sigma"),
    *("grid_log2", "dimension", "worst_case_units", "worst_case_total_units", "values_sha256"),
    *("analyst_id", "analyst", "asked_at"),
)
MISSING_MAX: Final = 10_000
"""The most rows that a check lists as missing."""
SEQUENCE_MAX: Final = 2**53 - 1
_EXPONENT_LOW, _EXPONENT_HIGH = -7, 21


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The result of checking a ledger. If `broken` is empty, the listed rows are an unbroken chain.

    Keep `hash`, and give it as `kept` to the next check. That check's `kept_at` is then the sequence of the row with
    this hash: the ledger has only grown since. If `kept_at` is None, the ledger was rewritten, or the hash is of
    another ledger.
    """

    entries: int  # rows listed
    checked: int  # of these, rows whose hash was recomputed
    hash: str | None  # of the newest entry
    broken: tuple[int, ...]  # sequences of rows that are missing, do not give their hash, or do not follow
    kept_at: int | None = None  # the sequence of the row with the kept hash


class ChainCheck:
    """Rows as the service lists them, the newest first, checked as they come."""

    def __init__(self, kept: str | None = None) -> None:
        """Begin a check; `kept` is the hash of an earlier check."""
        self._kept, self._kept_at = None if kept is None else kept.strip().lower(), None
        self._entries = 0
        self._newest: str | None = None
        self._broken: set[int] = set()
        self._sequence: int | None = None  # of the row before
        self._wanted: str | None = None  # the hash required of the next, older row

    def add(self, row: object) -> None:
        """Check the next row. Raises APIReplyError for a malformed row."""
        told = _row(row)
        if self._sequence is None:
            self._newest = told["hash"]
        else:
            self._missing(told["sequence"], self._sequence)
            if told["hash"] != self._wanted or told["sequence"] >= self._sequence:
                self._broken.add(self._sequence)
        self._sequence, self._wanted = told["sequence"], told["previous_hash"]
        self._entries += 1
        if told["hash"] == self._kept:
            self._kept_at = told["sequence"]
        with misread("a row of the ledger cannot be hashed"):
            is_own = _query_hash(told) == told["query_sha256"] and _hash(told) == told["hash"]
        if not is_own:
            self._broken.add(told["sequence"])

    def result(self) -> Chain:
        """The result for the rows so far; entries older than the last of these rows count as missing."""
        if self._sequence is not None:
            self._missing(0, self._sequence)
        broken = tuple(sorted(self._broken))
        return Chain(
            entries=self._entries, checked=self._entries, hash=self._newest, broken=broken, kept_at=self._kept_at
        )

    def _missing(self, older: int, newer: int) -> None:
        """Note the rows between two sequences as missing, at most MISSING_MAX in all: a row may claim any sequence."""
        room = max(MISSING_MAX - len(self._broken), 0)
        self._broken.update(range(max(older + 1, newer - room), newer))


def chain_of(rows: Iterable[object], kept: str | None = None) -> Chain:
    """The result of checking rows as the service lists them, newest first. Raises APIReplyError for a malformed row."""
    check = ChainCheck(kept)
    for row in rows:
        check.add(row)
    return check.result()


def _row(row: object) -> Mapping[str, Any]:
    hashes = {"previous_hash", "hash", "private_digest"}
    if (
        not isinstance(row, Mapping)
        or not {*_PUBLIC, "query", *hashes} <= row.keys()
        or not all(isinstance(row[name], str) for name in hashes)
        or type(row["sequence"]) is not int
        or not 1 <= row["sequence"] <= SEQUENCE_MAX
    ):
        raise APIReplyError("a row of the ledger does not show what its hash is made of")
    return row


def _hash(row: Mapping[str, object]) -> str:
    names = _PUBLIC if row.get("sigmas") is None else (*_PUBLIC, "sigmas")
    public = hashlib.sha256(_canonical({name: row[name] for name in names}).encode()).digest()
    before, private = (bytes.fromhex(str(row[name])) for name in ("previous_hash", "private_digest"))
    return hashlib.sha256(b"sparing ledger 2\0" + before + public + private).hexdigest()


def _query_hash(row: Mapping[str, object]) -> str:
    return hashlib.sha256(_canonical(row["query"]).encode()).hexdigest()


def _canonical(value: object) -> str:
    """The canonical JSON (RFC 8785) of a value."""
    match value:
        case Mapping():
            members = sorted(value.items(), key=lambda member: member[0].encode("utf-16-be"))
            return "{" + ",".join(f"{_canonical(name)}:{_canonical(member)}" for name, member in members) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_canonical, value)) + "]"
        case float():
            return _number(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    """The shortest decimal that reads back as this float, as ECMAScript writes it."""
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    figures, point = "".join(map(str, digits)), len(digits) + int(exponent)  # 0.figures times ten to the point
    if _EXPONENT_LOW < point - 1 < _EXPONENT_HIGH:
        padded = figures.ljust(point, "0") if point > 0 else "0" * (1 - point) + figures
        place = max(point, 1)
        text = padded[:place] + (f".{padded[place:]}" if len(padded) > place else "")
    else:
        fraction = f".{figures[1:]}" if len(figures) > 1 else ""
        text = f"{figures[0]}{fraction}e{point - 1:+d}"
    return f"-{text}" if sign else text
