"""What curators and individuals may read of budgets and of the ledger, at one consistent sequence."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from service.core.budget import epsilon_of_units
from service.core.units import rho_of_units
from service.workflows.desk import Act
from service.workflows.errors import InvalidRequest, NotFound
from service.workflows.ledger import LedgerEntry
from service.workflows.ports import Transaction
from service.workflows.records import DatasetRecord
from service.workflows.state import DatasetState
from service.workflows.views import BudgetRow, BudgetSummary, LedgerRow, MyBudget, Outcome, Page, Receipt, ShareBin

_BINS: Final = 10
_QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
DELTA_OF_RHO_GUARANTEE: Final = "1e-6"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Copies of all accounts at one sequence, by slot, and whose slots they are."""

    seq: int
    present: NDArray[np.bool_]
    limit: NDArray[np.int64]
    spent: NDArray[np.int64]


def standing(transaction: Transaction, state: DatasetState) -> Standing:
    """As it is now. Questions wait in the same line: for a copy, and not for what is made of it."""
    accounts = state.memory.accounts
    return Standing(
        seq=transaction.head.seq,
        present=state.memory.present.copy(),
        limit=accounts.limit.copy(),
        spent=accounts.spent.copy(),
    )


def summary(taken: Standing) -> BudgetSummary:
    """Shares of the budget that remain: ten bins, quantiles, and how many have nothing left."""
    limit, spent = taken.limit[taken.present], taken.spent[taken.present]
    # Who came back with a smaller budget may have spent more than it: nothing is left, and not less than nothing.
    share = np.maximum(limit - spent, 0) / np.maximum(limit, 1)
    counts, edges = np.histogram(share, bins=_BINS, range=(0.0, 1.0))
    bins = zip(edges[:-1], edges[1:], counts, strict=True)
    quantiles = np.quantile(share, _QUANTILES).tolist() if share.size else []
    return BudgetSummary(
        sequence=taken.seq,
        individuals=share.size,
        exhausted=int((spent >= limit).sum()),
        remaining_share_histogram=tuple(ShareBin(low=float(a), high=float(b), individuals=int(n)) for a, b, n in bins),
        quantiles={str(q): value for q, value in zip(_QUANTILES, quantiles, strict=False)},  # of nobody there are none
    )


def ledger(*, cursor: str | None, limit: int) -> Act[Page[LedgerRow]]:
    """The entries, newest first; the cursor is the last sequence shown."""
    before = number_of(cursor, default=2**62)

    def reading(transaction: Transaction, state: DatasetState) -> Page[LedgerRow]:  # noqa: ARG001  an Act sees both
        entries = transaction.entries_before(before=before, limit=limit)
        return Page(
            items=tuple(map(_ledger_row, entries)), next=str(entries[-1].seq) if len(entries) == limit else None
        )

    return reading


def receipts(record: DatasetRecord, key: str, *, cursor: str | None, limit: int) -> Act[Page[Receipt]]:
    """What each query cost the individual, newest first."""
    before = number_of(cursor, default=2**62)

    def reading(transaction: Transaction, state: DatasetState) -> Page[Receipt]:  # noqa: ARG001  an Act sees both
        slot = slot_of(transaction, key)
        entries = transaction.entries_before(before=before, limit=limit)
        items = tuple(_receipt(record.name, entry, slot) for entry in entries)
        return Page(items=items, next=str(entries[-1].seq) if len(entries) == limit else None)

    return reading


def lowering(record: DatasetRecord, key: str, *, limit_units: int | None) -> Act[MyBudget]:
    """Lower one's own limit to `limit_units`, or to what is spent already (None: pause). Never raises it."""

    def act(transaction: Transaction, state: DatasetState) -> MyBudget:
        slot = slot_of(transaction, key)
        accounts = state.memory.accounts
        spent, before = int(accounts.spent[slot]), int(accounts.limit[slot])
        if limit_units is not None and limit_units > before:
            raise InvalidRequest.of("limit_rho", "a limit can be lowered, never raised")
        after = spent if limit_units is None else max(limit_units, spent)
        transaction.set_limit(slot, after)
        transaction.journal("limit", {"slot": slot, "limit_units": str(after)})
        accounts.limit[slot] = after
        return my_budget_view(record, after, spent)

    return act


def slot_of(transaction: Transaction, key: str) -> int:
    """The slot of an individual present. Raises NotFound."""
    slot = int(transaction.slots_of([key])[0])
    if slot < 0:
        raise NotFound
    return slot


def my_budget_view(record: DatasetRecord, limit: int, spent: int) -> MyBudget:
    """The account in words for its owner; epsilon is the guarantee of the whole limit at the dataset's delta."""
    delta = record.guarantee.delta or DELTA_OF_RHO_GUARANTEE
    return MyBudget(
        dataset=record.name,
        budget_rho=str(rho_of_units(limit)),
        spent_rho=str(rho_of_units(spent)),
        remaining_rho=str(rho_of_units(limit - spent)),
        share_spent=spent / limit if limit else 1.0,
        budget_epsilon=epsilon_of_units(limit, Decimal(delta)),
        delta=delta,
    )


def budget_row(key: str, limit: int, spent: int) -> BudgetRow:
    """The account as a curator lists it."""
    return BudgetRow(
        key=key,
        budget_rho=str(rho_of_units(limit)),
        spent_rho=str(rho_of_units(spent)),
        remaining_rho=str(rho_of_units(limit - spent)),
        spent_units=spent,
        budget_units=limit,
    )


def _ledger_row(entry: LedgerEntry) -> LedgerRow:
    return LedgerRow(
        sequence=entry.seq,
        query_id=entry.query_id,
        analyst=entry.analyst,
        query=orjson.loads(entry.canonical),
        sigma=entry.sigma,
        grid=entry.grid,
        dimension=entry.dimension,
        worst_case_rho=str(rho_of_units(entry.worst_case_units)),
        charged=entry.charged_count,
        left_out=entry.left_out_count,
        asked_at=entry.asked_at,
        epoch=entry.epoch,
        previous_hash=entry.previous_hash.hex(),
        hash=entry.hash.hex(),
        kind=entry.kind,
    )


def _receipt(dataset: str, entry: LedgerEntry, slot: int) -> Receipt:
    charged, charges, left_out = entry.charges.decode()
    outcome: Outcome = "charged" if _holds(charged, slot) else "left_out" if _holds(left_out, slot) else "untouched"
    units = int(charges[np.searchsorted(charged, slot)]) if outcome == "charged" else 0
    return Receipt(
        query_id=entry.query_id,
        dataset=dataset,
        sequence=entry.seq,
        asked=_asked(entry),
        at=entry.asked_at,
        charged_rho=str(rho_of_units(units)),
        outcome=outcome,
        kind=entry.kind,
    )


def _asked(entry: LedgerEntry) -> dict[str, Any]:
    """What was asked, or why it was burned; how many acts the journal counts is not for individuals."""
    asked: dict[str, Any] = orjson.loads(entry.canonical)
    return asked if entry.kind == "query" else {"burn": {name: asked["burn"][name] for name in ("why", "units")}}


def _holds(increasing: NDArray[np.int64], value: int) -> bool:
    place = int(np.searchsorted(increasing, value))
    return place < increasing.size and int(increasing[place]) == value


def number_of(cursor: str | None, *, default: int) -> int:
    """The number that a cursor stands for. Raises InvalidRequest."""
    if cursor is None:
        return default
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 18:
        raise InvalidRequest.of("cursor", "not a cursor of this listing")
    return int(cursor)
