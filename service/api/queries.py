"""Taking a query off the wire and waiting for its answer."""

import asyncio
import re
from concurrent.futures import Future
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from service.api.problems import Refusal
from service.failpoints import reach
from service.query.language import Query
from service.query.parse import parse_query
from service.workflows.house import House
from service.workflows.views import Principal, StoredAnswer

_KEY = re.compile(r"[\x20-\x7e]{1,128}")


def checked_key(key: str | None) -> str:
    """The key itself. Raises a 400 refusal for none, or for one that is not 1 to 128 printable ASCII characters."""
    if key is None or not key.strip():
        raise Refusal(400, "idempotency-key-missing", "A query needs an Idempotency-Key; retry with the same one.")
    if _KEY.fullmatch(key) is None:
        raise Refusal(400, "idempotency-key-invalid", "An Idempotency-Key is 1 to 128 printable ASCII characters.")
    return key


async def _sent_key(request: Request) -> str:
    sent = request.headers.getlist("idempotency-key")
    return checked_key("\n".join(sent) if sent else None)  # two keys are no key: a newline is not printable


async def _sent_query(request: Request) -> Query:
    return parse_query(await request.body())


SentKey = Annotated[str, Depends(_sent_key)]
SentQuery = Annotated[Query, Depends(_sent_query)]

# FastAPI must not read these bodies as JSON itself: the language has a stricter reader of its own.
QUERY_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Query"}}},
    }
}
KEYED_QUERY: dict[str, Any] = {
    **QUERY_BODY,
    "parameters": [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": True,
            "description": "Names this request for good: sent again, it gets the same bytes and is not charged again.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 128},
        }
    ],
}


async def answered(house: House, principal: Principal, dataset: str, key: str, query: Query) -> StoredAnswer:
    """Submit a query and wait for its release. Raises what the workflow refuses with, all of it public."""
    reach("validated")
    answer = await arrived(await run_in_threadpool(house.submit, principal, dataset, key, query))
    reach("awaiting-release")
    return answer


async def arrived(future: "Future[StoredAnswer]") -> StoredAnswer:
    """Wait for a submitted query; the caller may be cancelled, the query never is."""
    waiting = asyncio.wrap_future(future)
    waiting.add_done_callback(_retrieve)
    return await asyncio.shield(waiting)


def _retrieve(waiting: "asyncio.Future[StoredAnswer]") -> None:
    # An exception that nobody retrieves is logged by asyncio with its text; look at it here, so that it never is.
    if not waiting.cancelled():
        waiting.exception()
