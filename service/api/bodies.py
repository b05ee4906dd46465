"""Bodies of JSON: received, read and validated as work of their principal, off the event loop where they are large.

FastAPI would parse and validate a body in the event loop, let the last of two members of one name win, and gather an
error for each wrong part. Here `service.query.json_text` reads the document of every guarded route, in a place of the
principal, and the model stops at the first errors. FastAPI is given the finished model, and passes it through
unchanged.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, Final, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from service.api.body_length import SMALL_BODY_BYTES
from service.api.places import current_places
from service.api.problems import body_errors
from service.api.responses import JSON
from service.ledger.model.errors import InvalidRequest
from service.ledger.model.views import Principal
from service.query.json_text import document_of
from service.query.problems import QueryProblem
from service.workflows.replica import Replica

T = TypeVar("T")

BODY_COPIES: Final = 16
"""How many times a body's bytes are held while it is read: the body, its text, its document and what is made of it."""
VALUES_MAX: Final = 2**18
"""How many values a body may have: while they are parsed, the interpreter does nothing else."""
ESCAPES_MAX: Final = 2**20


async def read_body(request: Request, caller: Principal, read: Callable[[bytes], T]) -> T:
    """The result of `read` for the request's body.

    A large body is read in a place of the caller, with memory held for it. Raises TooManyAtOnce and Busy where the
    caller has no room for it, ClientDisconnect, and what `read` raises.
    """
    with ExitStack() as held:
        body = await _received(request, caller, held)
        if len(body) <= SMALL_BODY_BYTES:
            return read(body)
        return await current_places(request).bodies.run(caller.role, caller.id, partial(read, body))


async def _received(request: Request, caller: Principal, held: ExitStack) -> bytes:
    """The whole body; memory is held for each part as it comes, whatever length was declared."""
    replica: Replica = request.app.state.replica
    parts: list[bytes] = []
    async for part in request.stream():
        if len(part) > SMALL_BODY_BYTES or len(parts) > 0:
            _hold(held, replica, caller, BODY_COPIES * len(part))
        parts.append(part)
    return b"".join(parts)


def _hold(held: ExitStack, replica: Replica, caller: Principal, held_bytes: int) -> None:
    """Hold `held_bytes` more. Raises Busy, and InvalidRequest for more than may ever be held."""
    try:
        held.enter_context(replica.admission.holding(caller.id, held_bytes))
    except InvalidRequest:
        message = "takes more memory than all requests of one principal together may take; send less at once"
        raise InvalidRequest.of("body", message) from None


def read_model(model: type[BaseModel], body: bytes) -> BaseModel:
    """The model of a body. Raises InvalidRequest that names the first twenty wrong fields."""
    _check_extent(body)
    try:
        document = document_of(body)
    except QueryProblem as problem:
        raise InvalidRequest(*problem.errors) from None
    try:
        return model.model_validate(document)
    except ValidationError as error:
        refusal = InvalidRequest(*body_errors(error, document))
    raise refusal  # outside of the handler: what pydantic said quotes the document and goes no further


def _check_extent(body: bytes) -> None:
    """Refuse a body that would take long, by counting bytes. Those within text count too, so the bounds are wide."""
    if not body:
        raise InvalidRequest.of("body", "is required")
    if sum(map(body.count, (b",", b"[", b"{"))) > VALUES_MAX:
        raise InvalidRequest.of("body", f"has more than {VALUES_MAX} commas and opening brackets; send less at once")
    if body.count(b"\\") > ESCAPES_MAX:
        raise InvalidRequest.of("body", f"has more than {ESCAPES_MAX} escapes; write text as UTF-8")


def check_is_json(request: Request) -> None:
    """Raise InvalidRequest for a body whose type is stated and is not JSON; a body without a type is taken for JSON."""
    said = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if said != JSON and not (said.startswith("application/") and said.endswith("+json")):
        raise InvalidRequest.of("body", f"must be a JSON document, and its Content-Type {JSON}")


class SentRequest(Request):
    """A request as FastAPI is to see it: in place of its document it has the model that was made of its body."""

    def __init__(self, request: Request, sent: BaseModel) -> None:
        super().__init__(request.scope, request.receive)
        self._sent = sent

    async def body(self) -> bytes:
        """Some bytes, since FastAPI asks only whether there are any."""
        return b"{}"

    async def json(self) -> Any:  # noqa: ANN401 - as Starlette's
        """The model."""
        return self._sent


async def with_sent(request: Request, caller: Principal, model: type[BaseModel]) -> SentRequest:
    """The request with its body read as a `model`. Raises InvalidRequest, and what `read_body` raises."""
    check_is_json(request)
    return SentRequest(request, await read_body(request, caller, partial(read_model, model)))
