"""The replay of a ledger: its acts and its entries in their order, shown to visitors.

Verification and what-if are visitors. When the writer loads a dataset it replays entries by itself, because it begins
with stored pages and changes accounts alone.
"""

import sys
from collections import deque
from collections.abc import Callable, Sequence

from service.ledger.model.journal import JournalAct
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.rows import DatasetRecord
from service.ledger.ports.transaction import Transaction
from service.maintenance.journal_state import JournalState

Watch = Callable[[str, int, int], None]
"""The function that is called with the dataset, the sequence that was replayed, and the ledger's last sequence."""


class Visitor:
    """Looks at a ledger that is replayed. A subclass overrides the methods that it needs."""

    def act(self, act: JournalAct, then: JournalState) -> None:
        """Look at an act; `then` is the state of the journal after it."""

    def entry(self, entry: LedgerEntry, then: JournalState) -> None:
        """Look at the next entry; `then` is the state of the journal after all acts before it."""

    def end(self) -> None:
        """Finish, after the last entry and the last act."""


def replay(
    record: DatasetRecord,
    transaction: Transaction,
    acts: Sequence[JournalAct],
    visitors: Sequence[Visitor],
    *,
    watch: Watch | None = None,
) -> None:
    """Show every visitor all `acts` and entries of a dataset; `watch` is called with each entry.

    An act whose detail is invalid is shown to no visitor.
    """
    then, waiting = JournalState.of(record), deque(acts)

    def act(*, before: int) -> None:
        for each in then.follow(waiting, before=before):
            for visitor in visitors:
                visitor.act(each, then)

    for entry in transaction.entries(after=0):
        act(before=entry.seq)
        for visitor in visitors:
            visitor.entry(entry, then)
        if watch is not None:
            watch(record.name, entry.seq, transaction.head.seq)
    act(before=sys.maxsize)
    for visitor in visitors:
        visitor.end()
