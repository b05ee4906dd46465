"""Every individual's account, replayed from a ledger under a rule and a budget that are supposed.

The filter is the service's own (`Accounts.active`), the acts come in their order: joining, pauses, lowered limits,
erasures. A limit that is all that the budget allowed follows the budget; a smaller one, uploaded or chosen, stays where
the other budget allows it. A burn charges as much as it did, at most all that is left. The paused are left out under
skip and clip, untouched under drop.

Under clip, by norms alone, an individual with too little left pays all of it, and the share of its contribution that is
kept is the length that its vector keeps, the square root of the share of the charge that it pays. The service rounds to
its grid and leaves a little unspent, so that this is an approximation. Of a query that was asked under clip the entry
says what was counted, and an individual that is shortened again pays that where it can.

Entries hold nothing of an individual that was erased after them. If it came back, the ledger's later decisions show how
much it must have spent before at least, or that it was left out before; no more is assumed.
"""

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from service.accounting.accountings import Accounting
from service.accounting.laws import repriced
from service.arrays import Integers, Mask
from service.core.release import Participants
from service.core.renyi_filter import Accounts, Touched
from service.ledger.model.journal import JournalAct
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.pieces import Measure, prices_of
from service.ledger.model.rows import DatasetRecord, SlotsInUse
from service.ledger.ports.transaction import Transaction
from service.maintenance.journal_state import JournalState

__all__ = ["Decision", "SupposedReplay", "SupposedRule"]

SupposedRule = Literal["skip", "drop", "clip"]
"""The rule for an individual that cannot pay; under `clip` its vector is shortened to what is left."""

_SLOTS_A_BYTE: Final = 8
"""A piece that marks slots ends with a whole byte."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decision:
    """A block as the entry has it, and who of it is `active` (p,) now among those `touched` now, at the same places.

    The number of active ones is `counted`, some of them `shortened`; `kept` sums the shares of their contributions.
    The number of touched ones that have `paused` is 0 where a rule leaves them untouched.
    """

    block: Participants
    touched: Touched
    active: Mask
    counted: int
    shortened: int
    paused: int
    kept: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Limits:
    """Limits in units by slot: `first` (n,) at joining, and what acts set afterwards, by act: (slot, units).

    The database keeps the present limit and an act the one before it; between them nothing is lost but a limit that
    an upload stated before an erasure, of which `first` has the bound.
    """

    first: Integers
    changes: dict[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, record: DatasetRecord, acts: Sequence[JournalAct], stored: SlotsInUse, slots: int) -> "_Limits":
        """Go back from the stored limits, act by act."""
        limits: Integers = np.zeros(slots, dtype=np.int64)
        is_held = stored.slots < slots
        limits[stored.slots[is_held]] = stored.limits[is_held]
        made, are_back = cls(first=limits), np.zeros(slots, dtype=np.bool_)
        are_back[stored.slots[is_held]] = stored.present[is_held]
        for act in reversed(acts):
            if act.act not in {"limit", "erase"}:
                continue
            slot = int(act.detail["slot"])
            if act.act == "limit":
                made.changes[act.number] = slot, int(act.detail["limit_units"])
                limits[slot] = int(act.detail["limit_before_units"])
                continue
            made.changes[act.number] = slot, int(limits[slot])
            if record.schema.has_budget_column and are_back[slot]:  # perhaps with a smaller one
                limits[slot] = record.budget_units - record.reserve_units
            are_back[slot] = True
        return made


class SupposedReplay:
    """Every individual's account in one pass over a ledger, under a rule and a budget that are supposed.

    `returned` counts the individuals that came back after an erasure and of whom something had to be assumed.
    """

    def __init__(
        self,
        record: DatasetRecord,
        transaction: Transaction,
        *,
        rule: SupposedRule | None,
        budget_units: int,
        accounting: Accounting,
    ) -> None:
        """Read the acts and the stored limits. The entries come by `decisions`, all of them and in order.

        Without a `rule` each query has its own.
        """
        self._rule, self._own_rule, self._accounting = rule, record.rule, accounting
        self._drops = (rule or record.rule) == "drop"
        self._units, self._own_units = budget_units, record.budget_units
        self._largest_units = max(record.budget_units, budget_units)
        self._then = JournalState.of(replace(record, budget_units=self._largest_units))
        self._slots = transaction.head.slots
        acts, slots = transaction.acts(after=0), -(-self._slots // _SLOTS_A_BYTE) * _SLOTS_A_BYTE
        self._acts = deque(acts)
        self._limits = _Limits.of(record, acts, transaction.individuals(), slots)
        nothing: Integers = np.zeros(slots, dtype=np.int64)
        self._accounts = Accounts.of(spent=nothing, limits=nothing, paused=np.zeros(slots, dtype=np.bool_))
        self._own_limits: Integers = nothing.copy()
        self._was_left_out = np.zeros(slots, dtype=np.uint8)
        self._joined = 0
        self._unrecorded = _Unrecorded.of(acts, slots)

    @property
    def spent(self) -> Integers:
        """The spent totals so far by slot, (slots,) units."""
        return self._accounts.spent[: self._slots]

    @property
    def returned(self) -> int:
        """The number of individuals of whose time before an erasure the later decisions show something."""
        return 0 if self._unrecorded is None else int(np.count_nonzero(self._unrecorded.ever_missed))

    def decisions(self, entry: LedgerEntry) -> Iterator[Decision]:
        """Decide about the next entry, block by block, and debit it.

        Raises ValueError for pieces that cannot be read, IndexError for a slot that nobody has.
        """
        for act in self._then.follow(self._acts, before=entry.seq):
            self._apply(act)
        if entry.tick:  # it is paid from the reserve, and decides about nobody
            return
        law = repriced(entry.law, self._accounting.name)
        for block, charges in entry.blocks(law):
            whole = charges if block.asked is None else prices_of(Measure.NORMS, block.asked.astype(np.int64), law)
            if block.touched.end > self._joined:
                self._then.make_room(self._slots)
                self._let_join()
            if self._unrecorded is not None:
                self._learn(self._unrecorded, entry, block, whole, charges)
            yield self._decided(block, whole, charges) if entry.kind == "query" else self._burned(block, charges)

    def end(self) -> None:
        """Apply the acts after the last entry."""
        for act in self._then.follow(self._acts, before=sys.maxsize):
            self._apply(act)

    def _apply(self, act: JournalAct) -> None:
        self._let_join()
        if act.act in {"pause", "resume"}:
            slot = int(act.detail["slot"])
            self._accounts.paused[slot] = self._then.have_paused[slot]
        if act.number in self._limits.changes:
            slot, units = self._limits.changes[act.number]
            if act.act == "erase" and self._unrecorded is not None:
                self._assume(self._unrecorded, np.array([slot]), -self._unrecorded.missing[[slot]])
            self._set_limits(slice(slot, slot + 1), np.array([units]))

    def _let_join(self) -> None:
        """Give limits to the slots that were handed out since."""
        to = min(self._then.slots, self._slots)
        if to > self._joined:
            self._set_limits(slice(self._joined, to), self._limits.first[self._joined : to])
            self._joined = to

    def _set_limits(self, slots: slice, units: Integers) -> None:
        """Set the ledger's own limits, and the supposed ones: those as large as the budget allowed follow it."""
        largest = self._then.largest[slots]
        own = np.maximum(largest - (self._largest_units - self._own_units), 0)
        supposed = np.maximum(largest - (self._largest_units - self._units), 0)
        self._own_limits[slots] = np.minimum(units, own)
        self._accounts.set_limits(slots, np.where(units >= own, supposed, np.minimum(units, supposed)))

    def _burned(self, block: Participants, units: Integers) -> Decision:
        left = np.maximum(self._accounts.room[block.touched.index], 0)
        self._accounts.debit(block.touched, block.active, np.minimum(units, left))
        count = block.count
        return Decision(
            block=block, touched=block.touched, active=block.active, counted=count, shortened=0, paused=0, kept=count
        )

    def _decided(self, block: Participants, prices: Integers, charges: Integers) -> Decision:
        """`prices` (p,) are of whole vectors, `charges` (p,) of what was counted."""
        accounts, touched = self._accounts, block.touched
        resting = accounts.paused[touched.index]
        if self._drops:
            touched = Touched(touched.index, ~resting if touched.marks is None else np.greater(touched.marks, resting))
        before = self._was_left_out[touched.index] if self._drops else None
        active = accounts.active(touched, prices, before)
        whole = int(np.count_nonzero(active))
        pays, kept, shortened = prices, float(whole), 0
        if self._rule == "clip" or (self._rule is None and block.asked is not None):
            room = np.array(accounts.room[touched.index])
            is_short = touched.among((room > 0) & ~resting & ~active)
            if before is not None:
                is_short &= before == 0
            if block.asked is not None:
                is_short &= block.active
                room = np.where(charges < prices, np.minimum(room, charges), room)
            shortened, kept = int(np.count_nonzero(is_short)), kept + float(_lengths(room, prices, is_short).sum())
            active, pays = active | is_short, np.where(is_short, room, prices)
        accounts.debit(touched, active, pays)
        if self._drops:
            self._was_left_out[touched.slots(touched.among(~active))] = 1
        return Decision(
            block=block,
            touched=touched,
            active=active,
            counted=whole + shortened,
            shortened=shortened,
            paused=0 if self._drops else int(np.count_nonzero(touched.among(resting))),
            kept=kept,
        )

    def _learn(
        self, unrecorded: "_Unrecorded", entry: LedgerEntry, block: Participants, prices: Integers, charges: Integers
    ) -> None:
        """Learn from what the ledger decided of individuals of whom entries are silent before.

        One that it left out or shortened, although all that is known was affordable, has spent the rest before; or,
        under the drop rule of the ledger, one that it left out was left out before.
        """
        index = block.touched.index
        places = np.flatnonzero(block.touched.among(unrecorded.was_erased[index]))
        if places.size == 0:
            return
        slots = places + index.start if isinstance(index, slice) else index[places]
        prices, charges, active = prices[places], charges[places], block.active[places]
        if entry.kind == "query":
            is_out, is_short = ~active & ~self._accounts.paused[slots], active & (charges < prices)
            least = self._own_limits[slots] - unrecorded.recorded[slots] - prices + 1
            if self._own_rule == "drop":
                silent = slots[is_out & (least > 0) & ~unrecorded.was_left_out[slots]]
                self._was_left_out[silent], unrecorded.ever_missed[silent] = 1, True
                unrecorded.was_left_out[slots] |= is_out
                is_out = np.zeros_like(is_out)
            more = np.where(is_out | is_short, np.maximum(least - unrecorded.missing[slots], 0), 0)
            self._assume(unrecorded, slots, more)
        unrecorded.recorded[slots] += np.where(active, charges, 0)

    def _assume(self, unrecorded: "_Unrecorded", slots: Integers, units: Integers) -> None:
        """Add `units` (k,) to what some slots (k,) must have spent in entries that do not hold it."""
        unrecorded.missing[slots] += units
        unrecorded.ever_missed[slots] |= units > 0
        self._accounts.set_spent(slots, self._accounts.spent_of(slots) + units)


@dataclass(slots=True, kw_only=True, eq=False)
class _Unrecorded:
    """By slot: who `was_erased` at any time, and of those the units `recorded` so far, and whether it `was_left_out`.

    `missing` units must have been spent in entries that hold nothing of it; `ever_missed` marks who has been learnt of.
    """

    was_erased: Mask
    was_left_out: Mask
    recorded: Integers
    missing: Integers
    ever_missed: Mask

    @classmethod
    def of(cls, acts: Sequence[JournalAct], slots: int) -> "_Unrecorded | None":
        """The unrecorded; None where nobody was erased, and entries hold everything."""
        erased = [int(act.detail["slot"]) for act in acts if act.act == "erase"]
        if not erased:
            return None
        was_erased, was_left_out, ever_missed = np.zeros((3, slots), dtype=np.bool_)
        was_erased[erased] = True
        recorded, missing = np.zeros((2, slots), dtype=np.int64)
        return cls(
            was_erased=was_erased,
            was_left_out=was_left_out,
            recorded=recorded,
            missing=missing,
            ever_missed=ever_missed,
        )


def _lengths(room: Integers, prices: Integers, is_short: Mask) -> NDArray[np.float64]:
    """The share of its length that each shortened vector keeps."""
    return np.sqrt(room[is_short] / prices[is_short])
