"""The ledger for auditors, who verify its chain. Numbers of people charged are for curators alone."""

from typing import Annotated
from uuid import UUID

from fastapi import Query

from service.api.auth import Caller, CurrentReplica, guarded_router
from service.api.models import without_counts
from service.api.pagination import LIMIT_DEFAULT, Cursor, Limit, opaque
from service.ledger.model.views import AuditedRow, LedgerRow, Page

router = guarded_router("curator", "auditor")


@router.get("/datasets/{dataset}/ledger", summary="Read the ledger")
def read_ledger(
    replica: CurrentReplica,
    caller: Caller,
    dataset: str,
    cursor: Cursor = None,
    limit: Limit = LIMIT_DEFAULT,
    analyst: Annotated[UUID | None, Query(description="The id of an analyst, whose entries alone are listed.")] = None,
    search: Annotated[
        str, Query(max_length=200, pattern=r"^[^\x00]*$", description="Words that the canonical query must all have.")
    ] = "",
) -> Page[LedgerRow] | Page[AuditedRow]:
    """Every query ever answered, newest first: analyst, query, noise and public worst case.

    `analyst` and `search` list those of one analyst, and those whose canonical query has every word of the search.
    """
    page = opaque(replica.auditors.ledger(dataset, cursor=cursor, limit=limit, analyst_id=analyst, search=search))
    if caller.role == "curator":
        return page
    return Page(items=tuple(without_counts(row) for row in page.items), next=page.next)
