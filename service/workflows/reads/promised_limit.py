"""The largest limit that was ever in force for an individual, on which the promise to it stands.

The database keeps the limit of now. A limit never rises, so that an earlier one is what an individual joined with:
the dataset's budget, unless the schema has a column of limits; then it is the limit of now, or what it was before the
first act in the journal that lowered it. Where that is not known, the dataset's budget is above whatever it was: after
a restore that may have forgotten what people joined with, after an erasure, since an individual that comes back may do
so with less, and for limits that were lowered before the journal told from where.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from service.workflows.model.rows import DatasetRecord
from service.workflows.model.views import PromiseOf
from service.workflows.ports.transaction import Transaction

_LOWERED: Final = "limit"
_ERASED: Final = "erase"
_FENCE_FIRST: Final = 1
"""Only what is done after a restore raises it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promised:
    """The parts that a promise is made of, in units.

    `of` says whether the limit is the individual's own largest one, or the dataset's budget because that is not known.
    A restored database may have forgotten charges: up to `joining_units` of individuals that joined afterwards, and
    what a burn could not take of people whose limit it reached (`is_restored`).
    """

    limit_units: int
    of: PromiseOf
    joining_units: int = 0
    is_restored: bool = False

    def spent_units_max(self, *, limit_units: int, spent_units: int) -> int:
        """The most that may truly be spent of an account: all there was to spend, or at most the account and a bit."""
        if self.is_restored and spent_units >= limit_units:
            return self.limit_units
        return min(spent_units + self.joining_units, self.limit_units)


def promised(record: DatasetRecord, transaction: Transaction, slot: int) -> Promised:
    """As of the transaction; what is done to the limit later changes nothing about it."""
    head = transaction.head
    largest = _largest(record, transaction, slot)
    return Promised(
        limit_units=record.budget_units if largest is None else largest,
        of="dataset_budget" if largest is None else "largest_limit",
        joining_units=head.joining_units,
        is_restored=head.fence > _FENCE_FIRST,
    )


def _largest(record: DatasetRecord, transaction: Transaction, slot: int) -> int | None:
    """The largest limit ever in force, in units; None where it is not known."""
    if transaction.head.joining_units > 0:
        return None
    if record.schema.budget_column is None:
        return record.budget_units
    limits: list[int] = transaction.individuals(of=np.array([slot])).limits.tolist()
    for act in transaction.acts_on(slot, _LOWERED, _ERASED):
        if "limit_before_units" not in act.detail:
            return None
        limits.append(int(act.detail["limit_before_units"]))
    return max(limits)
