"""An analyst's own releases, newest first."""

from datetime import datetime
from uuid import UUID

import orjson

from service.core.units import rho_of_units
from service.workflows.errors import InvalidRequest
from service.workflows.ledger import LedgerEntry
from service.workflows.ports import Store
from service.workflows.records import AnswerRecord, DatasetRecord
from service.workflows.views import Page, Principal, ReleaseRow


def releases(store: Store, principal: Principal, *, cursor: str | None, limit: int) -> Page[ReleaseRow]:
    """One page of them. Raises InvalidRequest on a strange cursor."""
    found = store.answers_of(principal.id, before=_instant(cursor), limit=limit)
    more = f"{found[-1][1].at.isoformat()}/{found[-1][1].query_id}" if len(found) == limit else None
    return Page(items=tuple(_release_row(*row) for row in found), next=more)


def _release_row(record: DatasetRecord, answer: AnswerRecord, entry: LedgerEntry) -> ReleaseRow:
    return ReleaseRow(
        id=entry.query_id,
        dataset=record.name,
        sequence=entry.seq,
        query=orjson.loads(entry.canonical),
        sigma=entry.sigma,
        dimension=entry.dimension,
        worst_case_rho=str(rho_of_units(entry.worst_case_units)),
        released_at=answer.at,
        epoch=entry.epoch,
    )


def _instant(cursor: str | None) -> tuple[datetime, UUID] | None:
    """The cursor of a listing of releases: the instant and id of the last one shown."""
    if cursor is None:
        return None
    at, _, query_id = cursor.partition("/")
    try:
        return datetime.fromisoformat(at), UUID(query_id)
    except ValueError as error:
        raise InvalidRequest.of("cursor", "not a cursor of this listing") from error
