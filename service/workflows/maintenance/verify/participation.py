"""Whether the individuals in each entry are those that could pay for it, by the limits and pauses in force then.

Where the journal only bounds a limit, no individual may be charged beyond the bound, and whether one was left out
rightly is unknown.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import Integers, kept
from service.workflows.maintenance.verify.accounts import NAMED_MAX
from service.workflows.maintenance.verify.journal import JournalState
from service.workflows.model.journal import JournalAct
from service.workflows.model.ledger_entry import LedgerEntry
from service.workflows.model.rows import DatasetRecord


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Priced:
    """The slots that an entry touched (k,), which of them it charged (`active`, (k,)), and the units of each (k,)."""

    touched: Integers
    active: NDArray[np.bool_]
    prices: Integers

    @classmethod
    def of(cls, entry: LedgerEntry) -> Self:
        """Compute the charges again from an entry's pieces. Raises ValueError or IndexError if they cannot be read."""
        quantities = entry.quantities()
        prices = quantities.prices(entry.sigma_steps)
        return cls(touched=quantities.touched, active=quantities.active, prices=prices)

    @property
    def charged(self) -> Integers:
        """The slots that were charged."""
        return kept(self.active, self.touched)

    @property
    def charges(self) -> Integers:
        """The charge of each slot that was charged."""
        return kept(self.active, self.prices)

    @property
    def left_out(self) -> Integers:
        """The slots that were left out."""
        return kept(~self.active, self.touched)

    @property
    def of_left_out(self) -> Integers:
        """The charge that each slot left out would have had."""
        return kept(~self.active, self.prices)


class Participation:
    """The filter's decisions made again, entry by entry, with the acts in between."""

    def __init__(self, record: DatasetRecord, acts: Sequence[JournalAct]) -> None:
        self._then = JournalState.of(record)
        self._acts = deque(acts)

    def wrong_with(
        self, entry: LedgerEntry, priced: Priced, spent: Integers, *, is_known: NDArray[np.bool_]
    ) -> Iterator[str]:
        """Findings against the entry from the limits and pauses before it, and the `spent` totals.

        Unknown totals are lower bounds.
        """
        self._follow(before=entry.seq)
        then = self._then
        is_told = priced.touched < then.slots
        slots, active = priced.touched[is_told], priced.active[is_told]
        can_pay = spent[slots] + priced.prices[is_told] <= then.limits[slots]
        for slot in slots[active & ~can_pay][:NAMED_MAX].tolist():
            yield f"charges slot {slot} beyond its limit"
        if entry.kind != "query":
            return
        have_paused = then.have_paused[slots]
        for slot in slots[active & have_paused][:NAMED_MAX].tolist():
            yield f"charges slot {slot}, which has paused"
        is_certain = then.are_exact[slots] & is_known[slots]
        for slot in slots[~active & ~have_paused & can_pay & is_certain][:NAMED_MAX].tolist():
            yield f"leaves out slot {slot}, which could pay"

    def _follow(self, *, before: int) -> None:
        while self._acts and self._acts[0].at_seq < before:
            try:
                self._then.apply(self._acts.popleft())
            except (KeyError, ValueError, TypeError, IndexError):  # reported by the verification of the journal
                continue
