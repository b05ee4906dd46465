"""A scripted service that records its requests."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from sparing import Client

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


@pytest.fixture
def script() -> Script:
    """An empty script; a test fills in its steps."""
    return Script()


@pytest.fixture
def client(script: Script) -> Iterator[Client]:
    """A client of `script` whose random numbers are one half and whose sleep takes no time."""
    with Client(
        base_url="https://sparing.test",
        api_key="sparing_1_secret",
        transport=httpx.MockTransport(script),
        sleep=script.slept_s.append,
        rng=lambda: 0.5,
        environ={},
    ) as found:
        yield found


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
