"""The analyst's calls: ask, fetch again. Nothing here depends on the number of individuals."""

from functools import partial
from uuid import UUID

from fastapi import Request, Response

from service.api.auth import Caller, CurrentReplica, current_replica, guarded_router
from service.api.bodies import read_body
from service.api.body_length import is_small
from service.api.pagination import LIMIT_DEFAULT, Cursor, Limit, opaque
from service.api.places import current_places
from service.api.query_bodies import query_of_npz
from service.api.query_requests import (
    KEYED,
    KEYED_QUERY,
    FastRoute,
    admitted,
    read_query,
    room_for_npz,
    sent_key,
    wait_for_answer,
    whole_body,
)
from service.api.responses import ANSWER, JSON, NPZ, Accept, respond
from service.api.routes.batch import BATCH_ANSWERS, BATCH_BODY, answer_all, parse_batch
from service.failpoints import reach
from service.ledger.model.analyst_views import Allowance, ReleaseRow
from service.ledger.model.views import Page, Principal
from service.query.layout import LABELS_MAX
from service.writer.submission import PendingAnswer

router = guarded_router("analyst")
hot_router = guarded_router("analyst", route_class=FastRoute)


@hot_router.post(
    "/datasets/{dataset}/queries",
    summary="Ask a query",
    response_class=Response,
    responses=ANSWER,
    openapi_extra=KEYED_QUERY,
)
async def ask(request: Request, caller: Caller, dataset: str) -> Response:
    """Ask. The same key and body give the same bytes, charged once; a restored backup forgets later answers."""
    key, content_type = sent_key(request), request.headers.get("content-type")
    if content_type is not None and content_type.startswith(NPZ):
        pending = await _submit_npz(request, caller, dataset, key)
    else:
        analysts, is_short = current_replica(request).analysts, is_small(request.scope["headers"])
        if is_short:
            query = read_query(content_type, await whole_body(request), asker=caller.id)
        else:
            query = await read_body(request, caller, partial(read_query, content_type))
        if is_short and analysts.submits_at_once(dataset, query):
            pending = analysts.submit(caller, dataset, key, query)
        else:
            submit = partial(analysts.submit, caller, dataset, key, query)
            pending = await current_places(request).queries.run(caller.id, submit)
    with admitted(request, pending) as tickets:
        answer = await wait_for_answer(pending)
    reach("awaiting-release")
    respond_now = partial(respond, answer, request.headers.get("accept"), *tickets)
    if pending.dimension <= LABELS_MAX:
        return respond_now()
    return await current_places(request).answers.run(caller.id, respond_now)


async def _submit_npz(request: Request, caller: Principal, dataset: str, key: str) -> PendingAnswer:
    """Submit a query of perhaps megabytes.

    It is read off the event loop, and memory is held for it until it is submitted.
    """
    analysts, places = current_replica(request).analysts, current_places(request)
    with room_for_npz(request, caller):
        query = await places.bodies.run(caller.role, caller.id, partial(query_of_npz, await whole_body(request)))
        return await places.queries.run(caller.id, partial(analysts.submit, caller, dataset, key, query))


@hot_router.delete(
    "/datasets/{dataset}/queries",
    summary="Cancel a query that has not begun",
    status_code=204,
    response_class=Response,
    openapi_extra=KEYED,
)
async def cancel(request: Request, caller: Caller, dataset: str) -> Response:
    """Cancel a query that has not begun, by its key; the queries of a batch are one unit, and any of their keys does.

    Its request is refused with 410 `query-cancelled`, nothing is charged, and the key is free. Where no query waits
    under the key this is 409 `query-not-waiting`: one that has begun is answered. It waits for no turn of its own.
    """
    key = sent_key(request)
    cancelling = partial(current_replica(request).analysts.cancel, caller, dataset, key)
    await current_places(request).changes.run(caller.id, cancelling)
    return Response(status_code=204)


@hot_router.post(
    "/datasets/{dataset}/queries/batch",
    summary="Ask many queries",
    response_class=Response,
    responses=BATCH_ANSWERS,
    openapi_extra=BATCH_BODY,
)
async def ask_many(request: Request, caller: Caller, dataset: str) -> Response:
    """Ask many, in order and as one unit; each is answered or refused on its own."""
    entries = await read_body(request, caller, parse_batch)
    return Response(await answer_all(request, caller, dataset, entries), media_type=JSON)


@router.get("/queries/{query_id}", summary="Read one of your answers again", response_class=Response, responses=ANSWER)
def read_release(replica: CurrentReplica, caller: Caller, query_id: UUID, accept: Accept = None) -> Response:
    """One of the caller's own releases, as it was answered."""
    return respond(replica.analysts.release(caller, query_id), accept)


@router.get("/queries", summary="List your answers")
def list_releases(
    replica: CurrentReplica, caller: Caller, cursor: Cursor = None, limit: Limit = LIMIT_DEFAULT
) -> Page[ReleaseRow]:
    """The caller's own releases, newest first."""
    return opaque(replica.analysts.releases(caller, cursor=cursor, limit=limit))


@router.get("/allowances", summary="List your allowances")
def list_allowances(replica: CurrentReplica, caller: Caller) -> list[Allowance]:
    """The caller's allowances: what its queries may have cost any individual at worst, and what is left."""
    return replica.analysts.allowances(caller)
