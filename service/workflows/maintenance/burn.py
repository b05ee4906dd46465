"""Burns: ledger entries that charge individuals without an answer, for answers that a restored database has lost.

The lost answers are unknown, but the most that they can have cost an individual is public: the sum of their worst
cases. Every individual pays that, up to its limit. It depends on no data, and no spent total ends below the truth.
"""

from datetime import datetime
from secrets import token_bytes
from typing import Final
from uuid import UUID, uuid4

import numpy as np
import rfc8785

from service.core.release import exact_sum
from service.core.units import CHARGE_UNITS_MAX, LIMIT_UNITS_MAX
from service.workflows.model.ledger_entry import FORMAT, SALT_BYTES, LedgerEntry
from service.workflows.model.pieces import Measure, Quantities, pieces_of
from service.workflows.model.rows import Head
from service.workflows.ports.transaction import Transaction
from service.workflows.rollback.guard import Position
from service.workflows.writer.state import DatasetState

_NO_ANALYST: Final = UUID(int=0)


def burn(
    transaction: Transaction, state: DatasetState, *, units: int, settled: Position, why: str, at: datetime
) -> LedgerEntry:
    """Charge `units` to every slot in use, erased individuals too, up to each limit, in one entry.

    `settled` is the position up to which all witnessed records are accounted for by this entry and those before it.
    Debits memory; the caller commits.
    """
    slots, accounts = np.sort(transaction.individuals().slots), state.accounts
    left = np.maximum(accounts.room[slots], 0)  # a limit may be below the spent total
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
