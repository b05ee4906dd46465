"""The steps of a call for a sender: when to announce, try and wait, and how it ends. It sends and waits for nothing."""

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
"""The end of one try: a whole reply, of any status, or none; or an error that no other try would mend."""


@dataclass(frozen=True, slots=True)
class Announce:
    """Tell `before_sending` of a query or an upload, before its first try."""

    keyed: Keyed


@dataclass(frozen=True, slots=True)
class Try:
    """Send a request once; its `Outcome` is sent back."""

    request: Request


@dataclass(frozen=True, slots=True)
class Wait:
    """Sleep."""

    seconds: float


Step = Announce | Try | Wait | Blocking


def steps_of(
    call: Generator[Request | Other, object, T], retry: RetryPolicy
) -> Generator[Announce | Try | Wait | Other, object, T]:
    """The steps of a call or a stream: each of its requests with its retries, and all else as it is.

    A failure is raised where the call waits for its reply, which may ask otherwise.

    Raises:
        SparingError: a member of the tree in `sparing._errors`, carrying the request's idempotency key.
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
    """The JSON document or the file of a reply, None when it has no body; asked for again where `Repeat` allows."""
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
    """The reply, or the failure and whether it is worth another try."""
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
