"""Amendments compared with the journal and the entries: every changed content must be accounted for.

An amendment takes one erased individual out of one entry, whose charge for it is then unknown; all entries together
miss as many units as the accounts of erased individuals hold beyond the replay.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from service.core.arrays import Integers
from service.workflows.model.amendments import Amendment, amendments_digest
from service.workflows.model.journal import JournalAct
from service.workflows.model.ledger_entry import LedgerEntry

Place = tuple[int, int]
"""Sequence and number of an amended part."""


class _Stretch(NamedTuple):
    """Entries with `after` < seq <= `to`, whose amendments of one erasure have this digest."""

    erasure: int
    after: int
    to: int
    digest: str


class Amended:
    """All amendments of a dataset. `findings` are about their rows; `slots` (n,) are of the erased, increasing."""

    def __init__(self, amendments: Iterable[Amendment], acts: Sequence[JournalAct]) -> None:
        self.findings: list[str] = []
        self._by_place: dict[Place, list[Amendment]] = defaultdict(list)
        self._by_erasure: dict[int, list[Amendment]] = defaultdict(list)
        for each in amendments:
            self._by_place[each.seq, each.number].append(each)
            self._by_erasure[each.erasure].append(each)
        stretches = [each for act in acts if act.act == "amend" for each in self._stretch(act)]
        erased = {act.number: act.detail.get("slot") for act in acts if act.act == "erase"}
        slots = {erased.get(each.erasure) for each in stretches}
        self.slots: Integers = np.array(sorted(each for each in slots if isinstance(each, int)), dtype=np.int64)
        self._check_rows(stretches)

    def count(self, entry: LedgerEntry) -> int:
        """The number of individuals taken out of an entry."""
        return sum(len(self._by_place.get((entry.seq, number), ())) for number, _, _ in _parts(entry))

    def wrong_with(self, entry: LedgerEntry) -> Iterator[str]:
        """Findings if an entry's content is not the one that its amendments lead to."""
        for number, written, held in _parts(entry):
            leads_to = written
            for each in self._by_place.get((entry.seq, number), ()):
                if each.old_digest != leads_to:
                    yield f"its part {number} was amended from something else"
                leads_to = each.new_digest
            if leads_to != held:
                yield f"its part {number} is not the one that its amendments lead to"

    def _stretch(self, act: JournalAct) -> Iterator[_Stretch]:
        try:
            erasure, after, to = (int(act.detail[name]) for name in ("erasure", "after", "to"))
            yield _Stretch(erasure, after, to, str(act.detail["digest"]))
        except (KeyError, ValueError, TypeError) as error:
            self.findings.append(f"journal row {act.number}: its detail makes no sense ({type(error).__name__})")

    def _check_rows(self, stretches: Sequence[_Stretch]) -> None:
        told = 0
        for erasure, after, to, digest in stretches:
            rows = [each for each in self._by_erasure[erasure] if after < each.seq <= to]
            told += len(rows)
            if amendments_digest(rows).hex() != digest:
                named = f"rows {after + 1} to {to} of act {erasure}"
                self.findings.append(f"amendments: {named} are not those of the journal")
        if told != sum(map(len, self._by_erasure.values())):
            self.findings.append("amendments: there are rows of which no act tells")


def _parts(entry: LedgerEntry) -> Iterator[tuple[int, bytes, bytes]]:
    """(number, digest as written, digest of what is held) of each part."""
    for piece in entry.pieces:
        yield piece.number, piece.bound_digest, piece.digest
