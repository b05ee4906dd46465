"""Following the journal: a replica's memory is brought to the head by the changes of the acts in between.

Limits and pauses are in the journal itself, an erasure empties a slot, and an epoch changes no record. The slots that
an upload touched are read again as they are now, whatever later acts did to them. If the acts do not lead from the
version to the head, hash by hash, everything is read again. So a restored database, whose acts may have the same
numbers, is never taken for the one from which memory came.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.arrays import Integers
from service.engine.pages import union
from service.engine.people import SlotCodes
from service.ledger.model.journal import JournalAct, joined_slots, rows_slots
from service.ledger.model.rows import SlotsInUse
from service.ledger.ports.transaction import Transaction
from service.query.schema import Schema

ACTS_MAX: Final = 1024
"""The most acts that are followed. A replica farther behind reads everything again, which takes no longer."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Changes:
    """The changes by acts: limits, pauses, emptied slots, and the accounts and rows of the slots that uploads touched.

    Entries up to `rewritten_seq` were amended or pruned, and no longer show everything that they charged.
    """

    limits: Mapping[int, int]
    paused: Mapping[int, bool]
    emptied: Integers
    accounts: SlotsInUse
    touched: Mapping[str, Integers]
    rows: Mapping[str, SlotCodes]
    rewritten_seq: int


def changes_since(transaction: Transaction, *, version: int, journal_hash: bytes, schema: Schema) -> Changes | None:
    """The changes by the acts after `version`, as of the transaction's head; None if everything must be read again."""
    acts = _acts_between(transaction, version, journal_hash)
    if acts is None:
        return None
    touched = _touched(acts, schema, slots=transaction.head.slots)
    erased = np.array([act.detail["slot"] for act in acts if act.act == "erase"], dtype=np.int64)
    joined = touched.get(schema.individuals_name, np.empty(0, dtype=np.int64))
    return Changes(
        limits={act.detail["slot"]: int(act.detail["limit_units"]) for act in acts if "limit_units" in act.detail},
        paused={act.detail["slot"]: act.act == "pause" for act in acts if act.act in _PAUSES},
        emptied=union([erased]),
        accounts=transaction.individuals(of=joined),
        touched=touched,
        rows={table: transaction.records(table, of=slots) for table, slots in touched.items()},
        rewritten_seq=max((int(act.detail[_REWRITTEN[act.act]]) for act in acts if act.act in _REWRITTEN), default=0),
    )


def _acts_between(transaction: Transaction, version: int, journal_hash: bytes) -> list[JournalAct] | None:
    """The acts that lead from a version to the head; None if they are not complete, known, chained and few."""
    head = transaction.head
    if not version < head.data_version <= version + ACTS_MAX:
        return None
    acts = transaction.acts(after=version)
    is_dense = [act.number for act in acts] == list(range(version + 1, head.data_version + 1))
    previous = [*(act.previous_hash for act in acts), head.journal_hash]
    is_chained = previous == [journal_hash, *(act.hash for act in acts)]
    return acts if is_dense and is_chained and all(act.act in _KNOWN for act in acts) else None


def _touched(acts: Sequence[JournalAct], schema: Schema, *, slots: int) -> dict[str, Integers]:
    """The slots below `slots` that uploads and corrections have touched, by table."""
    found: dict[str, list[Integers]] = {}
    for act in acts:
        if act.act == "correct":
            found.setdefault(act.detail["table"], []).append(np.array([act.detail["slot"]], dtype=np.int64))
        if act.act == "rows":
            found.setdefault(schema.individuals_name, []).append(joined_slots(act.detail))
            found.setdefault(act.detail["table"], []).append(rows_slots(act.detail))
    united = {table: union(parts) for table, parts in found.items()}
    return {table: touched[touched < slots] for table, touched in united.items() if touched.size > 0}


_PAUSES: Final = frozenset({"pause", "resume"})
_REWRITTEN: Final = {"amend": "to", "prune": "seq"}
"""The acts that rewrite entries, each with the field of its detail that has the last rewritten sequence."""
_KNOWN: Final = (
    frozenset({"correct", "epoch", "erase", "erasure_request", "limit", "rows"}) | _PAUSES | frozenset(_REWRITTEN)
)
