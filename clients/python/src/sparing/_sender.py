"""The only sender of requests: it repeats them where that is safe, and turns every failure into our exceptions."""

import contextlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO
from urllib.parse import quote

import httpx

from sparing._errors import APIReplyError, SparingError, error_of, failure_of
from sparing._retry import Repeat, RetryPolicy, retry_after_s

__all__ = ["Content", "Request", "Sender", "document", "path"]

_log = logging.getLogger("sparing")

Content = bytes | IO[bytes] | Iterable[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. `content` is called once per try, so that a file starts anew."""

    method: str
    path: str
    repeat: Repeat
    params: Mapping[str, str | int] | None = None
    content: Callable[[], Content] | None = None
    content_type: str | None = None
    content_length: int | None = None
    idempotency_key: str | None = None

    def headers(self) -> dict[str, str]:
        """The headers of this request alone."""
        length = None if self.content_length is None else str(self.content_length)
        named = {"Content-Type": self.content_type, "Idempotency-Key": self.idempotency_key, "Content-Length": length}
        return {name: value for name, value in named.items() if value is not None}


class Sender:
    """Sends requests over one pool of connections, again where `Repeat` allows."""

    def __init__(self, http: httpx.Client, retry: RetryPolicy) -> None:
        """`http` carries the address, the API key and the time limit."""
        self.http = http
        self._retry = retry

    def send(self, request: Request) -> object:
        """The JSON document of the response (None when it has no body).

        Raises:
            SparingError: a member of the tree in `sparing._errors`, carrying the request's idempotency key.
        """
        retry = 0
        while True:
            reply, failure, again = self._try(request)
            if failure is None:
                return reply
            if not again or retry >= self._retry.max_retries:
                failure.idempotency_key = request.idempotency_key
                raise failure
            _log.debug("%s %s again after: %s", request.method, request.path, failure)
            self._retry.wait(retry, failure.retry_after_s)
            retry += 1

    def get(self, where: str, **params: str | int) -> object:
        """The JSON document at `where`."""
        return self.send(Request(method="GET", path=where, repeat=Repeat.READ, params=params))

    def post(self, where: str, body: object = None, *, repeat: Repeat = Repeat.ONCE, key: str | None = None) -> object:
        """The JSON document of the response to posting `body`; `key` is the idempotency key."""
        content = None if body is None else document(body)
        kind = None if body is None else "application/json"
        return self.send(
            Request(method="POST", path=where, repeat=repeat, content=content, content_type=kind, idempotency_key=key)
        )

    def patch(self, where: str, body: object) -> object:
        """The JSON document of the response to patching with `body`, which is sent again where it failed."""
        return self.send(
            Request(
                method="PATCH", path=where, repeat=Repeat.READ, content=document(body), content_type="application/json"
            )
        )

    def pages(self, where: str, *, limit: int | None = None) -> Iterator[object]:
        """Every item of a listing, fetched page by page as they are consumed."""
        params: dict[str, str | int] = {} if limit is None else {"limit": limit}
        while True:
            page = self.get(where, **params)
            if isinstance(page, list):
                yield from page
                return
            if not isinstance(page, dict) or not isinstance(page.get("items"), list):
                raise APIReplyError(f"{where} is not a listing")
            yield from page["items"]
            if page.get("next") is None:
                return
            params["cursor"] = str(page["next"])

    def _try(self, request: Request) -> tuple[object, SparingError | None, bool]:
        try:
            with _opened(request) as content:
                response = self.http.request(
                    request.method, request.path, params=request.params, content=content, headers=request.headers()
                )
        except httpx.RequestError as error:
            failure = failure_of(error)
            failure.__cause__ = error
            return None, failure, request.repeat.after_failure(error)
        if response.is_success:
            return *_document_of(response), False
        refusal = error_of(response)
        refusal.retry_after_s = retry_after_s(response)
        return None, refusal, request.repeat.after_status(response.status_code)


def path(*parts: str) -> str:
    """`/v1/` and the parts, each escaped: names and keys may hold any character."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def document(body: object) -> Callable[[], bytes]:
    """The bytes of a JSON document, made once, so that every try sends the same. NaN and infinity are ValueErrors."""
    content = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    return lambda: content


@contextlib.contextmanager
def _opened(request: Request) -> Iterator[Content | None]:
    content = None if request.content is None else request.content()
    try:
        yield content
    finally:
        close = getattr(content, "close", None)
        if close is not None:
            close()


def _document_of(response: httpx.Response) -> tuple[object, SparingError | None]:
    if not response.content:
        return None, None
    try:
        return response.json(), None
    except ValueError:
        return None, APIReplyError(
            f"{response.url} answered with something that is not JSON; is this the service's address?"
        )
