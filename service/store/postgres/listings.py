"""The ledger as it is listed and replayed, a few bytes of each entry; and an analyst's own answers and releases.

No statement on behalf of analysts reads a private column.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from math import ldexp
from typing import Any, Final

from service.accounting.laws import law_of
from service.ledger.model.pieces import CONTENT_BYTES_MAX, TWO_NORMS_BYTES_MAX, WHOLE, OwnOutcome
from service.ledger.model.rows import ActRecord, OwnAnswer, OwnCharge, ReleasePlace, ReleaseRecord
from service.store.postgres.rows import (
    ANSWER_COLUMNS,
    ANSWER_COUNT,
    ENTRY_COLUMNS,
    LISTED_COLUMNS,
    SEAL_BYTES,
    SHOWN_COLUMNS,
    LedgerSeal,
    answer_of,
    by_name,
    columns_of,
    names_in,
    shown_by,
)


def _page(columns: str, condition: str = "") -> str:
    """Entries of a dataset, newest first, each with how many bytes of canonical queries come before it.

    Takes the dataset, the sequence before which the page begins, the values of `condition`, and the most entries. A
    value that is stored outside its row is not fetched, unless `condition` is about it.
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
"""Whole entries for a replay. Pieces that are stored in rows of their own are read entry by entry."""
PIECES_OF: Final = "SELECT number, sealed, digest FROM pieces WHERE dataset_id = %s AND seq = %s ORDER BY number"

ENTRY_SIZES: Final = (
    f"SELECT seq, {_BYTES} + coalesce((SELECT sum(length(sealed)) FROM pieces p"
    " WHERE p.dataset_id = ledger.dataset_id AND p.seq = ledger.seq), 0)::bigint"
    " FROM ledger WHERE dataset_id = %s AND seq < %s ORDER BY seq DESC LIMIT %s"
)
ENTRIES_LISTED: Final = (
    f"SELECT {LISTED_COLUMNS} FROM {_page(LISTED_COLUMNS)} WHERE bytes_before < %s ORDER BY seq DESC"
)
ENTRIES_REACH: Final = f"SELECT min(seq) FROM {_page('seq, canonical')} WHERE bytes_before < %s"
"""The least sequence on a page. The lengths of canonical queries are in the rows, so that no query is fetched."""
_ADMITTED: Final = (
    " AND seq >= %s AND (%s::uuid IS NULL OR analyst_id = %s)"
    " AND lower(convert_from(canonical, 'UTF8')) LIKE ALL (%s::text[])"
)
ENTRIES_FOUND: Final = (
    f"SELECT {LISTED_COLUMNS} FROM {_page(LISTED_COLUMNS, _ADMITTED)} WHERE bytes_before < %s ORDER BY seq DESC"
)
_CHARGED: Final = columns_of(OwnCharge, "part")
_CHARGED_COUNT: Final = len(names_in(_CHARGED))
_PRICED: Final = "mechanism, sigma, grid_log2, salt, piece"
_OWN_PIECE: Final = (
    "coalesce(piece, (SELECT sealed FROM pieces p"
    " WHERE p.dataset_id = %s AND p.seq = page.seq AND p.number = %s), ''::bytea)"
)
"""The bytes of the only piece that can hold a slot. Without such a piece the slot is untouched."""
_OWN_NUMBER: Final = f"CASE WHEN piece IS NULL THEN %s ELSE {WHOLE} END"
PADDING: Final = bytes(TWO_NORMS_BYTES_MAX + SEAL_BYTES)
_LENGTH: Final = (
    """CASE WHEN position('"rule":"clip"'::bytea IN canonical) > 0"""
    f" THEN {len(PADDING)} ELSE {CONTENT_BYTES_MAX + SEAL_BYTES} END"
)
"""The length of the part of an entry that is read for an individual's receipt, however many others it touched."""
_PADDED: Final = f"length(own), substring(own || %s::bytea FROM 1 FOR {_LENGTH})"
OWN_CHARGES: Final = (
    f"SELECT {_CHARGED}, mechanism, sigma, grid_log2, salt, {_OWN_NUMBER}, {_PADDED}"
    f" FROM {_page(f'{_CHARGED}, {_PRICED}')}"
    f" CROSS JOIN LATERAL (SELECT {_OWN_PIECE} AS own) AS own_piece WHERE bytes_before < %s ORDER BY seq DESC"
)
# The key is looked up now: of an individual erased since there is none, and an erasure itself has none either.
ACT_LISTED_COLUMNS: Final = columns_of(ActRecord)
ACTS_LISTED: Final = (
    f"SELECT {ACT_LISTED_COLUMNS} FROM ("
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
    f"SELECT seq, kind, mechanism, sigma, grid_log2, salt, {_OWN_NUMBER}, {_PADDED}"
    f" FROM (SELECT seq, kind, canonical, {_PRICED} FROM ledger"
    " WHERE dataset_id = %s AND seq > %s ORDER BY seq LIMIT %s) AS page"
    f" CROSS JOIN LATERAL (SELECT {_OWN_PIECE} AS own) AS own_piece ORDER BY seq"
)
"""The facts about one slot in the next entries after a sequence, all of one size."""


def escaped(word: str) -> str:
    """The LIKE pattern that matches this word and nothing else."""
    return word.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")


def own_charge_of(row: Sequence[Any], slot: int, seal: LedgerSeal, *, pruned_seq: int) -> OwnCharge:
    """The charge in a row of OWN_CHARGES. Raises Unreadable."""
    part = own_part(row[_CHARGED_COUNT:], slot, seal)
    return OwnCharge(**by_name(_CHARGED, row[:_CHARGED_COUNT]), part=None if row[0] <= pruned_seq else part)


def own_part(row: Sequence[Any], slot: int, seal: LedgerSeal) -> OwnOutcome:
    """The part of one slot, from mechanism, sigma, grid, salt, and the number, length and bytes of its piece.

    Bytes beyond the length are padding. Raises Unreadable.
    """
    mechanism, sigma, grid_log2, salt, number, length, sealed = row
    if length == 0:
        return OwnOutcome("untouched", 0, 0)
    quantities = seal.open(bytes(salt), number, bytes(sealed[:length])).quantities()
    return quantities.own(slot, law_of(mechanism, ldexp(sigma, -grid_log2)))


# The answers of one analyst

_ANSWER: Final = ", ".join(f"a.{name}" for name in names_in(ANSWER_COLUMNS)) + f", {SHOWN_COLUMNS}"
# The index of a principal's answers, in its order: no other index has that. Keys compare by their bytes, as in Python.
_OWN: Final = "principal_id, at, dataset_id, seq"
_PLACE: Final = 'at, dataset_id, seq, idempotency_key COLLATE "C"'
_NEWEST_FIRST: Final = 'at DESC, dataset_id DESC, seq DESC, idempotency_key COLLATE "C" DESC'
BEYOND_ALL: Final = ReleasePlace(datetime(9999, 1, 1, tzinfo=UTC), 0, 0, "")

# The answer to the query that was charged is of the entry's own instant: it is found by the whole index.
OWN_FIRST: Final = (
    f"SELECT d.name, {_ANSWER} FROM ledger l"
    f" CROSS JOIN LATERAL (SELECT dataset_id, {ANSWER_COLUMNS} FROM answers"
    f" WHERE ({_OWN}) >= (%s, l.asked_at, l.dataset_id, l.seq)"
    f" AND ({_OWN}) <= (%s, l.asked_at, l.dataset_id, l.seq)"
    f' ORDER BY {_OWN}, idempotency_key COLLATE "C" LIMIT 1) AS a'
    f" JOIN datasets d ON d.id = a.dataset_id {shown_by('a')} WHERE l.query_id = %s"
)
OWN_LATER: Final = (
    f"SELECT d.name, {_ANSWER} FROM answers a"
    f" JOIN datasets d ON d.id = a.dataset_id {shown_by('a')}"
    ' WHERE a.principal_id = %s AND a.query_id = %s ORDER BY a.at, a.idempotency_key COLLATE "C" LIMIT 1'
)
"""An answer that reuses an entry, given at a later instant than the entry's own."""

_RELEASED: Final = columns_of(ReleaseRecord, "dataset", "place")
_SHOWN: Final = _RELEASED.replace("canonical", "coalesce(asked_form, canonical) AS canonical")
# The canonical form may lie outside of its row; its length stands in the row, so that only what is listed is fetched.
RELEASES: Final = (
    f"SELECT name, at, dataset_id, seq, idempotency_key, {_RELEASED}"
    f" FROM (SELECT at, dataset_id, seq, idempotency_key, {_RELEASED},"
    f" sum(length(canonical)) OVER (ORDER BY {_NEWEST_FIRST}) - length(canonical) AS bytes_before"
    " FROM (SELECT at, dataset_id, seq, idempotency_key, asked_form FROM answers"
    f" WHERE principal_id = %s AND ({_PLACE}) < (%s, %s, %s, %s) ORDER BY {_NEWEST_FIRST} LIMIT %s) AS own"
    f" CROSS JOIN LATERAL (SELECT {_SHOWN} FROM ledger"
    " WHERE ledger.dataset_id = own.dataset_id AND ledger.seq = own.seq LIMIT 1) AS shown) AS page"
    f" JOIN datasets ON id = dataset_id WHERE bytes_before < %s ORDER BY {_NEWEST_FIRST}"
)


def own_answer(row: Sequence[Any]) -> OwnAnswer:
    """The answer in a row of OWN_FIRST or OWN_LATER."""
    return OwnAnswer(dataset=row[0], answer=answer_of(row[1 : 1 + ANSWER_COUNT]))


def release_of(row: Sequence[Any]) -> ReleaseRecord:
    """The release in a row of RELEASES."""
    dataset, at, dataset_id, seq, key, *released = row
    place = ReleasePlace(at=at.astimezone(UTC), dataset_id=dataset_id, seq=seq, key=key)
    return ReleaseRecord(dataset=dataset, place=place, **by_name(_RELEASED, released))
