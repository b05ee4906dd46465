"""Burns: ledger entries that charge people without an answer, for answers that a restored database has forgotten.

What was lost is not known, but what it can have cost anybody is: the sum of its public worst cases. So everybody pays
that, as far as their limit reaches. It depends on nobody's data, and nobody's spent total ends below the truth.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import UUID, uuid4

import numpy as np
import orjson
import rfc8785
from numpy.typing import NDArray

from service.core.units import CHARGE_UNITS_MAX
from service.workflows.answering import exact_sum
from service.workflows.ledger import EncodedCharges, LedgerEntry, chain_hash
from service.workflows.ports import Transaction
from service.workflows.records import Head
from service.workflows.state import DatasetState

Position = tuple[int, int, int]
_NOBODY: Final = UUID(int=0)
_BEFORE_ALL: Final = (0, 0, 0)


def burn(
    transaction: Transaction, state: DatasetState, *, units: int, settled: Position, why: str, at: datetime
) -> LedgerEntry:
    """Charge `units` to everybody who has a slot, erased people too, as far as their limits reach, in one entry.

    `settled` is the position up to which whatever was witnessed is accounted for by this entry and those before it.
    Debits memory; the caller commits.
    """
    slots, accounts = np.sort(transaction.individuals().slots), state.memory.accounts
    left = np.maximum(accounts.limit[slots] - accounts.spent[slots], 0)  # a limit may lie below what is spent
    charges = np.minimum(left, units)
    paying = charges > 0
    canonical = rfc8785.dumps({"burn": {"why": why, "settled": list(settled), "units": str(units)}})
    encoded = EncodedCharges.of(
        touched=slots[paying],
        active=np.ones(int(paying.sum()), dtype=np.bool_),
        charges=charges[paying],
        slots=transaction.head.slots,
        one_charge=False,
    )
    entry = _entry(transaction.head, encoded, charges[paying], units=units, canonical=canonical, at=at)
    transaction.append([entry], [], {})
    state.apply(entry)
    return entry


def settled_position(burns: Iterable[LedgerEntry]) -> Position:
    """Up to where whatever was witnessed is either in this ledger or burned in it."""
    return max((_settled(entry) for entry in burns), default=_BEFORE_ALL)


def _entry(
    head: Head, encoded: EncodedCharges, charges: NDArray[np.int64], *, units: int, canonical: bytes, at: datetime
) -> LedgerEntry:
    entry = LedgerEntry(
        kind="burn",
        seq=head.seq + 1,
        query_id=uuid4(),
        analyst_id=_NOBODY,
        analyst="",
        epoch=head.epoch,
        canonical=canonical,
        query_hash="",
        sigma=0.0,
        grid_log2=0,
        dimension=0,
        worst_case_units=units,
        worst_case_total_units=min(head.worst_case_units + units, CHARGE_UNITS_MAX),
        charges=encoded,
        charged_count=int(charges.size),
        left_out_count=0,
        charged_units=exact_sum(charges),
        values=b"",
        asked_at=at.replace(microsecond=0),
        previous_hash=head.hash,
        hash=b"",
    )
    return replace(entry, hash=chain_hash(entry))


def _settled(entry: LedgerEntry) -> Position:
    fence, seq, acts = orjson.loads(entry.canonical)["burn"]["settled"]
    return fence, seq, acts
