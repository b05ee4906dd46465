"""The asynchronous client, the counterpart of `Client` with awaited methods."""

import asyncio
import copy
import random
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Self, Unpack

import httpx

from sparing._answers import Answer
from sparing._async_resources.allowances import AsyncAllowances
from sparing._async_resources.datasets import AsyncDatasets
from sparing._async_resources.me import AsyncMe
from sparing._async_resources.principals import AsyncPrincipals
from sparing._async_resources.queries import AsyncQueries
from sparing._async_sender import AsyncBeforeSending, AsyncSender
from sparing._builder import AsyncDatasetQueries, bounded
from sparing._connection import Connection
from sparing._constants import MAX_RETRIES, REPLY_BYTES_MAX, TIMEOUT_S
from sparing._options import timeout_of
from sparing._pool import Pool
from sparing._query import ByItem, NoiseRequest
from sparing._retry import RetryPolicy


class AsyncClient:
    """A connection to a Sparing service for asyncio, with the methods of `Client`.

    Methods are awaited, and listings and batches are asynchronous iterators. The tasks of one event loop may share a
    client. Close it with `aclose`, or use it in an `async with` statement.

    Attributes:
        datasets: register, fill and watch datasets (curators).
        principals: make and revoke keys (curators).
        queries: ask (analysts); `dataset(name).query()` writes the same step by step.
        allowances: the worst-case charges that may still be caused (analysts).
        me: an individual's own account (individuals).
    """

    def __init__(  # noqa: PLR0913 - each is optional, and has a name
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT_S,
        max_retries: int = MAX_RETRIES,
        reply_bytes_max: int = REPLY_BYTES_MAX,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: Callable[[], float] = random.random,
        environ: Mapping[str, str] | None = None,
        before_sending: AsyncBeforeSending | None = None,
    ) -> None:
        """Make a client; no request is sent yet.

        Args:
            base_url: the service's address; default: the environment variable SPARING_URL.
            api_key: the API key; default: the environment variable SPARING_API_KEY.
            timeout: seconds that one try may take as a whole; `Client` says what is added for files.
            max_retries: the number of retries of a failed request, if sending it again is safe.
            reply_bytes_max: the most bytes of one reply, unpacked; a longer reply raises APIReplyError.
            transport: a replacement of the network, for tests.
            sleep: a function that waits for some seconds; for tests.
            rng: a function that returns uniform numbers on [0, 1), for the random part of waits; for tests.
            environ: the environment variables; default: those of the process.
            before_sending: a function as `Client` takes it, or a coroutine function; called in the thread of the event
                loop.

        Raises:
            ValueError: the address or the key is missing or cannot be sent; or `timeout`, `max_retries` or
                `reply_bytes_max` is out of range.
            TypeError: `timeout`, `max_retries` or `reply_bytes_max` is not a number.
        """
        connection = Connection.of(base_url, api_key, environ)
        sender = AsyncSender(
            pool=Pool(lambda: httpx.AsyncClient(**connection.options(transport)), transport),
            timeout=timeout_of(timeout),
            retry=RetryPolicy(max_retries=max_retries, rng=rng),
            reply_bytes_max=reply_bytes_max,
            sleep=sleep,
            before_sending=before_sending,
        )
        self._url = connection.url
        self._use(sender)

    def _use(self, sender: AsyncSender) -> None:
        self._sender = sender
        self.datasets = AsyncDatasets(sender)
        self.principals = AsyncPrincipals(sender)
        self.queries = AsyncQueries(sender)
        self.allowances = AsyncAllowances(sender)
        self.me = AsyncMe(sender)

    def with_options(self, *, timeout: float | None = None, max_retries: int | None = None) -> Self:
        """A client with other options for some requests; see `Client.with_options`. Closing one client closes both."""
        other = copy.copy(self)
        other._use(self._sender.with_options(timeout=timeout, max_retries=max_retries))  # noqa: SLF001 - one's own class
        return other

    def dataset(self, name: str) -> AsyncDatasetQueries:
        """One dataset, for queries written step by step; nothing is sent yet."""
        return AsyncDatasetQueries(name, self._sender)

    async def sql(
        self,
        text: str,
        *,
        dataset: str,
        l2_clip: ByItem | None = None,
        rows: int | None = None,
        reuse: bool = True,
        idempotency_key: str | None = None,
        **noise: Unpack[NoiseRequest],
    ) -> Answer:
        """Ask a query in SQL, with noise and bounds beside it; see `Client.sql`."""
        query = bounded(self.dataset(dataset).sql(text), l2_clip=l2_clip, rows=rows, reuse=reuse)
        return await query.noise(**noise).run(idempotency_key=idempotency_key)

    async def aclose(self) -> None:
        """Close the connections. Calling it twice is harmless."""
        await self._sender.pool.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"AsyncClient(base_url={str(self._url)!r}, api_key='********')"
