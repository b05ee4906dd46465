"""Views of the ledger for curators, auditors and individuals, from a snapshot: pages of entries and receipts, accounts.

A page of a listing ends after `limit` items, or earlier, so that its memory has a public bound: an item is on the page
if the items before it on the page have fewer than PAGE_BYTES_MAX bytes together. Only the part of an item that has no
close bound is counted: the canonical query, or an individual's key. A page of a search looks at no more than
SEARCHED_MAX entries, under the same bound of bytes, so that its work is bounded too. Such a page may be empty although
a next page follows.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

import numpy as np
import orjson

from service.accounting.statements import statement_of_account
from service.core.charge import rho_of_units
from service.ledger.model.errors import InvalidRequest, NotFound, Unavailable
from service.ledger.model.individual_views import NO_GUARANTEE, MyBudget, PromiseOf, Receipt, RunDivergence
from service.ledger.model.ledger_entry import EntryRecord, public_facts
from service.ledger.model.rows import EVERY_ENTRY, DatasetRecord, EntryFilter, OwnAccount, OwnCharge
from service.ledger.model.views import Asker, BudgetRow, LedgerRow, Page
from service.ledger.ports.store import StoreUnavailable
from service.ledger.ports.transaction import Transaction
from service.numerals import is_digits
from service.query.keys import Key
from service.query.words import in_words
from service.writer.rollback.guard import RollbackGuard

PAGE_BYTES_MAX: Final = 2**20
SEARCHED_MAX: Final = 1024
READ_BYTES_MAX: Final = 2**24
"""The most bytes of charges that the database reads for a page of receipts: about ten milliseconds."""
NEWEST: Final = 2**62
"""Greater than every sequence and every number of an act."""
DELTA_OF_RHO_GUARANTEE: Final = "1e-6"

Askers = Callable[[Collection[UUID]], Mapping[UUID, Asker]]
"""Describes analysts by their ids. Unknown ids are left out."""


@contextmanager
def snapshot(guard: RollbackGuard) -> Iterator[Transaction]:
    """A snapshot of the database, read in the caller's thread, never in the writer. Raises Unavailable, Fenced."""
    try:
        with guard.transaction(lock=False) as transaction:
            yield transaction
    except StoreUnavailable as fault:
        raise Unavailable from fault


def slot_of(transaction: Transaction, key: Key) -> int:
    """The slot of an individual that has a record. Raises NotFound."""
    slot = int(transaction.slots_of([key])[0])
    if slot < 0:
        raise NotFound
    return slot


def ledger(guard: RollbackGuard, *, cursor: str | None, limit: int, only: EntryFilter = EVERY_ENTRY) -> Page[LedgerRow]:
    """The entries, newest first; the cursor is the last sequence looked at. Only the number of charges is read."""
    before, first = number_of(cursor, default=NEWEST), 1
    with snapshot(guard) as transaction:
        if only != EVERY_ENTRY:
            first = transaction.entries_reach(before=before, limit=SEARCHED_MAX, bytes_max=PAGE_BYTES_MAX)
        found = transaction.entry_records(before=before, limit=limit, bytes_max=PAGE_BYTES_MAX, only=only, first=first)
    last = found[-1].seq if is_full([len(record.canonical) for record in found], limit=limit) else first
    return Page(items=tuple(map(_ledger_row, found)), next=str(last) if last > 1 else None)


def receipts(
    record: DatasetRecord, guard: RollbackGuard, key: Key, askers: Askers, *, cursor: str | None, limit: int
) -> Page[Receipt]:
    """The cost of each query to the individual, newest first; no other individual's charge leaves the database.

    A larger capacity makes pages shorter: to find one slot in an entry, the database reads at most two bits for each
    slot before it, or a list that is no longer than these bits.
    """
    before = number_of(cursor, default=NEWEST)
    limit = min(limit, max(4 * READ_BYTES_MAX // record.capacity, 1))
    with snapshot(guard) as transaction:
        slot = slot_of(transaction, key)
        found = transaction.own_charges(slot, before=before, limit=limit, bytes_max=PAGE_BYTES_MAX)
    has_next = is_full([len(charge.canonical) for charge in found], limit=limit)
    asked_by = askers({charge.analyst_id for charge in found if charge.kind == "query"})
    items = tuple(_receipt(record, charge, asked_by.get(charge.analyst_id)) for charge in found)
    return Page(items=items, next=str(found[-1].seq) if has_next else None)


def is_full(sizes: Sequence[int], *, limit: int) -> bool:
    """Tell whether a page of items of these sizes, in bytes, may have a next one."""
    return len(sizes) == limit or sum(sizes) >= PAGE_BYTES_MAX


def number_of(cursor: str | None, *, default: int) -> int:
    """The number in a cursor. Raises InvalidRequest."""
    if cursor is None:
        return default
    if not is_digits(cursor) or len(cursor) > 18:
        raise unknown_cursor()
    return int(cursor)


def unknown_cursor() -> InvalidRequest:
    """The refusal of a cursor that this kind of listing has not returned."""
    return InvalidRequest.of("cursor", "not a cursor of this listing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Promised:
    """The numbers behind a promise, in units.

    `of` says whether `limit_units` is the individual's own largest limit, or the dataset's budget because that limit is
    unknown. `limit_units` includes the `reserve_units` of the monitor, which ticks may have cost. A restored database
    may have lost charges: up to `joining_units` of each individual that joined afterwards, and the part of a burn that
    exceeded an individual's limit (`is_restored`). If `is_all_gaussian`, every answer so far has had Gaussian noise.
    """

    limit_units: int
    of: PromiseOf
    reserve_units: int = 0
    joining_units: int = 0
    is_restored: bool = False
    is_all_gaussian: bool = False

    def spent_units_max(self, *, limit_units: int, spent_units: int) -> int:
        """A bound on the true spent total, in units.

        After a capped burn the bound is the largest limit. Otherwise it is the spent total plus the joining and the
        reserve units, and at most the largest limit.
        """
        if self.is_restored and spent_units >= limit_units:
            return self.limit_units
        return min(spent_units + self.joining_units + self.reserve_units, self.limit_units)


def promised(record: DatasetRecord, transaction: Transaction, slot: int) -> Promised:
    """The promise as of the transaction. Later changes of the limit do not change it."""
    head = transaction.head
    largest = _largest(record, transaction, slot)
    return Promised(
        limit_units=record.budget_units if largest is None else largest + record.reserve_units,
        reserve_units=record.reserve_units,
        of="dataset_budget" if largest is None else "largest_limit",
        joining_units=head.joining_units,
        is_restored=head.is_reconciled,
        is_all_gaussian=is_all_gaussian(record, transaction),
    )


def is_all_gaussian(record: DatasetRecord, transaction: Transaction) -> bool:
    """Tell whether all answers so far are known to have Gaussian noise, and the accounting has a smaller epsilon then.

    The noise of entries that a restore has forgotten is not known.
    """
    return record.accounting.has_advisory and not transaction.head.is_reconciled and not transaction.has_other_noise()


def delta_of(record: DatasetRecord) -> str:
    """The delta of the dataset's statements, a decimal."""
    return record.guarantee.delta or (DELTA_OF_RHO_GUARANTEE if record.accounting.has_delta else "0")


def _largest(record: DatasetRecord, transaction: Transaction, slot: int) -> int | None:
    """The largest limit ever in force, in units, without the reserve of the monitor; None where it is not known.

    The database keeps only the present limit. A limit never rises, so the largest is the one at joining. Without a
    column of limits that is the dataset's budget. With such a column it is the present limit, or the limit before the
    first act that lowered it. The largest limit is not known after a restore that may have lost limits. It is not known
    after an erasure either, since an individual may return with a lower limit.
    """
    if transaction.head.joining_units > 0:
        return None
    if record.schema.budget_column is None:
        return record.budget_units - record.reserve_units
    limits: list[int] = transaction.individuals(of=np.array([slot])).limits.tolist()
    for act in transaction.acts_on(slot, "limit", "erase"):
        if act.act == "erase":
            return None
        limits.append(int(act.detail["limit_before_units"]))
    return max(limits)


def my_budget_view(record: DatasetRecord, account: OwnAccount, promise: Promised) -> MyBudget:
    """The individual's view of its account. Every epsilon is at the dataset's delta."""
    limit, spent = account.limit, account.spent
    delta = delta_of(record)
    statement = statement_of_account(
        record.accounting,
        largest_limit_units=promise.limit_units,
        limit_units=limit,
        spent_units=spent,
        spent_units_max=promise.spent_units_max(limit_units=limit, spent_units=spent),
        budget_units=record.budget_units,
        delta=Decimal(delta),
        is_all_gaussian=promise.is_all_gaussian,
    )
    return MyBudget(
        dataset=record.name,
        unit=record.accounting.unit,
        budget_rho=str(rho_of_units(limit)),
        reserve_rho=str(rho_of_units(record.reserve_units)),
        spent_rho=str(rho_of_units(spent)),
        remaining_rho=str(rho_of_units(limit - spent)),
        share_spent=statement.share_spent,
        lowest_limit_rho=str(rho_of_units(spent + record.reserve_units)),
        promise_rho=str(statement.promise.rho),
        promise_epsilon=statement.promise.epsilon,
        promise_epsilon_replace_one=statement.promise.epsilon_replace_one,
        promise_epsilon_advisory=statement.promise_epsilon_advisory,
        promise_of=promise.of,
        epsilon_so_far_time_uniform=statement.epsilon_so_far_time_uniform,
        delta=delta,
        paused=account.paused,
        left_out_for_good=record.rule == "drop" and account.queries_left_out > 0,
        queries_charged=account.queries_charged,
        queries_left_out=account.queries_left_out,
    )


def run_divergence(
    record: DatasetRecord, account: OwnAccount, promise: Promised, *, key: Key, sequence: int
) -> RunDivergence:
    """The divergence of one record along the run: the charges that it had, read as if no query had depended on answers.

    Whether others take part in an answer does not depend on the record, so an answer tells the dataset from the one
    without the record by the record's vector alone (Thudi et al. 2023, per-instance differential privacy; invariant A).
    """
    delta = Decimal(delta_of(record))
    units = promise.spent_units_max(limit_units=account.limit, spent_units=account.spent)
    accounting = record.accounting
    epsilon_of = accounting.epsilon_of_gaussians if promise.is_all_gaussian else accounting.epsilon_of_units
    return RunDivergence(
        notice=NO_GUARANTEE,
        individual=key,
        sequence=sequence,
        unit=record.accounting.unit,
        spent_rho=str(rho_of_units(units)),
        epsilon=epsilon_of(units, delta),
        delta=str(delta),
    )


def budget_row(key: Key, account: OwnAccount) -> BudgetRow:
    """The curator's view of an account."""
    limit, spent = account.limit, account.spent
    return BudgetRow(
        key=key,
        budget_rho=_rho_text(limit),
        spent_rho=_rho_text(spent),
        remaining_rho=_rho_text(limit - spent),
        spent_units=spent,
        budget_units=limit,
        paused=account.paused,
        queries_charged=account.queries_charged,
        queries_left_out=account.queries_left_out,
    )


@lru_cache(2**12)
def _rho_text(units: int) -> str:
    """The text of a charge. It is cached, for curators alone, who see all accounts; most charges are alike."""
    return str(rho_of_units(units))


def _ledger_row(record: EntryRecord) -> LedgerRow:
    """The facts that the hash binds, under the names that they have there, and what the facts mean."""
    query = orjson.loads(record.canonical)
    typed = {"query_id": record.query_id, "analyst_id": record.analyst_id, "asked_at": record.asked_at}
    return LedgerRow(
        **public_facts(record) | typed,
        query=query,
        words=in_words(query),
        grid=record.grid,
        worst_case_rho=str(rho_of_units(record.worst_case_units)),
        charged=record.charged_count,
        left_out=record.left_out_count,
        private_digest=record.private_digest.hex(),
        previous_hash=record.previous_hash.hex(),
        hash=record.hash.hex(),
        is_checkable=True,
    )


def _receipt(record: DatasetRecord, charge: OwnCharge, asker: Asker | None) -> Receipt:
    asked = _asked(charge)
    return Receipt(
        query_id=charge.query_id,
        dataset=record.name,
        sequence=charge.seq,
        asked=asked,
        words=in_words(asked),
        at=charge.asked_at,
        unit=record.accounting.unit,
        charged_rho=None if charge.part is None else str(rho_of_units(charge.part.units)),
        asked_rho=None if charge.part is None else str(rho_of_units(charge.part.asked_units)),
        outcome="no_longer_kept" if charge.part is None else charge.part.outcome,
        kind=charge.kind,
        asker=asker,
    )


def _asked(charge: OwnCharge) -> dict[str, Any]:
    """The query, or the reason and units of a burn. A burn also has a number of acts, which is not for individuals."""
    asked: dict[str, Any] = orjson.loads(charge.canonical)
    return asked if charge.kind == "query" else {"burn": {name: asked["burn"][name] for name in ("why", "units")}}
