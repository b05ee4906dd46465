"""Every individual's account, replayed from a ledger under a rule and a budget that are supposed.

The filter is the service's own (`Accounts.active`). The acts come in their order: joining, pauses, lowered limits,
erasures. A limit that is all that the budget allowed follows the supposed budget. A smaller limit, uploaded or chosen,
stays where the supposed budget allows it. A burn charges as much as it did, at most all that is left. Paused
individuals are left out under skip and clip, and untouched under drop.

Under clip an individual with too little left pays all of it, and its vector is shortened. Only norms are known, so the
share of its contribution that is kept is taken as the share of the vector's length: the square root of the share of the
charge that it pays. The service also rounds to its grid and leaves a little unspent, so that this is an approximation.
If a query was asked under clip, its entry says what a shortened individual was charged; if that individual is shortened
again, it pays the same where it can.

Entries hold nothing of an individual that was erased after them. If it came back, later decisions of the ledger show
the least that it must have spent before, or that it was left out before. No more is assumed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np

from service.accounting.accountings import Accounting
from service.accounting.laws import repriced
from service.arrays import Integers, Mask
from service.core.laws import Gaussian
from service.core.renyi_filter import Accounts, Touched
from service.ledger.model.journal import JournalAct
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.priced import Priced
from service.ledger.model.rows import DatasetRecord, SlotsInUse
from service.ledger.ports.transaction import Transaction
from service.maintenance.journal_state import JournalState
from service.maintenance.replay import Visitor, Watch, replay

SupposedRule = Literal["skip", "drop", "clip"]
"""The rule for an individual that cannot pay; under `clip` its vector is shortened to what is left."""

_WHOLE_ROW: Final = "`sparing ledger verify` looks at the whole row"
_JOURNAL: Final = "the journal cannot be read; `sparing ledger verify` names the rows"


class NormsMissing(Exception):
    """The ledger does not hold the norms of every entry, so that it cannot be replayed under another rule or budget."""


class NoBudget(Exception):
    """The supposed guarantee or accounting gives no budget, or no price."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryOutcome:
    """One query decided again: the individuals `touched` (p of them), and which of these are `active`, (p,).

    Of the active individuals `shortened` count in part only, and `kept` sums the shares of all contributions that
    count. `counted_here` is how many individuals the ledger itself counts. `paused` is how many of those left out are
    paused, 0 where the rule leaves the paused untouched. `unknown` individuals were touched and have been erased since:
    no other number includes them.
    """

    sequence: int
    touched: Touched
    active: Mask
    shortened: int
    paused: int
    unknown: int
    kept: float
    counted_here: int

    @property
    def counted(self) -> int:
        """The number of individuals that are counted."""
        return int(np.count_nonzero(self.active))

    @property
    def left_out(self) -> int:
        """The number of individuals that are left out."""
        return self.touched.count - self.counted

    @property
    def is_incomplete(self) -> bool:
        """Tell whether an individual that had not paused could not pay in full."""
        return self.shortened > 0 or self.left_out > self.paused


Tell = Callable[[LedgerEntry, QueryOutcome | None], None]
"""The function that is called with each entry, and with its outcome if it is a query; burns and ticks have None."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Limits:
    """Limits in units: by slot `first` (n,) at joining, and by act's number the later `changes`: (slot, units).

    The database keeps the present limit, and each act keeps the limit before it. Only a limit that an upload stated
    before an erasure is lost; `first` then holds an upper bound.
    """

    first: Integers
    changes: dict[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, record: DatasetRecord, acts: Sequence[JournalAct], stored: SlotsInUse, slots: int) -> "_Limits":
        """The limits, found by going back from the stored ones act by act."""
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


class SupposedReplay(Visitor):
    """Every individual's account in one pass over a ledger, under a rule and a budget that are supposed.

    `returned` counts the individuals that came back after an erasure and about whose earlier time something was
    assumed.
    """

    def __init__(
        self,
        record: DatasetRecord,
        transaction: Transaction,
        *,
        rule: SupposedRule | None,
        budget_units: int,
        accounting: Accounting,
        tell: Tell,
    ) -> None:
        """Read the acts and the stored limits; `tell` is called with each entry.

        Without a `rule` each query keeps its own. Raises NormsMissing.
        """
        head = transaction.head
        if head.pruned_seq > 0:
            raise NormsMissing(f"entries up to {head.pruned_seq} are pruned and hold no norms")
        self._record, self._transaction = record, transaction
        self._rule, self._accounting, self._tell = rule, accounting, tell
        self._drops = (rule or record.rule) == "drop"
        self._units, self._largest_units = budget_units, max(record.budget_units, budget_units)
        self._slots, self._joined = head.slots, 0
        self._acts = transaction.acts(after=0)
        with _reading(_JOURNAL):
            self._limits = _Limits.of(record, self._acts, transaction.individuals(), self._slots)
            self._unrecorded = _Unrecorded.of(self._acts, self._slots)
        nothing: Integers = np.zeros(self._slots, dtype=np.int64)
        self._accounts = Accounts.of(spent=nothing, limits=nothing, paused=np.zeros(self._slots, dtype=np.bool_))
        self._own_limits: Integers = nothing.copy()
        self._was_left_out = np.zeros(self._slots, dtype=np.bool_)

    @property
    def spent(self) -> Integers:
        """The spent totals so far by slot, (slots,) units."""
        return self._accounts.spent

    @property
    def returned(self) -> int:
        """The number of individuals about whose time before an erasure something had to be assumed."""
        return int(np.count_nonzero(self._unrecorded.ever_missed))

    def run(self, *, watch: Watch | None = None) -> None:
        """Replay the whole ledger. Raises NormsMissing where it cannot be read, NoBudget where it has no price."""
        record = replace(self._record, budget_units=self._largest_units)
        replay(record, self._transaction, self._acts, [self], watch=watch)

    def act(self, act: JournalAct, then: JournalState) -> None:
        """Pause and resume, and set the limits that the act sets."""
        with _reading(_JOURNAL):
            self._let_join(then)
            if act.act in {"pause", "resume"}:
                slot = int(act.detail["slot"])
                self._accounts.paused[slot] = then.have_paused[slot]
            if act.number in self._limits.changes:
                slot, units = self._limits.changes[act.number]
                if act.act == "erase":
                    self._assume(np.array([slot]), -self._unrecorded.missing[[slot]])
                self._set_limits(then, slice(slot, slot + 1), np.array([units]))

    def entry(self, entry: LedgerEntry, then: JournalState) -> None:
        """Decide which individuals the next entry counts, and debit them."""
        law, mechanisms = entry.law, self._accounting.mechanisms
        if entry.kind == "query" and isinstance(law, Gaussian) and law.word not in mechanisms:
            name = self._accounting.name
            raise NoBudget(f"ledger row {entry.seq} is of a Gaussian, which has no finite charge under {name}")
        if entry.tick:  # it is paid from the reserve, and decides about nobody
            self._tell(entry, None)
            return
        with _reading(f"ledger row {entry.seq}: its norms cannot be read; {_WHOLE_ROW}"):
            priced = entry.priced(repriced(law, self._accounting.name))
            unknown = entry.charged_count + entry.left_out_count - priced.touched.size
            if unknown < 0 or (unknown > 0 and not entry.is_rewritten):
                raise ValueError("the pieces hold other numbers of individuals than the entry")
            if priced.touched.size > 0 and priced.touched[-1] >= self._joined:
                then.make_room(self._slots)
                self._let_join(then)
            self._learn(entry, priced)
            outcome = None
            if entry.kind == "query":
                outcome = self._decided(entry, priced, unknown)
            else:
                self._burn(priced)
        self._tell(entry, outcome)

    def _let_join(self, then: JournalState) -> None:
        """Give limits to the slots that have come into use since the last call."""
        to = min(then.slots, self._slots)
        if to > self._joined:
            self._set_limits(then, slice(self._joined, to), self._limits.first[self._joined : to])
            self._joined = to

    def _set_limits(self, then: JournalState, slots: slice, units: Integers) -> None:
        """Set the ledger's own limits, and the supposed ones.

        A limit that is the whole budget follows the supposed budget.
        """
        largest = then.largest[slots]
        own = np.maximum(largest - (self._largest_units - self._record.budget_units), 0)
        supposed = np.maximum(largest - (self._largest_units - self._units), 0)
        self._own_limits[slots] = np.minimum(units, own)
        self._accounts.set_limits(slots, np.where(units >= own, supposed, np.minimum(units, supposed)))

    def _burn(self, priced: Priced) -> None:
        left = np.maximum(self._accounts.room[priced.touched], 0)
        self._accounts.debit(Touched(priced.touched), priced.active, np.minimum(priced.prices, left))

    def _decided(self, entry: LedgerEntry, priced: Priced, unknown: int) -> QueryOutcome:
        accounts, slots, prices = self._accounts, priced.touched, priced.asked
        resting, was_out = accounts.paused[slots], self._was_left_out[slots] & self._drops
        touched = Touched(slots, ~resting if self._drops else None)
        active = accounts.active(touched, prices, was_out.view(np.uint8))
        whole = int(np.count_nonzero(active))
        pays, kept, shortened = prices, float(whole), 0
        was_clipped = priced.quantities.norms_before is not None
        if self._rule == "clip" or (self._rule is None and was_clipped):
            room = accounts.room[slots]
            is_short = (room > 0) & ~resting & ~active & ~was_out
            if was_clipped:
                is_short &= priced.active
                room = np.where(priced.prices < prices, np.minimum(room, priced.prices), room)
            lengths = np.sqrt(room[is_short] / prices[is_short])  # the share of its length that each vector keeps
            shortened, kept = lengths.size, kept + float(lengths.sum())
            active, pays = active | is_short, np.where(is_short, room, prices)
        accounts.debit(touched, active, pays)
        self._was_left_out[slots[touched.among(~active)]] = True
        return QueryOutcome(
            sequence=entry.seq,
            touched=touched,
            active=active,
            shortened=shortened,
            paused=int(np.count_nonzero(touched.among(resting))),
            kept=kept,
            counted_here=int(np.count_nonzero(priced.active)),
            unknown=unknown,
        )

    def _learn(self, entry: LedgerEntry, priced: Priced) -> None:
        """Learn what erased individuals must have spent in entries that no longer hold them.

        The ledger may have left out or shortened an individual that could have paid by all that is known: that
        individual has spent the rest before. Under the ledger's drop rule, an individual left out in this way counts as
        left out before.
        """
        unrecorded = self._unrecorded
        places = np.flatnonzero(unrecorded.was_erased[priced.touched])
        slots, active = priced.touched[places], priced.active[places]
        prices, charges = priced.asked[places], priced.prices[places]
        if entry.kind == "query":
            is_out, is_short = ~active & ~self._accounts.paused[slots], active & (charges < prices)
            least = self._own_limits[slots] - unrecorded.recorded[slots] - prices + 1
            if self._record.rule == "drop":
                silent = slots[is_out & (least > 0) & ~unrecorded.was_left_out[slots]]
                self._was_left_out[silent], unrecorded.ever_missed[silent] = True, True
                unrecorded.was_left_out[slots] |= is_out
                is_out = np.zeros_like(is_out)
            self._assume(slots, np.where(is_out | is_short, np.maximum(least - unrecorded.missing[slots], 0), 0))
        unrecorded.recorded[slots] += np.where(active, charges, 0)

    def _assume(self, slots: Integers, units: Integers) -> None:
        """Add `units` (k,) to what `slots` (k,) must have spent in entries that do not hold it."""
        self._unrecorded.missing[slots] += units
        self._unrecorded.ever_missed[slots] |= units > 0
        self._accounts.set_spent(slots, self._accounts.spent_of(slots) + units)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Unrecorded:
    """The facts of erased individuals, by slot.

    `was_erased` marks slots that were erased at any time, and `recorded` are the units that entries have charged them
    so far. `was_left_out` marks those that an entry left out for want of budget. `missing` units must have been spent
    in entries that no longer hold the individual. `ever_missed` marks the slots about which anything was assumed.
    """

    was_erased: Mask
    was_left_out: Mask
    recorded: Integers
    missing: Integers
    ever_missed: Mask

    @classmethod
    def of(cls, acts: Sequence[JournalAct], slots: int) -> "_Unrecorded":
        """The facts before any entry is read."""
        was_erased, was_left_out, ever_missed = np.zeros((3, slots), dtype=np.bool_)
        was_erased[[int(act.detail["slot"]) for act in acts if act.act == "erase"]] = True
        recorded, missing = np.zeros((2, slots), dtype=np.int64)
        return cls(
            was_erased=was_erased,
            was_left_out=was_left_out,
            recorded=recorded,
            missing=missing,
            ever_missed=ever_missed,
        )


@contextmanager
def _reading(refusal: str) -> Iterator[None]:
    """Raise NormsMissing with `refusal` for an error in the block that a damaged row causes."""
    try:
        yield
    except (KeyError, ValueError, TypeError, IndexError) as fault:
        raise NormsMissing(refusal) from fault
