"""Every individual's totals by the entries, from the beginning or from the stored totals of a pruning.

Amended entries do not hold an erased individual's charges, so that its total is taken from its page. All amended
entries together must miss as many units as the accounts of erased individuals hold beyond the replay.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.arrays import Integers, exact_sum
from service.engine.pages import FirstTicks, PageTotals, pages_for, slots_on
from service.ledger.model.priced import Priced
from service.ledger.model.rows import StoredPage
from service.maintenance.verify.accounts import NAMED_MAX
from service.query.division import PAGE_SLOTS

_TAG: Final = b"sparing totals 1\0"
_PAGE: Final = Struct("!qq")  # number, sequence
_SAYS: Final = (
    "holds {} units",
    "counts {} queries that charged it",
    "counts {} queries that left it out",
    "was counted first at tick {}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Every individual's totals at the entry `seq` of hash `hash`, by pages.

    The totals of erased individuals include `ahead_units` of amended entries after `seq`.
    """

    seq: int
    hash: bytes
    pages: tuple[StoredPage, ...]
    ahead_units: int


class ReplayedTotals:
    """By slot, (slots,) each: `spent` units, how many queries `charged` it and `left_out` it, its first of the `ticks`.

    `is_known` (slots,) is False for the `erased` until a page gives their totals. `missing_units` were charged by
    amended entries, and have not been found in an account yet.
    """

    def __init__(self, slots: int, *, erased: Integers) -> None:
        self.spent: Integers = np.zeros(slots, dtype=np.int64)
        self.charged, self.left_out = np.zeros((2, slots), dtype=np.uint32)
        self.ticks: FirstTicks = np.zeros(slots, dtype=np.uint16)
        self.is_known = np.ones(slots, dtype=np.bool_)
        self.is_known[erased[erased < slots]] = False
        self.missing_units = 0
        self._all_missing_units = 0
        self._copied: tuple[int, bytes, int, list[NDArray[Any]]] | None = None
        self._beyond: dict[int, list[int]] = {}  # by slot, the totals of a page beyond the copy's time, and the tick

    @property
    def _columns(self) -> list[NDArray[Any]]:
        return [self.spent, self.charged, self.left_out, self.ticks]

    def begin_with(self, pages: Iterable[StoredPage], *, ahead_units: int) -> None:
        """Begin with the stored totals of a pruning."""
        for page in pages:
            for column, part in zip(self._columns, _parts(page.totals), strict=True):
                here = column[slots_on(page.number)]
                here[:] = part[: here.size]
        self.missing_units -= ahead_units

    def add(self, priced: Priced, *, is_counted: bool, missing_units: int, tick: int = 0) -> None:
        """Add an entry, whose amendments have taken out `missing_units`; it may be a tick of the monitor."""
        self.missing_units += missing_units
        self._all_missing_units += missing_units
        self.spent[priced.charged] += priced.charges
        if is_counted:
            self.charged[priced.charged] += 1
            self.left_out[priced.left_out] += 1
        if tick:
            first = self.ticks[priced.charged]
            self.ticks[priced.charged] = np.where(first == 0, tick, first)

    def settle(self, page: StoredPage) -> None:
        """Take the totals of erased individuals from a page that includes every amended entry."""
        slots = slots_on(page.number)
        known, ticks = self.is_known[slots], _parts(page.totals)[-1]
        places = np.flatnonzero(~known)
        if places.size == 0:
            return
        beyond = [
            np.maximum(part[places].astype(np.int64) - column[slots][places], 0)
            for part, column in zip(_parts(page.totals)[:-1], self._columns[:-1], strict=True)
        ]
        self.ticks[slots][places] = ticks[places]  # no sum: the first of all, wherever entries tell of later ones
        self.missing_units -= exact_sum(beyond[0])
        for column, more in zip(self._columns[:-1], beyond, strict=True):
            column[slots][places] += more.astype(column.dtype)
        beyond.append(ticks[places].astype(np.int64))
        for slot, *each in zip((slots.start + places).tolist(), *(more.tolist() for more in beyond), strict=True):
            self._beyond[slot] = each
        known[places] = True

    def unlike(self, number: int, stored: PageTotals) -> Iterator[str]:
        """Findings about the slots of a page whose totals differ from the replay, which are zero beyond it."""
        for says, part, column in zip(_SAYS, _parts(stored), self._columns, strict=True):
            given, held = np.zeros_like(part), column[slots_on(number)]
            given[: held.size] = held
            for place in np.flatnonzero(part != given)[:NAMED_MAX].tolist():
                yield f"slot {number * PAGE_SLOTS + place} {says.format(part[place])}, the ledger gives {given[place]}"

    def copy(self, *, seq: int, digest: bytes) -> None:
        """Copy the present totals, which are those at the entry of this sequence and hash, for `copied`."""
        columns = [column.copy() for column in self._columns]
        self._copied, self._beyond = (seq, digest, self._all_missing_units, columns), {}

    def copied(self) -> Totals:
        """The copied totals, completed from later pages. Raises LookupError without a copy."""
        if self._copied is None:
            raise LookupError("nothing was copied")
        seq, digest, missing_units, columns = self._copied
        for slot, beyond in self._beyond.items():
            for column, more in zip(columns[:-1], beyond[:-1], strict=True):
                column[slot] += more
            columns[-1][slot] = beyond[-1]
        pages = tuple(_page(number, seq, columns) for number in range(pages_for(self.spent.size)))
        return Totals(seq=seq, hash=digest, pages=pages, ahead_units=self._all_missing_units - missing_units)


def totals_digest(salt: bytes, pages: Iterable[StoredPage]) -> bytes:
    """SHA-256 over a salt and the totals of pages, in order."""
    sha = hashlib.sha256(_TAG + salt)
    for page in pages:
        totals = page.totals
        sha.update(_PAGE.pack(page.number, page.seq) + totals.spent.astype(">i8").tobytes())
        sha.update(totals.charged.astype(">u4").tobytes() + totals.left_out.astype(">u4").tobytes())
        if totals.ticks.any():
            sha.update(totals.ticks.astype(">u2").tobytes())
    return sha.digest()


def _parts(totals: PageTotals) -> list[NDArray[Any]]:
    ticks = totals.ticks if totals.ticks.size > 0 else np.zeros(PAGE_SLOTS, dtype=np.uint16)
    return [totals.spent, totals.charged, totals.left_out, ticks]


def _page(number: int, seq: int, columns: list[NDArray[Any]]) -> StoredPage:
    parts = []
    for column in columns:
        part = np.zeros(PAGE_SLOTS, dtype=column.dtype)
        held = column[slots_on(number)]
        part[: held.size] = held
        parts.append(part)
    spent, charged, left_out, ticks = parts
    totals = PageTotals(spent=spent, charged=charged, left_out=left_out, ticks=ticks if ticks.any() else ticks[:0])
    return StoredPage(number=number, seq=seq, totals=totals)
