"""The client: an address, a key, one pool of connections, and the resources that use it."""

import copy
import inspect
import random
import time
from collections.abc import Callable, Mapping
from typing import Self, Unpack

import httpx

from sparing._answers import Answer
from sparing._builder import DatasetQueries, bounded
from sparing._closing import Closing
from sparing._connection import Connection
from sparing._constants import MAX_RETRIES, REPLY_BYTES_MAX, TIMEOUT_S
from sparing._options import timeout_of
from sparing._pool import Pool
from sparing._query import ByItem, NoiseRequest
from sparing._resources.allowances import Allowances
from sparing._resources.datasets import Datasets
from sparing._resources.me import Me
from sparing._resources.principals import Principals
from sparing._resources.queries import Queries
from sparing._retry import RetryPolicy
from sparing._sender import BeforeSending, Sender


class Client(Closing):
    """A connection to a Sparing service. Safe to share between threads; close it, or use it in a `with` statement.

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
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        rng: Callable[[], float] = random.random,
        environ: Mapping[str, str] | None = None,
        before_sending: BeforeSending | None = None,
    ) -> None:
        """Make a client; no request is sent yet.

        Args:
            base_url: the service's address; default: the environment variable SPARING_URL.
            api_key: the API key; default: the environment variable SPARING_API_KEY.
            timeout: seconds that one try may take as a whole. The time in which the bytes of a file are sent or fetched
                does not count, up to one second for each 64 KB.
            max_retries: the number of retries of a failed request, if sending it again is safe.
            reply_bytes_max: the most bytes of one reply, unpacked; a longer reply raises APIReplyError.
            transport: a replacement of the network, for tests.
            sleep: a function that waits for some seconds; for tests.
            rng: a function that returns uniform numbers on [0, 1), for the random part of waits; for tests.
            environ: the environment variables; default: those of the process.
            before_sending: called with the dataset, the idempotency key and the document of each query and upload
                before its first try, so that the key can be kept. If it raises, the call ends with nothing sent. The
                document of an upload is everything but its rows.

        Raises:
            ValueError: the address or the key is missing or cannot be sent; or `timeout`, `max_retries` or
                `reply_bytes_max` is out of range.
            TypeError: `timeout`, `max_retries` or `reply_bytes_max` is not a number, or `before_sending` is a coroutine
                function.
        """
        if inspect.iscoroutinefunction(before_sending):
            raise TypeError("before_sending must not be a coroutine function, which only AsyncClient awaits")
        connection = Connection.of(base_url, api_key, environ)
        sender = Sender(
            pool=Pool(lambda: httpx.Client(**connection.options(transport)), transport),
            timeout=timeout_of(timeout),
            retry=RetryPolicy(max_retries=max_retries, rng=rng),
            reply_bytes_max=reply_bytes_max,
            sleep=sleep,
            before_sending=before_sending,
        )
        self._url = connection.url
        self._use(sender)

    def _use(self, sender: Sender) -> None:
        self._sender = sender
        self.datasets = Datasets(sender)
        self.principals = Principals(sender)
        self.queries = Queries(sender)
        self.allowances = Allowances(sender)
        self.me = Me(sender)

    def with_options(self, *, timeout: float | None = None, max_retries: int | None = None) -> Self:
        """A client with other options for some requests: `client.with_options(timeout=2).queries.get(query=id)`.

        The new client shares the connections of this client: closing one closes both.

        Args:
            timeout: seconds that one try may take as a whole; None keeps this client's.
            max_retries: the number of retries; None keeps this client's.

        Raises:
            ValueError: an option is out of range.
            TypeError: an option is not a number.
        """
        other = copy.copy(self)
        other._use(self._sender.with_options(timeout=timeout, max_retries=max_retries))  # noqa: SLF001 - one's own class
        return other

    def dataset(self, name: str) -> DatasetQueries:
        """One dataset, for queries written step by step; nothing is sent yet."""
        return DatasetQueries(name, self._sender)

    def sql(
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
        """Ask a query in SQL: `SELECT town, COUNT(*) FROM people GROUP BY town`, with noise and bounds beside it.

        `dataset(name).sql(text)` returns the query itself, for a preview. Raises SQLError for a text that is not in the
        dialect, ImportError without sqlglot, and the exceptions of `queries.ask`.
        """
        query = bounded(self.dataset(dataset).sql(text), l2_clip=l2_clip, rows=rows, reuse=reuse)
        return query.noise(**noise).run(idempotency_key=idempotency_key)

    def close(self) -> None:
        """Close the connections. Calling it twice is harmless."""
        self._sender.pool.http.close()

    def __repr__(self) -> str:
        return f"Client(base_url={str(self._url)!r}, api_key='********')"
