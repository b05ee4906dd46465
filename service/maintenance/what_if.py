"""`ledger what-if`: a ledger replayed as if its dataset had another rule, another accounting or another budget.

An entry keeps the squared norm of every individual that its query touched, whether active or left out. So one pass over
entries and acts decides again who takes part (`supposed_replay`). With the dataset's own rule and budget every decision
comes out as it was. The numbers are exact, depend on every record, and are for operators alone.

Every accounting of rho charges the same for a Gaussian. These accountings differ in the budget that a guarantee gives,
and in the epsilon of a total.

The queries stay as they were asked, although an analyst that had seen other answers might have asked others. A pause is
the individual's own choice and counts against no rule: paused individuals are not counted as contributions.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from decimal import Decimal

from service.accounting.accountings import Accounting, OrderTooLow
from service.ledger.model.errors import NotFound
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.rows import DatasetRecord
from service.ledger.model.stated_guarantee import GuaranteeMismatch, StatedGuarantee
from service.ledger.ports.store import Store
from service.maintenance.replay import Watch
from service.maintenance.supposed_replay import NoBudget, QueryOutcome, SupposedReplay, SupposedRule
from service.reads.ledger import DELTA_OF_RHO_GUARANTEE


@dataclass(slots=True, kw_only=True)
class WhatIf:
    """The whole ledger under the supposed `rule` and `budget_units`, beside those of its `record`.

    A contribution is an individual that a query touches and that has not paused. `kept` sums the shares of the
    contributions that are counted, and `kept_here` is how many the ledger itself counts. `largest_units` is the largest
    spent total, whose epsilon is by `accounting` at `delta`. `returned` is the number of individuals of whose earlier
    spending only a lower bound is known.
    """

    record: DatasetRecord
    rule: SupposedRule
    budget_units: int
    accounting: Accounting
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

    def add(self, entry: LedgerEntry, outcome: QueryOutcome | None) -> None:
        """Add an entry, with its outcome where it is a query."""
        if outcome is None:
            self.ticks += entry.tick > 0
            self.burns += entry.kind == "burn"
            return
        self.queries += 1
        self.contributions += outcome.counted + outcome.left_out - outcome.paused
        self.kept, self.kept_here = self.kept + outcome.kept, self.kept_here + outcome.counted_here
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
        """The share of contributions that the ledger itself counts."""
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
    watch: Watch | None = None,
) -> WhatIf:
    """Replay a ledger in one snapshot. By default the rule is each query's own, and everything else the dataset's.

    `tell` is called with the outcome of each query. Raises NotFound, NormsMissing, NoBudget.
    """
    record = store.dataset(dataset)
    if record is None:
        raise NotFound(f"there is no dataset {dataset}")
    found = WhatIf(
        record=record,
        rule=rule or record.rule,
        budget_units=_budget_units(record, guarantee, accounting),
        accounting=accounting or record.accounting,
        delta=_delta(record, guarantee),
    )

    def add(entry: LedgerEntry, outcome: QueryOutcome | None) -> None:
        found.add(entry, outcome)
        if outcome is not None and tell is not None:
            tell(outcome)

    with store.transaction(record.id, lock=False) as transaction:
        supposed = SupposedReplay(
            record, transaction, rule=rule, budget_units=found.budget_units, accounting=found.accounting, tell=add
        )
        supposed.run(watch=watch)
    found.largest_units, found.returned = int(supposed.spent.max(initial=0)), supposed.returned
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
