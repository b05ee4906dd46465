"""The state to which the acts of a journal lead: fields of the head, and every individual's limit and presence.

The act of an upload names the slots of the individuals that joined. If these are too many, it names pages only. From
then on it is not known which slots are in use (`JournalState.is_told`), and limits are only bounded where individuals
may have come back.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from service.arrays import Integers, Mask
from service.ledger.model.journal import JournalAct, joined_slots
from service.ledger.model.rows import DatasetRecord


@dataclass(slots=True)
class JournalState:
    """The state that follows from the acts so far; `budget_units` is the largest limit, less the monitor's reserve.

    The arrays are by slot. `limits` are in units: exact where `are_exact`, elsewhere upper bounds. `largest` is the
    largest limit that was ever in force. `are_present` marks individuals that are not erased, `have_paused` those that
    are paused now, `are_plain` those that never paused. `is_told` says whether all slots are known.
    """

    budget_units: int
    has_own_limits: bool
    epoch: int = 1
    fence: int = 1
    joining_units: int = 0
    slots: int = 0
    is_told: bool = True
    limits: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    largest: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    are_exact: Mask = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    are_present: Mask = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    have_paused: Mask = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    are_plain: Mask = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    @classmethod
    def of(cls, record: DatasetRecord) -> Self:
        """The state before any act."""
        units = max(record.budget_units - record.reserve_units, 0)
        return cls(budget_units=units, has_own_limits=record.schema.has_budget_column)

    def apply(self, act: JournalAct) -> None:
        """Apply an act. Raises KeyError, ValueError, TypeError or IndexError when its detail is invalid."""
        detail = act.detail
        match act.act:
            case "rows":
                self._join(detail)
            case "limit":
                self.make_room(int(detail["slot"]) + 1)
                self.limits[int(detail["slot"])] = int(detail["limit_units"])
                self.are_exact[int(detail["slot"])] = True
            case "erase":
                self.make_room(int(detail["slot"]) + 1)
                self.are_present[int(detail["slot"])] = False
            case "amend" | "prune" | "archive" | "correct" | "erasure_request":
                pass  # acts that change neither accounts nor the head
            case "epoch" | "extend":
                self.epoch = int(detail["epoch"])
            case "reconcile":
                self.fence, self.joining_units = int(detail["fence"]), int(detail["joining_units"])
            case _ if "slot" in detail:  # a pause or resumption
                self.make_room(int(detail["slot"]) + 1)
                self.are_plain[int(detail["slot"])] = False
                self.have_paused[int(detail["slot"])] = act.act == "pause"

    def follow(self, acts: deque[JournalAct], *, before: int) -> Iterator[JournalAct]:
        """Take the acts that stand before the entry `before` off `acts`, apply them, and yield each.

        An act whose detail is invalid is passed over: the verification of the journal reports it.
        """
        while acts and acts[0].at_seq < before:
            act = acts.popleft()
            try:
                self.apply(act)
            except (KeyError, ValueError, TypeError, IndexError):
                continue
            yield act

    def _join(self, detail: Mapping[str, Any]) -> None:
        joined = None if "of" in detail["joined"] else joined_slots(detail)
        if joined is None and bool(self.are_present.all()):  # no individual can have come back
            joined = self.slots + np.arange(int(detail["individuals"]))
        if joined is None or not self.is_told:
            self.is_told = False
            if self.has_own_limits:  # an absent individual may have come back with a lower one
                self.are_exact[~self.are_present] = False
            return
        self.are_present[joined[joined < self.slots]] = True
        if self.has_own_limits:
            self.are_exact[joined[joined < self.slots]] = False
        limit = max(self.budget_units - self.joining_units, 0)
        self._grow(int(np.count_nonzero(joined >= self.slots)), limit=limit, is_exact=not self.has_own_limits)

    def _grow(self, count: int, *, limit: int, is_exact: bool) -> None:
        added = {"limits": limit, "largest": limit, "are_exact": is_exact}
        added |= {"are_present": True, "have_paused": False, "are_plain": True}
        for name, value in added.items():
            held = getattr(self, name)
            setattr(self, name, np.concatenate([held, np.full(count, value, dtype=held.dtype)]))
        self.slots += count

    def make_room(self, slots: int) -> None:
        """Extend to `slots` slots, unless all slots are told; the budget is the bound of each new limit."""
        if slots > self.slots and not self.is_told:
            self._grow(slots - self.slots, limit=self.budget_units, is_exact=False)
