"""Amended and pruned entries on Postgres: parts of entries are read for one slot, rewritten in place, or dropped.

A rewritten part is sealed under a revision of its own, drawn at random. A database that was restored may write other
content in the same place, and two contents must not share a key and a nonce.
"""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import Any, Final

from service.ledger.model.amendments import Amendment, OwnPart, Rewritten
from service.ledger.model.pieces import WHOLE, number_for
from service.ledger.model.rows import StoredPage
from service.store.postgres.rows import PAGE_COLUMNS, by_name, columns_of, insertion, opened, page_of, page_row
from service.store.postgres.sessions import translated
from service.store.postgres.snapshot import PostgresSnapshot

_REVISIONS: Final = 2**32
PARTS_AT_ONCE: Final = 64
"""The most parts that one statement reads: at most 4 MiB of sealed pieces."""
OWN_PARTS: Final = (
    "SELECT l.seq, salt, first_digest, piece, p.number, p.sealed, p.digest FROM ledger l"
    " LEFT JOIN pieces p ON p.dataset_id = l.dataset_id AND p.seq = l.seq AND p.number = %s"
    " WHERE l.dataset_id = %s AND l.seq > %s AND l.seq <= %s ORDER BY l.seq LIMIT %s"
)
_AMENDED: Final = columns_of(Amendment)
_AMENDMENTS: Final = f"SELECT {_AMENDED} FROM amendments WHERE dataset_id = %s ORDER BY seq, number, erasure"
_NOTE: Final = insertion("amendments", f"dataset_id, {_AMENDED}")
_REWRITE_WHOLE: Final = "UPDATE ledger SET piece = %s, first_digest = %s WHERE dataset_id = %s AND seq = %s"
_REWRITE_PIECE: Final = "UPDATE pieces SET sealed = %s WHERE dataset_id = %s AND seq = %s AND number = %s"
_DROP_WHOLE: Final = (
    "UPDATE ledger SET piece = NULL WHERE dataset_id = %s AND seq > %s AND seq <= %s AND piece IS NOT NULL"
)
_TOTALS: Final = f"SELECT {PAGE_COLUMNS} FROM pruned_totals WHERE dataset_id = %s ORDER BY page"
_FORGET_TOTALS: Final = "DELETE FROM pruned_totals WHERE dataset_id = %s"
_KEEP_TOTALS: Final = insertion("pruned_totals", f"dataset_id, {PAGE_COLUMNS}")
_DROP_PIECES: Final = "DELETE FROM pieces WHERE dataset_id = %s AND seq > %s AND seq <= %s"


class RewrittenEntries(PostgresSnapshot):
    """The part of the port's Transaction that reads and changes single parts of existing entries."""

    def own_parts(self, slot: int, *, after: int, to: int) -> Iterator[OwnPart]:
        while after < to:
            rows = self._rows(OWN_PARTS, [number_for(slot), self._dataset_id, after, to, PARTS_AT_ONCE])
            if not rows:
                return
            for row in rows:
                part = self._own_part(row)
                if part is not None:
                    yield part
            after = rows[-1][0]

    def amendments(self) -> Iterator[Amendment]:
        for row in self._rows(_AMENDMENTS, [self._dataset_id]):
            yield Amendment(**by_name(_AMENDED, row))

    def amend(self, parts: Sequence[Rewritten]) -> None:
        with translated(), self._connection.pipeline():
            for part in parts:
                self._connection.execute(_NOTE, [self._dataset_id, *astuple(part.amendment)])
                self._connection.execute(*self._rewrites(part))
        self._start_clock()

    def pruned_totals(self) -> Iterator[StoredPage]:
        yield from map(page_of, self._rows(_TOTALS, [self._dataset_id]))

    def keep_totals(self, pages: Sequence[StoredPage]) -> None:
        with translated(), self._connection.pipeline():
            self._connection.execute(_FORGET_TOTALS, [self._dataset_id])
            for page in pages:
                values = [self._dataset_id, page.number, page.seq, *page_row(page.totals)]
                self._connection.execute(_KEEP_TOTALS, values)
        self._start_clock()

    def drop_quantities(self, *, after: int, to: int) -> None:
        with translated():
            self._connection.execute(_DROP_WHOLE, [self._dataset_id, after, to])
            self._connection.execute(_DROP_PIECES, [self._dataset_id, after, to])

    def _start_clock(self) -> None:
        """Make sure that the transaction, with its locks, ends in time if this process falls silent from here on.

        A pipeline ends with a Flush, on which Postgres stops the clock of an idle transaction; a statement starts the
        clock again.
        """
        with translated():
            self._connection.execute("SELECT")

    def _own_part(self, row: Sequence[Any]) -> OwnPart | None:
        """The part in a row of OWN_PARTS; None where the entry has no piece for the slot. Raises Unreadable."""
        seq, salt, first_digest, whole, number, sealed, digest = row
        salt = bytes(salt)
        if whole is not None:
            return OwnPart(seq=seq, salt=salt, piece=opened(self._seal, salt, (WHOLE, whole, first_digest)))
        if sealed is not None:
            return OwnPart(seq=seq, salt=salt, piece=opened(self._seal, salt, (number, sealed, digest)))
        return None

    def _rewrites(self, part: Rewritten) -> tuple[str, list[Any]]:
        """The statement that stores a part, and its values."""
        place, piece = [self._dataset_id, part.amendment.seq], part.piece
        sealed = self._seal.close(part.salt, piece, revision=1 + secrets.randbelow(_REVISIONS - 1))
        if piece.number == WHOLE:
            return _REWRITE_WHOLE, [sealed, piece.bound_digest, *place]
        return _REWRITE_PIECE, [sealed, *place, piece.number]
