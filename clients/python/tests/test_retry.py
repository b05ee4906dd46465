"""Retries: the same key on every try, only where it is safe, and a bounded number of times."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from sparing import APITimeoutError, Client

Problem = Callable[..., httpx.Response]

LOST: list[Exception] = [
    httpx.ConnectError("refused"),
    httpx.ConnectTimeout("slow"),
    httpx.ReadTimeout("slow"),
    httpx.ReadError("reset"),
    httpx.RemoteProtocolError("cut off"),
    httpx.WriteError("broken pipe"),
    httpx.PoolTimeout("full"),
]


def ask(client: Client, **more: Any) -> Any:
    """Ask the shortest query there is."""
    return client.queries.ask(dataset="web-visits", sigma=20, **more)


@pytest.mark.parametrize("status", [409, 429, 502, 503, 504])
def test_a_query_is_retried_with_the_same_key_and_bytes(
    status: int, client: Client, script: Any, answer: Any, problem: Problem
) -> None:
    """Every try of one query is the same request to the service."""
    script.steps = [problem(status), problem(status), httpx.Response(200, json=answer)]

    found = ask(client)

    assert found.value == 41.5
    assert len(script.requests) == 3
    assert script.keys == [found.idempotency_key] * 3
    assert len(set(script.bodies)) == 1


@pytest.mark.parametrize("lost", LOST, ids=lambda error: type(error).__name__)
def test_a_lost_answer_is_fetched_by_asking_again(lost: Exception, client: Client, script: Any, answer: Any) -> None:
    """The service stores the answer under the first key; a client that made a new key would be charged twice."""
    stored: dict[str, Any] = {}

    def first(request: httpx.Request) -> httpx.Response:
        stored[request.headers["Idempotency-Key"]] = answer
        raise lost

    script.steps = [first, lambda request: httpx.Response(200, json=stored[request.headers["Idempotency-Key"]])]

    assert ask(client).sequence == 7
    assert len(stored) == 1


def test_two_questions_have_two_keys(client: Client, script: Any, answer: Any) -> None:
    """A key names one query; asking the same again is a new query unless the caller says otherwise."""
    script.steps = [httpx.Response(200, json=answer)] * 3

    ask(client)
    ask(client)
    ask(client, idempotency_key="mine")

    assert len(set(script.keys)) == 3
    assert script.keys[2] == "mine"


def test_waits_grow_with_full_jitter_up_to_a_bound(client: Client, script: Any) -> None:
    """The n-th wait is uniform below 0.25 s times 2^n; the random number here is one half."""
    script.steps = [httpx.ReadTimeout("slow")] * 5

    with pytest.raises(APITimeoutError):
        ask(client)

    assert script.slept_s == [0.125, 0.25, 0.5, 1.0]


@pytest.mark.parametrize(("header", "wait_s"), [("2", 2.125), ("86400", 30.125), ("-1", 0.125), ("soon", 0.125)])
def test_retry_after_is_honoured_and_bounded(
    header: str, wait_s: float, client: Client, script: Any, answer: Any, problem: Problem
) -> None:
    """Jitter comes on top, so that clients told the same number do not retry together."""
    script.steps = [problem(503, headers={"Retry-After": header}), httpx.Response(200, json=answer)]

    ask(client)

    assert script.slept_s == [wait_s]
