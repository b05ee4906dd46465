"""An analyst's own replies: one by its id, and all of them as a listing. No statement here reads a private column."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from service.store.postgres.rows import ANSWER_COLUMNS, ANSWER_COUNT, answer_of
from service.workflows.model.listing_rows import ReleasePlace, ReleaseRecord
from service.workflows.model.rows import OwnAnswer

_ANSWER: Final = ", ".join(f"a.{column.strip()}" for column in ANSWER_COLUMNS.split(","))
# The index of a principal's replies, in its order: no other index has that. Keys compare by their bytes, as in Python.
_OWN: Final = "principal_id, at, dataset_id, seq"
_PLACE: Final = 'at, dataset_id, seq, idempotency_key COLLATE "C"'
_NEWEST_FIRST: Final = 'at DESC, dataset_id DESC, seq DESC, idempotency_key COLLATE "C" DESC'
_BEYOND_ALL: Final = ReleasePlace(datetime(9999, 1, 1, tzinfo=UTC), 0, 0, "")

# The reply to the query that was charged is of the entry's own instant: it is found by the whole index.
SHOWN_FIRST: Final = (
    f"SELECT d.name, {_ANSWER} FROM ledger l"
    f" CROSS JOIN LATERAL (SELECT dataset_id, {ANSWER_COLUMNS} FROM answers"
    f" WHERE ({_OWN}) >= (%s, l.asked_at, l.dataset_id, l.seq)"
    f" AND ({_OWN}) <= (%s, l.asked_at, l.dataset_id, l.seq)"
    f' ORDER BY {_OWN}, idempotency_key COLLATE "C" LIMIT 1) AS a'
    " JOIN datasets d ON d.id = a.dataset_id WHERE l.query_id = %s"
)
SHOWN_LATER: Final = (
    f"SELECT d.name, {_ANSWER} FROM answers a"
    " JOIN datasets d ON d.id = a.dataset_id"
    ' WHERE a.principal_id = %s AND a.query_id = %s ORDER BY a.at, a.idempotency_key COLLATE "C" LIMIT 1'
)
"""A reply that was given another's entry, at some later instant."""

_SHOWN: Final = "query_id, epoch, canonical, sigma, dimension, worst_case_units"
# The canonical form may lie outside of its row; its length stands in the row, so that only what is listed is fetched.
LISTED: Final = (
    f"SELECT name, at, dataset_id, seq, idempotency_key, {_SHOWN}"
    f" FROM (SELECT at, dataset_id, seq, idempotency_key, {_SHOWN},"
    f" sum(length(canonical)) OVER (ORDER BY {_NEWEST_FIRST}) - length(canonical) AS bytes_before"
    " FROM (SELECT at, dataset_id, seq, idempotency_key FROM answers"
    f" WHERE principal_id = %s AND ({_PLACE}) < (%s, %s, %s, %s) ORDER BY {_NEWEST_FIRST} LIMIT %s) AS own"
    f" CROSS JOIN LATERAL (SELECT {_SHOWN} FROM ledger"
    " WHERE ledger.dataset_id = own.dataset_id AND ledger.seq = own.seq LIMIT 1) AS shown) AS page"
    f" JOIN datasets ON id = dataset_id WHERE bytes_before < %s ORDER BY {_NEWEST_FIRST}"
)


def listed_values(
    principal_id: UUID, before: ReleasePlace | None, limit: int, canonical_bytes_max: int
) -> list[object]:
    """The values of LISTED."""
    return [principal_id, *(before or _BEYOND_ALL), limit, canonical_bytes_max]


def own_answer(row: Sequence[Any]) -> OwnAnswer:
    """A row of SHOWN_FIRST or SHOWN_LATER."""
    return OwnAnswer(dataset=row[0], answer=answer_of(row[1 : 1 + ANSWER_COUNT]))


def release_of(row: Sequence[Any]) -> ReleaseRecord:
    """A row of LISTED."""
    return ReleaseRecord(
        dataset=row[0],
        place=ReleasePlace(at=row[1].astimezone(UTC), dataset_id=row[2], seq=row[3], key=row[4]),
        query_id=row[5],
        epoch=row[6],
        canonical=bytes(row[7]),
        sigma=row[8],
        dimension=row[9],
        worst_case_units=row[10],
    )
