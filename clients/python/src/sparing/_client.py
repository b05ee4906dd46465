"""The client: an address, a key, one pool of connections, and the resources that use it."""

import os
import random
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self, Unpack

import httpx

from sparing._answers import Answer
from sparing._builder import DatasetQueries
from sparing._constants import CONNECT_TIMEOUT_S, ENV_API_KEY, ENV_URL, MAX_RETRIES, TIMEOUT_S
from sparing._query import NoiseRequest
from sparing._resources.allowances import Allowances
from sparing._resources.datasets import Datasets
from sparing._resources.me import Me
from sparing._resources.principals import Principals
from sparing._resources.queries import Queries
from sparing._retry import RetryPolicy
from sparing._sender import Sender
from sparing._version import __version__

__all__ = ["Client"]

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Client:
    """A connection to a Sparing service. Safe to share between threads; close it, or use it in a `with` statement.

    Attributes:
        datasets: register, fill and watch datasets (curators).
        principals: make and revoke keys (curators).
        queries: ask (analysts); `dataset(name).query()` writes the same step by step.
        allowances: the worst-case charges that may still be caused (analysts).
        me: an individual's own account (individuals).
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT_S,
        max_retries: int = MAX_RETRIES,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        rng: Callable[[], float] = random.random,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """Make a client; no request is sent yet.

        Args:
            base_url: the service's address; default: the environment variable SPARING_URL.
            api_key: default: the environment variable SPARING_API_KEY.
            timeout: seconds that one try may take.
            max_retries: the number of retries of a failed request, where that is safe.
            transport: replaces the network in tests.
            sleep: waits for some seconds; for tests.
            rng: uniform on [0, 1), for the random part of waiting; for tests.
            environ: the environment variables.

        Raises:
            ValueError: no address or no key is given, or one that cannot be sent.
        """
        self._url = httpx.URL(_given("base_url", base_url, environ, ENV_URL))
        key = _checked_key(_given("api_key", api_key, environ, ENV_API_KEY))
        self._http = httpx.Client(
            base_url=self._url,
            headers={"Authorization": f"Bearer {key}", "User-Agent": f"sparing-client/{__version__}"},
            timeout=httpx.Timeout(timeout, connect=min(timeout, CONNECT_TIMEOUT_S)),
            transport=transport,
            trust_env=self._url.host not in _LOOPBACK,  # a proxy cannot reach this machine
        )
        sender = Sender(self._http, RetryPolicy(max_retries=max_retries, sleep=sleep, rng=rng))
        self.datasets = Datasets(sender)
        self.principals = Principals(sender)
        self.queries = Queries(sender)
        self.allowances = Allowances(sender)
        self.me = Me(sender)

    def dataset(self, name: str) -> DatasetQueries:
        """One dataset, for queries written step by step; nothing is sent yet."""
        return DatasetQueries(name, self.queries, self.datasets)

    def sql(
        self,
        text: str,
        *,
        dataset: str,
        l2_clip: float | None = None,
        rows: int | None = None,
        reuse: bool = True,
        idempotency_key: str | None = None,
        **noise: Unpack[NoiseRequest],
    ) -> Answer:
        """Ask a query in SQL: `SELECT town, COUNT(*) FROM people GROUP BY town`, with noise and bounds beside it.

        `dataset(name).sql(text)` gives the query itself, for a preview. Raises SQLError where the text has what the
        dialect does not, ImportError without sqlglot, and what `queries.ask` raises.
        """
        query = self.dataset(dataset).sql(text).noise(**noise)
        query = query if l2_clip is None else query.clip(l2_clip)
        query = query if rows is None else query.rows(rows)
        return (query if reuse else query.fresh()).run(idempotency_key=idempotency_key)

    def close(self) -> None:
        """Close the connections. Calling it twice is harmless."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client(base_url={str(self._url)!r}, api_key='********')"


def _given(name: str, value: str | None, environ: Mapping[str, str], variable: str) -> str:
    found = environ.get(variable, "") if value is None else value
    if not found.strip():
        raise ValueError(f"give {name}, or set {variable}")
    return found.strip()


def _checked_key(key: str) -> str:
    # Checked here because the HTTP library would quote a key that it cannot send in its error.
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError("api_key must be printable ASCII without spaces")
    return key
