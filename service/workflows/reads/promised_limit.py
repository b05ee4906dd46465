"""The largest limit ever in force for an individual, on which the promise to it rests.

The database keeps only the present limit. A limit never rises, so the largest is the one at joining: the dataset's
budget, unless the schema has a column of limits; then it is the present limit, or the one before the first act in the
journal that lowered it. The dataset's budget is used as a bound where that is unknown: after a restore that may have
lost limits, after an erasure, since an individual may return with a lower limit, and for limits lowered before the
journal stored the earlier value.
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
"""The fence of a dataset that was never reconciled after a restore."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promised:
    """The numbers behind a promise, in units.

    `of` says whether the limit is the individual's own largest one, or the dataset's budget because that is unknown.
    A restored database may have lost charges: up to `joining_units` of individuals that joined afterwards, and
    the part of a burn that exceeded an individual's limit (`is_restored`).
    """

    limit_units: int
    of: PromiseOf
    joining_units: int = 0
    is_restored: bool = False

    def spent_units_max(self, *, limit_units: int, spent_units: int) -> int:
        """A bound on the true spent total: the largest limit after a capped burn, else spent + `joining_units`."""
        if self.is_restored and spent_units >= limit_units:
            return self.limit_units
        return min(spent_units + self.joining_units, self.limit_units)


def promised(record: DatasetRecord, transaction: Transaction, slot: int) -> Promised:
    """The promise as of the transaction; later changes of the limit do not change it."""
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
