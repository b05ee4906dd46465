"""One class for each kind of failure, for any form of response."""

import pickle
from collections.abc import Callable
from typing import Any

import httpx
import pytest

import sparing
from sparing import APIReplyError, APIStatusError, Client, SparingError
from sparing._errors import error_of, failure_of

CLASSES = {
    400: "InvalidRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    410: "NotFoundError",
    409: "ConflictError",
    413: "InvalidRequestError",
    415: "InvalidRequestError",
    422: "InvalidRequestError",
    429: "RateLimitedError",
    500: "APIStatusError",
    502: "UnavailableError",
    503: "UnavailableError",
    504: "UnavailableError",
}


def told(reply: httpx.Response) -> APIStatusError:
    """The exception for a reply."""
    return error_of(reply.status_code, reply.headers, reply.content)


@pytest.mark.parametrize(("status", "name"), CLASSES.items())
def test_each_status_has_its_class(status: int, name: str, problem: Callable[..., httpx.Response]) -> None:
    """The tree in the module's docstring, row by row; every one is a SparingError."""
    error = told(problem(status, "some-slug"))

    assert type(error) is getattr(sparing, name)
    assert isinstance(error, SparingError)
    assert (error.status, error.type, error.slug) == (status, "urn:sparing:problem:some-slug", "some-slug")
    assert (error.title, error.detail, error.request_id) == ("No.", "Not now.", "r-1")
    assert str(error) == f"{status} Not now. (request r-1)"


def test_a_message_says_nothing_twice(problem: Callable[..., httpx.Response]) -> None:
    """The detail sums up the first fields; the others follow, one a line."""
    errors = [{"field": "noise.sigma", "message": "must be positive"}, {"field": "select", "message": "is empty"}]
    error = told(problem(422, "invalid-request", detail="noise.sigma: must be positive", errors=errors))

    assert str(error) == "422 noise.sigma: must be positive (request r-1)\n  select: is empty"
    assert [{"field": wrong.field, "message": wrong.message} for wrong in error.errors] == errors


@pytest.mark.parametrize("body", [b"<html>Bad gateway</html>", b"", b"[1]", b"null"])
def test_an_html_response_of_a_proxy_is_understood(body: bytes) -> None:
    """Proxies between client and service do not send problem documents."""
    error = told(httpx.Response(502, content=body, headers={"X-Request-Id": "r-9"}))

    assert type(error) is sparing.UnavailableError
    assert (error.detail, error.request_id, error.errors) == ("HTTP 502", "r-9", ())


def test_every_error_of_the_http_library_becomes_ours() -> None:
    """Every exception that httpx can raise for a request is mapped; none reaches the caller."""
    pending, seen = [httpx.RequestError], set()
    while pending:
        kind = pending.pop()
        pending.extend(kind.__subclasses__())
        seen.add(kind)
        error = failure_of(kind("boom", request=httpx.Request("GET", "https://name:secret@sparing.test/v1?cursor=x")))
        assert isinstance(error, sparing.APIConnectionError)
        assert isinstance(error, sparing.APITimeoutError) == issubclass(kind, httpx.TimeoutException)
        assert "secret" not in str(error)
    assert len(seen) > 15


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"name": 3}', b'{"items": 3}'])
def test_a_response_of_another_service_is_reported(body: bytes, client: Client, script: Any) -> None:
    """A wrong address is the usual reason; a bare KeyError would not say so."""
    script.steps = [httpx.Response(200, content=body)] * 2

    with pytest.raises(APIReplyError):
        client.datasets.get(dataset="d")
    if body != b"[]":
        with pytest.raises(APIReplyError):
            list(client.datasets.list())


def test_a_refusal_comes_whole_from_another_process(problem: Callable[..., httpx.Response]) -> None:
    """A pool of processes pickles it."""
    reply = problem(422, errors=[{"field": "sigma", "message": "is missing"}])
    error = error_of(422, reply.headers, reply.content)
    error.idempotency_key = "k"
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
