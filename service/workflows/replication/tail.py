"""The ledger's tail, as other replicas have shared it: entries ahead of memory, fetched before they are needed.

They are used only if they lead, hash by hash, from where memory stands to exactly the head that the database names;
otherwise the database is read. So no cache, and no other history under the same name, changes a spent total.
"""

import threading
from collections.abc import Iterable
from typing import Final

from service.workflows.model.ledger_entry import LedgerEntry
from service.workflows.model.rows import Head

TAIL_MAX: Final = 64
"""How many entries are kept; a replica that is farther behind reads the database."""


class Tail:
    """The entries of one dataset that may come next. Thread-safe."""

    def __init__(self) -> None:
        self._entries: dict[int, LedgerEntry] = {}
        self._lock = threading.Lock()

    def offer(self, entries: Iterable[LedgerEntry], *, after: int) -> None:
        """Keep entries beyond `after`, and none up to it. One whose hash is not its own is passed over."""
        sound = {entry.seq: entry for entry in entries if entry.is_itself}
        with self._lock:
            ahead = {seq: entry for seq, entry in (self._entries | sound).items() if seq > after}
            self._entries = {seq: ahead[seq] for seq in sorted(ahead)[:TAIL_MAX]}

    def last(self, *, after: int) -> int:
        """The last sequence up to which there is no hole after `after`."""
        with self._lock:
            while after + 1 in self._entries:
                after += 1
            return after

    def between(self, seq: int, own_hash: bytes, head: Head) -> list[LedgerEntry]:
        """The entries from a known hash to a head; empty unless all are there and lead from the one to the other."""
        with self._lock:
            entries = [self._entries.get(each) for each in range(seq + 1, min(head.seq, seq + TAIL_MAX) + 1)]
        chained: list[LedgerEntry] = []
        for entry in entries:
            if entry is None or entry.previous_hash != own_hash:
                return []
            chained.append(entry)
            own_hash = entry.hash
        return chained if own_hash == head.hash else []
