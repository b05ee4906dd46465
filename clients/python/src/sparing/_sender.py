"""The sender of all requests of a `Client`, which carries out the steps of calls one after the other."""

import contextlib
import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

import httpx

from sparing._bodies import Sent, chunks, opened
from sparing._calls import Blocking, Call, Items, Steps, Stream
from sparing._deadlines import Deadline, in_force, traced
from sparing._errors import APIConnectionError, SparingError
from sparing._exchange import Announce, Outcome, Step, Try, Wait, steps_of
from sparing._options import SenderOptions
from sparing._pool import Pool
from sparing._replies import Reply, ReplyBody
from sparing._requests import Content, Keyed, Request

T = TypeVar("T")
BeforeSending = Callable[[str, str, Mapping[str, object]], None]
"""A function that is called with the dataset, the idempotency key and the document of a query or upload to be sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender(SenderOptions):
    """Sends requests over one pool of connections, which carries the address and the API key."""

    pool: Pool[httpx.Client]
    sleep: Callable[[float], None]  # seconds
    before_sending: BeforeSending | None = None

    def run(self, call: Call[T]) -> T:
        """The result of a call. Raises SparingError, and all that the call raises."""
        steps: Steps[Step, T] = Steps(steps_of(call, self.retry))
        for step in steps:
            steps.reply = self._do(step)
        return steps.result

    def each(self, stream: Stream[T]) -> Iterator[T]:
        """The items of a stream as they are consumed; nothing is sent before the first."""
        steps: Steps[Step | Items[T], None] = Steps(steps_of(stream, self.retry))
        for step in steps:
            if isinstance(step, Items):
                yield from step.items
            else:
                steps.reply = self._do(step)

    def _do(self, step: Step) -> object:
        match step:
            case Try():
                return self._tried(step.request)
            case Wait():
                self.sleep(step.seconds)
            case Blocking():
                return step.work()
            case Announce():
                self._announce(step.keyed)
        return None

    def _announce(self, keyed: Keyed) -> None:
        if self.before_sending is None:
            return
        tell = cast("Callable[[str, str, Mapping[str, object]], object]", self.before_sending)
        told = tell(keyed.dataset, keyed.idempotency_key, keyed.document)
        if inspect.isawaitable(told):
            getattr(told, "close", lambda: None)()
            raise TypeError("before_sending returned something to be awaited, which only AsyncClient does")

    def _tried(self, request: Request) -> Outcome:
        deadline = Deadline(clock=time.monotonic, ends_at=time.monotonic() + self.timeout_s)
        with _body_of(request, deadline) as (content, length), in_force(deadline):
            try:
                return self._answered(request, content, length, deadline)
            except (httpx.RequestError, SparingError) as error:
                return error
            except httpx.InvalidURL as error:
                return APIConnectionError(f"Nothing was sent, because the address is not valid: {error}")
            except RuntimeError:
                if not self.pool.http.is_closed:
                    raise
                return APIConnectionError("Nothing was received, because this client is closed")

    def _answered(self, request: Request, content: Content | None, length: int | None, deadline: Deadline) -> Reply:
        """The whole reply of one try. Raises ReadTimeout if it is late, and APIReplyError if it is too long."""
        with self.pool.http.stream(
            request.method,
            request.path,
            params=request.params,
            content=content,
            headers={**request.headers(length), **self.words.drawn()},
            timeout=self.timeout,
            extensions={"trace": traced},
        ) as response:
            self.words.check(response)
            body = ReplyBody(response, request.bytes_max(self.reply_bytes_max))
            begun = deadline.clock()
            for chunk in [response.content] if response.is_stream_consumed else response.iter_raw():
                body.add(chunk)
                if request.is_for_file:
                    deadline.received(len(chunk), deadline.clock() - begun)
                    begun = deadline.clock()
                if deadline.left_s() <= 0:
                    raise httpx.ReadTimeout("the try took too long as a whole", request=response.request)
            return body.reply()


@contextlib.contextmanager
def _body_of(request: Request, deadline: Deadline) -> Iterator[tuple[Content | None, int | None]]:
    """A context with the content of one try and its length. It closes the content; files move the deadline."""
    if request.content is None or isinstance(request.content, bytes):
        yield request.content, None if request.content is None else len(request.content)
        return
    with deadline.stopped():
        body = opened(request.content)
    with contextlib.closing(body):
        yield _told(body.content, Sent(request.progress, body.length), deadline), body.length


def _told(content: Content, sent: Sent, deadline: Deadline) -> Iterator[bytes]:
    sent.add(b"")
    parts = chunks(content)
    while True:
        with deadline.stopped():
            chunk = next(parts, None)
        if chunk is None:
            return
        with deadline.transferring(len(chunk)):
            yield chunk
        sent.add(chunk)
