"""Reconciling: open a dataset whose database is behind its witness, by burning the most that was lost.

A burn is one chained entry that charges every individual up to its limit, without an answer. The lost answers are
unknown, but the most that they can have cost an individual is the difference of two public sums of worst cases: that of
the witness's last record, and that of the last record that this ledger still holds. So the burn depends on nobody's
data, and no spent total ends below the truth. The fence rises, so that no other copy of the database can go on. If
individuals may have joined after that record, all that join later get a lower limit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from secrets import token_bytes
from typing import Final
from uuid import UUID, uuid4

import numpy as np
import rfc8785

from service.arrays import exact_sum
from service.core.charge import CHARGE_UNITS_MAX, LIMIT_UNITS_MAX, rho_of_units
from service.ledger.model.errors import Fenced, InvalidRequest, Unavailable, WitnessLost
from service.ledger.model.ledger_entry import FORMAT, SALT_BYTES, LedgerEntry
from service.ledger.model.pieces import Measure, Quantities, pieces_of
from service.ledger.model.rows import DatasetRecord, Head, WitnessRecord
from service.ledger.ports.store import Store, registered
from service.ledger.ports.transaction import Transaction
from service.ledger.ports.witness import Witness, WitnessUnavailable
from service.writer.rollback.guard import Position, judge, on_chain, unaccounted, witness_name
from service.writer.state import DatasetState

_NO_ANALYST: Final = UUID(int=0)


def burn(
    transaction: Transaction, state: DatasetState, *, units: int, settled: Position, why: str, at: datetime
) -> LedgerEntry:
    """Charge `units` to every slot in use, erased individuals too, in one entry; nobody is charged beyond its limit.

    `settled` is the position up to which this entry and those before it account for all witnessed records. Debits
    memory; the caller commits.
    """
    slots = np.sort(transaction.individuals().slots)
    left = np.maximum(state.room_of(slots), 0)  # a limit may be below the spent total
    charges = np.minimum(left, units)
    paying = charges > 0
    burned = Quantities(
        measure=Measure.UNITS,
        touched=slots[paying],
        active=np.ones(int(paying.sum()), dtype=np.bool_),
        amounts=charges[paying],
    )
    entry = _entry(transaction.head, burned, units=units, why=why, settled=settled, at=at)
    transaction.append([entry], [], {})
    state.apply(entry)
    return entry


def _entry(head: Head, burned: Quantities, *, units: int, why: str, settled: Position, at: datetime) -> LedgerEntry:
    salt = token_bytes(SALT_BYTES)
    return LedgerEntry(
        format=FORMAT,
        kind="burn",
        seq=head.seq + 1,
        query_id=uuid4(),
        analyst_id=_NO_ANALYST,
        analyst="",
        epoch=head.epoch,
        canonical=rfc8785.dumps({"burn": {"why": why, "units": str(units)}}),
        query_hash="",
        sigma=0.0,
        grid_log2=0,
        dimension=0,
        worst_case_units=units,
        worst_case_total_units=min(head.worst_case_units + units, CHARGE_UNITS_MAX),
        salt=salt,
        pieces=pieces_of(burned.blocks(), burned.measure, amount_max=LIMIT_UNITS_MAX, slots=head.slots, salt=salt),
        acts=head.data_version,
        acts_hash=head.journal_hash,
        settled=rfc8785.dumps(list(settled)),  # contains a number of acts, which is not for auditors
        charged_count=burned.touched.size,
        left_out_count=0,
        charged_units=exact_sum(burned.amounts),
        values=b"",
        asked_at=at.replace(microsecond=0),
        previous_hash=head.hash,
        hash=b"",
    ).sealed()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilePlan:
    """The plan of a reconciliation: everybody pays `missing_units`; later joiners' limits are `joining_units` lower."""

    code: str
    missing_units: int
    joining_units: int
    fence: int
    settled: Position
    stands_at: WitnessRecord
    witnessed: WitnessRecord | None
    shared: WitnessRecord | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """The outcome of reconciling: the plan, the burn, and how many individuals have nothing left."""

    plan: ReconcilePlan
    entry: LedgerEntry
    exhausted_count: int


def reconcile_plan(store: Store, witness: Witness, dataset: str, *, burn_units: int | None) -> ReconcilePlan | None:
    """The plan that `reconcile` would carry out; None when all witness records are accounted for."""
    record = registered(store, dataset)
    history = witnessed(witness, record)  # before the snapshot, which then contains all of it
    with store.transaction(record.id, lock=False) as transaction:
        return plan_of(record, transaction, history, burn_units)


def reconcile(
    store: Store, witness: Witness, dataset: str, *, burn_units: int | None, clock: Callable[[], datetime]
) -> Reconciled | None:
    """Burn, fence off every other copy of the database, journal, commit and witness; None if there is nothing to do.

    Safe to repeat after any failure. Raises NotFound, InvalidRequest without `burn_units` on a lost witness, and
    Unavailable when the witness cannot be read, or could not be written after the commit.
    """
    record = registered(store, dataset)
    with store.transaction(record.id, lock=True) as transaction:
        plan = plan_of(record, transaction, witnessed(witness, record), burn_units)
        done = None if plan is None else _burn(record, transaction, plan, clock())
        if done is not None:
            transaction.commit()
        head = WitnessRecord.of(transaction.head)
    if head.seq > 0:
        try:
            witness.write(witness_name(record), head)
        except WitnessUnavailable as fault:
            raise Unavailable(
                "the burn is committed, but the witness could not be updated: repair it and run the command again"
            ) from fault
    return done


def before(plan: ReconcilePlan | None) -> list[str]:
    """Lines for the operator: the problem, and the planned burn."""
    if plan is None:
        return []
    here, lines = plan.stands_at, []
    at = f"the database is at sequence {here.seq} under fence {here.fence}, with {here.acts} acts"
    if plan.witnessed is None:
        lines.append(f"{plan.code}: {at}; no witness is left that could say more")
    else:
        seen = plan.witnessed
        lines.append(f"{plan.code}: {at}; sequence {seen.seq}, fence {seen.fence} and {seen.acts} acts were witnessed")
    if plan.witnessed is not None and plan.shared != here:
        since = "the beginning" if plan.shared is None else f"sequence {plan.shared.seq}"
        lines.append(f"the last record that witness and database share is at {since}: everything after it is burned")
    lines.append(f"to burn: {_price(plan.missing_units)} for every individual, up to its limit")
    if plan.joining_units > 0:
        lines.append(f"individuals that join from now on have a limit lower by {_price(plan.joining_units)}")
    return lines


def after(done: Reconciled | None) -> list[str]:
    """Lines for the operator: the result."""
    if done is None:
        return ["nothing to reconcile: all that was witnessed is in the ledger"]
    sum_rho, left = f"{rho_of_units(done.entry.charged_units):f}", done.exhausted_count
    return [
        f"burned {sum_rho} rho in all, from {done.entry.charged_count} individuals; {left} have nothing left",
        f"open again at sequence {done.entry.seq}, under fence {done.plan.fence}",
    ]


def _price(units: int) -> str:
    return "everything" if units >= CHARGE_UNITS_MAX else f"{rho_of_units(units):f} rho"


def plan_of(
    record: DatasetRecord, transaction: Transaction, history: list[WitnessRecord], burn_units: int | None
) -> ReconcilePlan | None:
    """The plan, given the witness's `history`; None when its records are all accounted for.

    Raises InvalidRequest without `burn_units` on a lost witness.
    """
    verdict = judge(record, transaction, history)
    if verdict is None:
        return None
    here = WitnessRecord.of(transaction.head)
    if isinstance(verdict, WitnessLost):
        if burn_units is None:
            raise InvalidRequest.of("burn-rho", "the witness is lost: state how much to burn for every individual")
        # The individuals that had joined are not known.
        joining = min(transaction.head.joining_units + burn_units, CHARGE_UNITS_MAX)
        return ReconcilePlan(
            code=verdict.slug,
            missing_units=burn_units,
            joining_units=joining,
            fence=here.fence + 1,
            settled=here.position,
            stands_at=here,
            witnessed=None,
            shared=None,
        )
    return _rollback(record, transaction, history, burn_units or 0)


def _rollback(
    record: DatasetRecord, transaction: Transaction, history: list[WitnessRecord], burn_units: int
) -> ReconcilePlan:
    head = transaction.head
    lost = unaccounted(record, transaction, history)
    # Lost entries follow the last record before them on our chain, so their worst cases are in the difference.
    before = [each for each in on_chain(record, transaction, history) if each.position < lost[0].position]
    shared = before[-1] if before else None
    base_units = 0 if shared is None else shared.worst_case_total_units
    total = max(each.worst_case_total_units for each in lost)
    # A saturated sum says nothing about its parts: then every budget is burned whole.
    missing = CHARGE_UNITS_MAX if total >= CHARGE_UNITS_MAX else max(total - base_units, burn_units)
    nobody_joined = shared is not None and all(
        each.fence == shared.fence and each.slots <= shared.slots for each in lost
    )
    joining = head.joining_units if nobody_joined else min(head.joining_units + missing, CHARGE_UNITS_MAX)
    return ReconcilePlan(
        code=Fenced.slug,
        missing_units=missing,
        joining_units=joining,
        fence=max(head.fence, *(each.fence for each in history)) + 1,
        settled=history[-1].position,
        stands_at=WitnessRecord.of(head),
        witnessed=lost[-1],
        shared=shared,
    )


def _burn(record: DatasetRecord, transaction: Transaction, plan: ReconcilePlan, at: datetime) -> Reconciled:
    state = DatasetState(record)
    state.catch_up(transaction)
    entry = burn(transaction, state, units=plan.missing_units, settled=plan.settled, why=plan.code, at=at)
    transaction.fence_off(plan.fence, plan.joining_units)
    detail = {"why": plan.code, "units": str(plan.missing_units), "joining_units": str(plan.joining_units)}
    transaction.journal("reconcile", detail | {"fence": plan.fence, "settled": list(plan.settled)})
    return Reconciled(
        plan=plan, entry=entry, exhausted_count=int(np.sum(state.room_of(transaction.individuals().slots) <= 0))
    )


def witnessed(witness: Witness, record: DatasetRecord) -> list[WitnessRecord]:
    """All that is witnessed of a dataset, in order. Raises Unavailable."""
    try:
        return witness.history(witness_name(record))
    except WitnessUnavailable as fault:
        raise Unavailable("the witness cannot be read") from fault
