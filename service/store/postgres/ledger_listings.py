"""The ledger as curators, auditors and individuals list it, a few bytes of each entry; and as it is replayed."""

from collections.abc import Sequence
from datetime import UTC
from math import ldexp
from typing import Any, Final

from service.store.postgres.rows import ENTRY_COLUMNS, LISTED_COLUMNS, SEAL_BYTES, LedgerSeal
from service.workflows.model.listing_rows import ActRecord, OwnCharge
from service.workflows.model.pieces import CONTENT_BYTES_MAX, WHOLE, Outcome


def _page(columns: str, condition: str = "") -> str:
    """Entries of a dataset, newest first, and by each how many bytes of canonical queries come before it.

    Takes the dataset, the sequence before which it begins, the values of `condition`, and how many. What lies outside
    of a row is not fetched without a condition on it.
    """
    return (
        f"(SELECT {columns}, sum(length(canonical)) OVER (ORDER BY seq DESC) - length(canonical) AS bytes_before"
        f" FROM (SELECT {columns} FROM ledger WHERE dataset_id = %s AND seq < %s{condition} ORDER BY seq DESC LIMIT %s)"
        " AS newest) AS page"
    )


_BYTES: Final = 'coalesce(length(piece), 0) + length("values")'
ENTRIES_AFTER: Final = (
    f"SELECT {ENTRY_COLUMNS}"
    f" FROM (SELECT {ENTRY_COLUMNS}, sum({_BYTES}) OVER (ORDER BY seq) - ({_BYTES}) AS bytes_before"
    f" FROM (SELECT {ENTRY_COLUMNS} FROM ledger WHERE dataset_id = %s AND seq > %s ORDER BY seq LIMIT %s) AS oldest)"
    " AS part WHERE bytes_before < %s ORDER BY seq"
)
"""Whole entries for a replay; the pieces in rows of their own are read entry by entry."""
PIECES_OF: Final = "SELECT number, sealed, digest FROM pieces WHERE dataset_id = %s AND seq = %s ORDER BY number"

ENTRY_SIZES: Final = (
    f"SELECT seq, {_BYTES} + coalesce((SELECT sum(length(sealed)) FROM pieces p"
    " WHERE p.dataset_id = ledger.dataset_id AND p.seq = ledger.seq), 0)::bigint"
    " FROM ledger WHERE dataset_id = %s AND seq < %s ORDER BY seq DESC LIMIT %s"
)
ENTRIES_LISTED: Final = (
    f"SELECT {LISTED_COLUMNS} FROM {_page(LISTED_COLUMNS)} WHERE bytes_before < %s ORDER BY seq DESC"
)
_ADMITTED: Final = (
    " AND (%s::uuid IS NULL OR analyst_id = %s) AND lower(convert_from(canonical, 'UTF8')) LIKE ALL (%s::text[])"
)
ENTRIES_FOUND: Final = (
    f"SELECT {LISTED_COLUMNS} FROM {_page(LISTED_COLUMNS, _ADMITTED)} WHERE bytes_before < %s ORDER BY seq DESC"
)
_PRICED: Final = "sigma, grid_log2, salt, piece"
_OWN_PIECE: Final = (
    "coalesce(piece, (SELECT sealed FROM pieces p"
    " WHERE p.dataset_id = %s AND p.seq = page.seq AND p.number = %s), ''::bytea)"
)
"""The bytes of the one piece in which a slot can stand, without which it is untouched."""
_OWN_NUMBER: Final = f"CASE WHEN piece IS NULL THEN %s ELSE {WHOLE} END"
PADDING: Final = bytes(CONTENT_BYTES_MAX + SEAL_BYTES)
"""The part of an entry that is read for an individual's receipt has this length, however many others it touched."""
_PADDED: Final = f"length(own), substring(own || %s::bytea FROM 1 FOR {len(PADDING)})"
OWN_CHARGES: Final = (
    f"SELECT seq, query_id, canonical, asked_at, kind, analyst_id, sigma, grid_log2, salt, {_OWN_NUMBER}, {_PADDED}"
    f" FROM {_page(f'seq, query_id, canonical, asked_at, kind, analyst_id, {_PRICED}')}"
    f" CROSS JOIN LATERAL (SELECT {_OWN_PIECE} AS own) AS own_piece WHERE bytes_before < %s ORDER BY seq DESC"
)
# The key is looked up now: of an individual erased since there is none, and an erasure itself has none either.
ACTS_LISTED: Final = (
    "SELECT number, at_seq, act, detail, at, key FROM ("
    "SELECT newest.*, key, sum(coalesce(octet_length(key), 0)) OVER (ORDER BY number DESC)"
    " - coalesce(octet_length(key), 0) AS bytes_before"
    " FROM (SELECT dataset_id, number, at_seq, act, detail - %s::text[] AS detail, at FROM journal"
    " WHERE dataset_id = %s AND number < %s ORDER BY number DESC LIMIT %s) AS newest"
    " LEFT JOIN individuals i ON i.dataset_id = newest.dataset_id AND i.slot = (detail ->> 'slot')::integer"
    " AND act <> 'erase') AS page WHERE bytes_before < %s ORDER BY number DESC"
)
# The page as of its own sequence or of the checkpoint's, whichever is later (`Checkpoint`).
ACCOUNT: Final = (
    "SELECT limit_units, paused, coalesce(int8_at(pages.spent, %s), 0), coalesce(uint4_at(pages.charged, %s), 0),"
    " coalesce(uint4_at(pages.left_out, %s), 0), greatest(checkpoint_seq, pages.seq)"
    " FROM individuals i JOIN heads USING (dataset_id)"
    " LEFT JOIN pages ON pages.dataset_id = i.dataset_id AND page = slot / %s"
    " WHERE slot = %s AND i.dataset_id = %s"
)
"""Takes the slot's place on its page three times, the slots of a page, the slot and the dataset."""
OWN_SINCE: Final = (
    f"SELECT seq, kind, sigma, grid_log2, salt, {_OWN_NUMBER}, {_PADDED}"
    f" FROM (SELECT seq, kind, {_PRICED} FROM ledger"
    " WHERE dataset_id = %s AND seq > %s ORDER BY seq LIMIT %s) AS page"
    f" CROSS JOIN LATERAL (SELECT {_OWN_PIECE} AS own) AS own_piece ORDER BY seq"
)
"""The facts that concern one slot of the next entries after a sequence, each of one size."""


def escaped(word: str) -> str:
    """A word as a LIKE pattern that matches it alone."""
    return word.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")


def act_record_of(row: Sequence[Any]) -> ActRecord:
    """A row of ACTS_LISTED."""
    number, at_seq, act, detail, at, key = row
    return ActRecord(number=number, at_seq=at_seq, act=act, detail=detail, at=at.astimezone(UTC), key=key)


def own_charge_of(row: Sequence[Any], slot: int, seal: LedgerSeal, *, pruned_seq: int) -> OwnCharge:
    """A row of OWN_CHARGES. Raises Unreadable."""
    outcome: Outcome | None
    units: int | None
    outcome, units = own_price(row[6:], slot, seal)
    if row[0] <= pruned_seq:
        outcome = units = None
    return OwnCharge(
        seq=row[0],
        query_id=row[1],
        analyst_id=row[5],
        canonical=bytes(row[2]),
        asked_at=row[3].astimezone(UTC),
        kind=row[4],
        outcome=outcome,
        units=units,
    )


def own_price(row: Sequence[Any], slot: int, seal: LedgerSeal) -> tuple[Outcome, int]:
    """(outcome, units) for one slot of sigma, grid, salt, and the number, length and bytes of its piece.

    Bytes beyond the length are padding. Raises Unreadable.
    """
    sigma, grid_log2, salt, number, length, sealed = row
    if length == 0:
        return "untouched", 0
    quantities = seal.open(bytes(salt), number, bytes(sealed[:length])).quantities()
    return quantities.own(slot, ldexp(sigma, -grid_log2))
