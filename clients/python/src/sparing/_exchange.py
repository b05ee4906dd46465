"""The steps of a call, which a sender carries out: announce, try, wait. Nothing is sent or waited for here."""

import logging
from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar, cast

import httpx

from sparing._calls import Blocking
from sparing._errors import APIReplyError, SparingError, error_of, failure_of
from sparing._files import CSV, PARQUET
from sparing._npz import NPZ, answer_of_npz
from sparing._replies import Reply, address_of
from sparing._requests import Keyed, Request
from sparing._retry import RetryPolicy, retry_after_s
from sparing._strict_json import json_document

_log = logging.getLogger("sparing")

T = TypeVar("T")
Other = TypeVar("Other")
Outcome = Reply | httpx.RequestError | SparingError
"""The outcome of one try: a reply of any status, a failure without a reply, or an error for which no retry helps."""


@dataclass(frozen=True, slots=True)
class Announce:
    """A step: call `before_sending` for a query or an upload, before its first try."""

    keyed: Keyed


@dataclass(frozen=True, slots=True)
class Try:
    """A step: send a request once, and send its `Outcome` back."""

    request: Request


@dataclass(frozen=True, slots=True)
class Wait:
    """A step: sleep for some seconds."""

    seconds: float


Step = Announce | Try | Wait | Blocking


def steps_of(
    call: Generator[Request | Other, object, T], retry: RetryPolicy
) -> Generator[Announce | Try | Wait | Other, object, T]:
    """The steps of a call or a stream: each request becomes steps with retries, and other steps stay as they are.

    The failure of a request is raised inside the call, which may then send another request.

    Raises:
        SparingError: one of the classes in `sparing._errors`, with the request's idempotency key.
    """
    reply: object = None
    failure: SparingError | None = None
    while True:
        try:
            step = call.send(reply) if failure is None else call.throw(failure)
        except StopIteration as end:
            return cast("T", end.value)
        reply = failure = None
        if not isinstance(step, Request):
            reply = yield step
            continue
        try:
            reply = yield from _exchanged(step, retry)
        except SparingError as refused:
            failure = refused


def _exchanged(request: Request, retry: RetryPolicy) -> Generator[Announce | Try | Wait, object, object]:
    """The JSON document or the file in the reply to a request, None without a body; retried as `Repeat` allows."""
    for keyed in request.keyed:
        yield Announce(keyed)
    retries = 0
    while True:
        reply, failure, again = _judged(request, cast("Outcome", (yield Try(request))))
        if failure is None:
            return reply
        if not again or retries >= retry.max_retries:
            failure.idempotency_key = request.idempotency_key
            raise failure
        _log.debug("%s %s again after: %s", request.method, request.path, failure)
        yield Wait(retry.wait_s(retries, failure.retry_after_s))
        retries += 1


def _judged(request: Request, outcome: Outcome) -> tuple[object, SparingError | None, bool]:
    """The content of a reply, the failure, and a flag that is true if a retry may help."""
    if isinstance(outcome, SparingError):
        return None, outcome, False
    if isinstance(outcome, httpx.RequestError):
        failure = failure_of(outcome)
        failure.__cause__ = outcome
        return None, failure, request.repeat.after_failure(outcome)
    if httpx.codes.is_success(outcome.status_code):
        return *_document_of(outcome), False
    refusal = error_of(outcome.status_code, outcome.headers, outcome.content)
    refusal.retry_after_s = retry_after_s(outcome.headers)
    return None, refusal, request.repeat.after_status(outcome.status_code)


def _document_of(response: Reply) -> tuple[object, SparingError | None]:
    if not response.content:
        return None, None
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    if kind in {CSV, PARQUET}:
        return response.content, None
    is_binary = kind == NPZ
    try:
        return answer_of_npz(response.content) if is_binary else json_document(response.content), None
    except ValueError as error:
        told = str(error) if is_binary else f"is not JSON ({error}); is this the service's address?"
        return None, APIReplyError(f"{address_of(response.request)} answered with something that {told}")
