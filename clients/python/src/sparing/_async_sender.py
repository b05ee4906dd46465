"""The sender of all requests of an `AsyncClient`, which awaits the same steps as `Sender` carries out."""

import asyncio
import contextlib
import inspect
import math
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import httpx

from sparing._bodies import Body, Sent, chunks, opened
from sparing._calls import Blocking, Call, Items, Steps, Stream
from sparing._deadlines import Deadline
from sparing._errors import APIConnectionError, SparingError
from sparing._exchange import Announce, Outcome, Step, Try, Wait, steps_of
from sparing._options import SenderOptions
from sparing._pool import Pool
from sparing._replies import Reply, ReplyBody
from sparing._requests import Request

T = TypeVar("T")
AsyncBeforeSending = Callable[[str, str, Mapping[str, object]], Awaitable[None] | None]
"""A `BeforeSending` whose result is awaited if it is awaitable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncSender(SenderOptions):
    """Sends requests over one pool of connections, which carries the address and the API key."""

    pool: Pool[httpx.AsyncClient]
    sleep: Callable[[float], Awaitable[None]]  # seconds
    before_sending: AsyncBeforeSending | None = None

    async def run(self, call: Call[T]) -> T:
        """The result of a call. Raises SparingError, and all that the call raises."""
        steps: Steps[Step, T] = Steps(steps_of(call, self.retry))
        for step in steps:
            steps.reply = await self._do(step)
        return steps.result

    async def each(self, stream: Stream[T]) -> AsyncIterator[T]:
        """The items of a stream as they are consumed; nothing is sent before the first."""
        steps: Steps[Step | Items[T], None] = Steps(steps_of(stream, self.retry))
        for step in steps:
            if isinstance(step, Items):
                for item in step.items:
                    yield item
            else:
                steps.reply = await self._do(step)

    async def _do(self, step: Step) -> object:
        match step:
            case Try():
                return await self._tried(step.request)
            case Wait():
                await self.sleep(step.seconds)
            case Blocking():
                return await asyncio.to_thread(step.work)
            case Announce():
                if self.before_sending is not None:
                    keyed = step.keyed
                    told = self.before_sending(keyed.dataset, keyed.idempotency_key, keyed.document)
                    if inspect.isawaitable(told):
                        await told
        return None

    async def _tried(self, request: Request) -> Outcome:
        clock = asyncio.get_running_loop().time
        begun = clock()
        limit = asyncio.timeout_at(begun + self.timeout_s)
        deadline = Deadline(clock=clock, ends_at=begun + self.timeout_s, moved=_mover_of(limit))
        try:
            async with limit, _body_of(request, deadline) as (content, length):
                return await self._answered(request, content, length, deadline)
        except (httpx.RequestError, SparingError) as error:
            return error
        except httpx.InvalidURL as error:
            return APIConnectionError(f"Nothing was sent, because the address is not valid: {error}")
        except TimeoutError:
            if not limit.expired():
                raise
            asked = self.pool.http.build_request(request.method, request.path)
            return httpx.ReadTimeout("the try took too long as a whole", request=asked)
        except RuntimeError:
            if not self.pool.http.is_closed:
                raise
            return APIConnectionError("Nothing was received, because this client is closed")

    async def _answered(
        self, request: Request, content: bytes | AsyncIterator[bytes] | None, length: int | None, deadline: Deadline
    ) -> Reply:
        """The whole reply of one try. Raises APIReplyError if it is too long."""
        async with self.pool.http.stream(
            request.method,
            request.path,
            params=request.params,
            content=content,
            headers={**request.headers(length), **self.words.drawn()},
            timeout=self.timeout,
        ) as response:
            self.words.check(response)
            body = ReplyBody(response, request.bytes_max(self.reply_bytes_max))
            if response.is_stream_consumed:
                body.add(response.content)
                return body.reply()
            begun = deadline.clock()
            async for chunk in response.aiter_raw():
                body.add(chunk)
                if request.is_for_file:
                    deadline.received(len(chunk), deadline.clock() - begun)
                    begun = deadline.clock()
            return body.reply()


def _mover_of(limit: asyncio.Timeout) -> Callable[[float], None]:
    """A function that moves a limit of asyncio along with a deadline, unless the limit has expired."""

    def moved(ends_at: float) -> None:
        if not limit.expired():
            limit.reschedule(ends_at if math.isfinite(ends_at) else None)

    return moved


class _ChunksInThreads:
    """The chunks of a body, each read in a thread. Closing waits for a thread that is still reading."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._chunks = chunks(body.content)
        self._lock = threading.Lock()

    def next(self) -> bytes | None:
        """The next chunk; None after the last."""
        with self._lock:
            return next(self._chunks, None)

    def close(self) -> None:
        """Close the body, if it is a file."""
        with self._lock:
            self._body.close()


@contextlib.asynccontextmanager
async def _body_of(
    request: Request, deadline: Deadline
) -> AsyncIterator[tuple[bytes | AsyncIterator[bytes] | None, int | None]]:
    """A context with the content of one try and its length; it closes the content at the end."""
    if request.content is None or isinstance(request.content, bytes):
        yield request.content, None if request.content is None else len(request.content)
        return
    with deadline.stopped():
        body = await asyncio.to_thread(opened, request.content)
    parts = _ChunksInThreads(body)
    try:
        async with contextlib.aclosing(_told(parts, Sent(request.progress, body.length), deadline)) as content:
            yield content, body.length
    finally:
        await asyncio.to_thread(parts.close)


async def _told(parts: _ChunksInThreads, sent: Sent, deadline: Deadline) -> AsyncGenerator[bytes, None]:
    sent.add(b"")
    while True:
        with deadline.stopped():
            chunk = await asyncio.to_thread(parts.next)
        if chunk is None:
            return
        with deadline.transferring(len(chunk)):
            yield chunk
        sent.add(chunk)
