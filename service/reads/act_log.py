"""A dataset's log of acts for its curators: act, time and individual, the newest first.

Details kept for replicas, such as the touched slots, are not shown. A table states what is shown of each kind of act.
An act of a kind that is not in the table is shown without details.
"""

from collections.abc import Mapping
from typing import Any, Final

from service.core.charge import rho_of_units
from service.ledger.model.views import ActRow, Page
from service.reads.ledger import NEWEST, PAGE_BYTES_MAX, is_full, number_of, snapshot
from service.writer.rollback.guard import RollbackGuard

_TOLD: Final = {
    "rows": ("table", "rows", "individuals", "rows_dropped", "rows_unknown", "rows_repeated"),
    "archive": ("rows",),
    "correct": ("columns",),
    "epoch": ("epoch",),
    "extend": ("version", "capacity", "epoch"),
    "reconcile": ("why",),
    "amend": ("after", "to"),
    "prune": ("seq",),
}
_TOLD_AS_RHO: Final = {
    "limit": {"limit_units": "limit_rho"},
    "reconcile": {"units": "burned_rho", "joining_units": "joining_rho"},
}
"""By act: the name of each amount in units, and the name under which it is shown in rho."""


def acts(guard: RollbackGuard, *, cursor: str | None, limit: int) -> Page[ActRow]:
    """The acts, newest first; the cursor is the number of the last act shown. Raises Unavailable, Fenced."""
    before = number_of(cursor, default=NEWEST)
    with snapshot(guard) as transaction:
        found = transaction.act_records(before=before, limit=limit, bytes_max=PAGE_BYTES_MAX)
    has_next = is_full([len((record.key or "").encode()) for record in found], limit=limit)
    rows = (
        ActRow(
            number=record.number,
            act=record.act,
            sequence=record.at_seq,
            at=record.at,
            individual=record.key,
            detail=_shown(record.act, record.detail),
        )
        for record in found
    )
    return Page(items=tuple(rows), next=str(found[-1].number) if has_next else None)


def _shown(act: str, detail: Mapping[str, Any]) -> dict[str, object]:
    """The shown part of an act's detail. Names that the detail does not have are left out."""
    plain = {name: detail[name] for name in _TOLD.get(act, ()) if name in detail}
    return plain | {name: str(rho_of_units(int(detail[units]))) for units, name in _TOLD_AS_RHO.get(act, {}).items()}
