"""A scripted service that records its requests, clients of it, and the fake service that commands are run against."""

import asyncio
import contextlib
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, cast

import httpx
import pytest

from clients.python.tests.command_runs import Run, run_of, shop
from sparing import AsyncClient, Client
from sparing.testing import FakeService

Step = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


@dataclass
class Script:
    """Answers the n-th request with the n-th step; a request beyond the script is an error of the client."""

    steps: list[Step] = field(default_factory=list)
    requests: list[httpx.Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    slept_s: list[float] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(request.read())
        self.requests.append(request)
        step = self.steps[len(self.requests) - 1]
        if isinstance(step, Exception):
            raise step
        return step(request) if callable(step) else step

    @property
    def keys(self) -> list[str | None]:
        return [request.headers.get("Idempotency-Key") for request in self.requests]


class Waited:
    """An asynchronous client, one of its resources or a query, used as the synchronous one: it waits for everything."""

    def __init__(self, wrapped: Any, runner: asyncio.Runner) -> None:
        self._wrapped, self._runner = wrapped, runner

    def __getattr__(self, name: str) -> Any:
        return self._waited(getattr(self._wrapped, name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._waited(self._wrapped(*args, **kwargs))

    def __repr__(self) -> str:
        return repr(self._wrapped)

    def _waited(self, found: Any) -> Any:
        if inspect.iscoroutine(found):
            return self._runner.run(found)
        if isinstance(found, AsyncIterator):
            return self._iterated(found)
        is_ours = type(found).__name__.startswith("Async") or inspect.ismethod(found)
        return Waited(found, self._runner) if is_ours else found

    def _iterated(self, items: AsyncIterator[Any]) -> Iterator[Any]:
        async def following() -> Any:
            return await anext(items, self)

        while (item := self._runner.run(following())) is not self:
            yield item


@contextlib.contextmanager
def connected(kind: type[Client | AsyncClient], script: Script, **options: Any) -> Iterator[Client]:
    """A client of `script` whose random numbers are one half and whose sleep takes no time; if asynchronous, waited."""

    async def sleep(seconds: float) -> None:
        script.slept_s.append(seconds)

    given: dict[str, Any] = {
        "base_url": "https://sparing.test",
        "api_key": "sparing_1_secret",
        "transport": httpx.MockTransport(script),
        "rng": lambda: 0.5,
        "environ": {},
    } | options
    if issubclass(kind, Client):
        with kind(sleep=script.slept_s.append, **given) as found:
            yield found
        return
    with asyncio.Runner() as runner:
        awaited = kind(sleep=sleep, **given)
        yield cast("Client", Waited(awaited, runner))
        runner.run(awaited.aclose())


@pytest.fixture
def script() -> Script:
    """An empty script; a test fills in its steps."""
    return Script()


@pytest.fixture(params=[Client, AsyncClient])
def client_kind(request: pytest.FixtureRequest) -> type[Client | AsyncClient]:
    """Each kind of client in turn."""
    found: type[Client | AsyncClient] = request.param
    return found


@pytest.fixture
def connect(client_kind: type[Client | AsyncClient], script: Script) -> Callable[..., AbstractContextManager[Client]]:
    """Connects a client of this kind to `script`, with other options."""
    return functools.partial(connected, client_kind, script)


@pytest.fixture
def client(client_kind: type[Client | AsyncClient], script: Script) -> Iterator[Client]:
    """A client of this kind."""
    with connected(client_kind, script) as found:
        yield found


@pytest.fixture(scope="session")
def play() -> Callable[..., tuple[object, Script]]:
    """Does something with a new client, and returns the outcome, if need be an exception, and what the service saw."""

    def played(
        kind: type[Client | AsyncClient], steps: list[Step], act: Callable[[Client], Any], **options: Any
    ) -> Any:
        script = Script(steps)
        with connected(kind, script, **options) as found:
            try:
                return act(found), script
            except Exception as error:  # noqa: BLE001 - an exception is an outcome
                return error, script

    return played


@pytest.fixture
def fake() -> Iterator[FakeService]:
    """A fake service with a dataset whose answers are exact; modules with other datasets have their own."""
    with shop() as made:
        yield made


@pytest.fixture
def run(fake: FakeService) -> Run:
    """Runs a command against the fake service."""
    return run_of(fake)


@pytest.fixture
def answer() -> dict[str, Any]:
    """An answer as the service sends it."""
    return {
        "id": "0190-a",
        "sequence": 7,
        "values": [41.5],
        "labels": [{"select": "count"}],
        "axes": [{"select": [{"select": "count", "offset": 0, "size": 1}]}],
        "sigma": 20.0,
        "grid": 0.5,
        "dimension": 1,
        "half_width_95": 39.2,
        "worst_case_rho": "0.00125",
        "coverage_certified": True,
        "reused": False,
        "epoch": 1,
        "released_at": "2026-11-21T09:00:00+00:00",
        "table": "people",
        "a_member_of_a_newer_service": 1,
    }


@pytest.fixture
def problem() -> Callable[..., httpx.Response]:
    """A factory of responses that carry a problem document."""

    def made(status: int, slug: str = "busy", *, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
        body = {
            "type": f"urn:sparing:problem:{slug}",
            "title": "No.",
            "status": status,
            "detail": "Not now.",
            "request_id": "r-1",
        }
        return httpx.Response(status, json={**body, **more}, headers=headers)

    return made
