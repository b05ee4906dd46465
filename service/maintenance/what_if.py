"""`ledger what-if`: a ledger replayed as if its dataset had another rule, another accounting or another budget.

An entry keeps the squared norm of every individual that its query touched, of those left out too, so that one pass over
entries and acts decides again who takes part (`supposed_replay`). With the dataset's own rule and budget every decision
comes out as it was. The numbers are exact, depend on every record, and are for operators alone.

A Gaussian costs the same under each accounting of rho, which decide by their budgets, and by the epsilon of a total.

The questions stay as they were asked, although an analyst that sees other answers may ask others. A pause is the
individual's own choice and counts against no rule: the paused are no contributions.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from decimal import Decimal

import numpy as np

from service.accounting.accountings import Accounting, OrderTooLow
from service.core.laws import Gaussian
from service.ledger.model.errors import NotFound
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.rows import DatasetRecord
from service.ledger.model.stated_guarantee import GuaranteeMismatch, StatedGuarantee
from service.ledger.ports.store import Store
from service.ledger.ports.transaction import Transaction
from service.maintenance.supposed_replay import SupposedReplay, SupposedRule
from service.reads.ledger import DELTA_OF_RHO_GUARANTEE

__all__ = ["NoBudget", "NormsMissing", "QueryOutcome", "WhatIf", "what_if"]


class NormsMissing(Exception):
    """The ledger does not hold the norms of every entry, so that it cannot be replayed under anything else."""


class NoBudget(Exception):
    """No budget follows from what is supposed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOutcome:
    """Numbers of individuals for one query: `counted`, of whom some `shortened`, and `left_out`, of whom some `paused`.

    `kept` sums the shares of contributions that are counted: it is below `counted` where some are shortened.
    `unknown` individuals were touched and have been erased since: they are in no other number.
    """

    sequence: int
    counted: int
    shortened: int
    left_out: int
    paused: int
    unknown: int
    kept: float

    @property
    def is_incomplete(self) -> bool:
        """Tell whether an individual that had not paused could not pay in full."""
        return self.shortened > 0 or self.left_out > self.paused


@dataclass(slots=True, kw_only=True)
class WhatIf:
    """The whole ledger under the supposed `rule` and `budget_units`, beside the dataset's own.

    A contribution is an individual that a query touches and that has not paused. `kept` sums the shares of them that
    are counted, and `kept_here` is the number that the ledger itself counts. `largest_units` is the largest spent
    total, whose epsilon is by `accounting` at `delta`; `returned` the number of individuals of whose earlier spending
    no more is known than its least.
    """

    dataset: str
    rule: SupposedRule
    own_rule: SupposedRule
    budget_units: int
    own_budget_units: int
    accounting: Accounting
    own_accounting: Accounting
    delta: Decimal
    queries: int = 0
    burns: int = 0
    ticks: int = 0
    contributions: int = 0
    kept: float = 0.0
    kept_here: int = 0
    shortened: int = 0
    left_out: int = 0
    paused: int = 0
    unknown: int = 0
    returned: int = 0
    first_incomplete: int | None = None
    largest_units: int = 0

    def add(self, outcome: QueryOutcome, *, kept_here: int) -> None:
        """Add a query, of which the ledger counts so many."""
        self.queries += 1
        self.contributions += outcome.counted + outcome.left_out - outcome.paused
        self.kept, self.kept_here = self.kept + outcome.kept, self.kept_here + kept_here
        self.shortened += outcome.shortened
        self.left_out += outcome.left_out
        self.paused += outcome.paused
        self.unknown += outcome.unknown
        if outcome.is_incomplete and self.first_incomplete is None:
            self.first_incomplete = outcome.sequence

    @property
    def share_kept(self) -> float:
        """The share of contributions that is kept, 1 where there are none."""
        return self.kept / self.contributions if self.contributions else 1.0

    @property
    def share_kept_here(self) -> float:
        """The share that the ledger itself counts."""
        return self.kept_here / self.contributions if self.contributions else 1.0

    @property
    def largest_epsilon(self) -> float:
        """The epsilon of the largest spent total at `delta`."""
        return self.accounting.epsilon_of_units(self.largest_units, self.delta)


def what_if(
    store: Store,
    dataset: str,
    *,
    rule: SupposedRule | None = None,
    guarantee: StatedGuarantee | None = None,
    accounting: Accounting | None = None,
    tell: Callable[[QueryOutcome], None] | None = None,
    watch: Callable[[str, int, int], None] | None = None,
) -> WhatIf:
    """Replay a ledger in one snapshot. A rule that is not given is each query's, anything else the dataset's own.

    `tell` is given the outcome of each query, `watch` the dataset, the sequence that was replayed and the last one.
    Raises NotFound, NormsMissing, NoBudget.
    """
    record = store.dataset(dataset)
    if record is None:
        raise NotFound(f"there is no dataset {dataset}")
    supposed, units = rule or record.rule, _budget_units(record, guarantee, accounting)
    found = WhatIf(
        dataset=dataset,
        rule=supposed,
        own_rule=record.rule,
        budget_units=units,
        own_budget_units=record.budget_units,
        accounting=accounting or record.accounting,
        own_accounting=record.accounting,
        delta=_delta(record, guarantee),
    )
    with store.transaction(record.id, lock=False) as transaction:
        replay = _begun(record, transaction, rule=rule, budget_units=units, accounting=found.accounting)
        for entry in transaction.entries(after=0):
            _replay_one(replay, entry, found, tell)
            if watch is not None:
                watch(dataset, entry.seq, transaction.head.seq)
        replay.end()
        found.largest_units, found.returned = int(replay.spent.max(initial=0)), replay.returned
    return found


def _delta(record: DatasetRecord, guarantee: StatedGuarantee | None) -> Decimal:
    """The delta of every epsilon: the supposed one, or the dataset's own."""
    stated = guarantee.delta if guarantee is not None else None
    return stated or Decimal(record.guarantee.delta or DELTA_OF_RHO_GUARANTEE)


def _budget_units(record: DatasetRecord, guarantee: StatedGuarantee | None, accounting: Accounting | None) -> int:
    """The supposed budget: of the supposed guarantee, or else of the dataset's own. Raises NoBudget."""
    if guarantee is None and accounting is None:
        return record.budget_units
    if guarantee is None:
        if record.guarantee.epsilon is None:
            raise NoBudget("the dataset states a rho; suppose a budget for another accounting")
        guarantee = StatedGuarantee.model_validate(asdict(record.guarantee))
    try:
        units = guarantee.budget_units(accounting or record.accounting)
    except OrderTooLow as refusal:
        raise NoBudget(f"order {refusal}") from None
    except GuaranteeMismatch as refusal:
        raise NoBudget(f"guarantee {refusal}") from None
    if units < 1:
        raise NoBudget("the budget is smaller than one unit of 2^-40 rho")
    return units


def _begun(
    record: DatasetRecord,
    transaction: Transaction,
    *,
    rule: SupposedRule | None,
    budget_units: int,
    accounting: Accounting,
) -> SupposedReplay:
    """A replay before the first entry. Raises NormsMissing where there is none."""
    if transaction.head.pruned_seq > 0:
        raise NormsMissing(f"entries up to {transaction.head.pruned_seq} are pruned and hold no norms")
    try:
        return SupposedReplay(record, transaction, rule=rule, budget_units=budget_units, accounting=accounting)
    except (KeyError, ValueError, TypeError, IndexError) as fault:
        raise NormsMissing("the journal cannot be read; `sparing ledger verify` names the rows") from fault


def _replay_one(
    replay: SupposedReplay, entry: LedgerEntry, found: WhatIf, tell: Callable[[QueryOutcome], None] | None
) -> None:
    """Replay one entry and add it to `found`.

    Raises NormsMissing where it cannot be read, or is not whole, NoBudget where it has no price.
    """
    if entry.kind == "query" and isinstance(entry.law, Gaussian) and entry.law.word not in found.accounting.mechanisms:
        raise NoBudget(
            f"ledger row {entry.seq} is of a Gaussian, which has no finite charge under {found.accounting.name}"
        )
    try:
        decisions = list(replay.decisions(entry))
    except (ValueError, IndexError) as fault:
        raise NormsMissing(_unreadable(entry)) from fault
    if entry.tick:
        found.ticks += 1
        return
    touched = sum(each.block.count for each in decisions)
    unknown = entry.charged_count + entry.left_out_count - touched
    if not entry.pieces or unknown < 0 or (unknown > 0 and not entry.is_rewritten):
        raise NormsMissing(_unreadable(entry))
    if entry.kind != "query":
        found.burns += 1
        return
    counted = sum(each.counted for each in decisions)
    left_out = sum(each.touched.count for each in decisions) - counted
    outcome = QueryOutcome(
        sequence=entry.seq,
        counted=counted,
        shortened=sum(each.shortened for each in decisions),
        left_out=left_out,
        paused=sum(each.paused for each in decisions),
        unknown=unknown,
        kept=sum(each.kept for each in decisions),
    )
    kept_here = sum(int(np.count_nonzero(each.block.active)) for each in decisions)
    found.add(outcome, kept_here=kept_here)
    if tell is not None:
        tell(outcome)


def _unreadable(entry: LedgerEntry) -> str:
    return f"ledger row {entry.seq}: its norms cannot be read; `sparing ledger verify` looks at the whole row"
