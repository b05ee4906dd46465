"""An analyst's own releases, newest first; within one second by dataset and sequence."""

from datetime import datetime
from typing import Final

import orjson

from service.core.units import rho_of_units
from service.query.words import in_words
from service.workflows.model.analyst_views import ReleaseRow
from service.workflows.model.listing_rows import ReleasePlace, ReleaseRecord
from service.workflows.model.views import Page, Principal
from service.workflows.ports.store import Store
from service.workflows.reads.pages import PAGE_BYTES_MAX, is_full, number_of, unknown_cursor

_PARTS: Final = len(ReleasePlace._fields)


def releases(store: Store, principal: Principal, *, cursor: str | None, limit: int) -> Page[ReleaseRow]:
    """One page of releases. Raises InvalidRequest on an unknown cursor."""
    before = None if cursor is None else _place_of(cursor)
    found = store.releases_of(principal.id, before=before, limit=limit, bytes_max=PAGE_BYTES_MAX)
    has_next = is_full([len(record.canonical) for record in found], limit=limit)
    return Page(items=tuple(map(_release_row, found)), next=_cursor_at(found[-1].place) if has_next else None)


def _release_row(record: ReleaseRecord) -> ReleaseRow:
    query = orjson.loads(record.canonical)
    return ReleaseRow(
        id=record.query_id,
        dataset=record.dataset,
        sequence=record.place.seq,
        query=query,
        words=in_words(query),
        sigma=record.sigma,
        dimension=record.dimension,
        worst_case_rho=str(rho_of_units(record.worst_case_units)),
        released_at=record.place.at,
        epoch=record.epoch,
    )


def _cursor_at(place: ReleasePlace) -> str:
    return f"{place.at.isoformat()}/{place.dataset_id}/{place.seq}/{place.key}"


def _place_of(cursor: str) -> ReleasePlace:
    """The full place of the last release shown, since many may be of one second."""
    at, *numbers, key = cursor.split("/", _PARTS - 1) if cursor.count("/") >= _PARTS - 1 else ("", "")
    try:
        instant = datetime.fromisoformat(at)
    except ValueError as error:
        raise unknown_cursor() from error
    if instant.tzinfo is None or not (key.isascii() and key.isprintable()):
        raise unknown_cursor()
    dataset_id, seq = (number_of(number, default=0) for number in numbers)
    return ReleasePlace(at=instant, dataset_id=dataset_id, seq=seq, key=key)
