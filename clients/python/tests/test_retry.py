"""Retries: the same key on every try, only where it is safe, and a bounded number of times."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from sparing import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    Client,
    ConflictError,
    InvalidRequestError,
    UnavailableError,
)

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


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 500])
def test_a_refusal_that_time_does_not_cure_is_final(status: int, client: Client, script: Any, problem: Problem) -> None:
    """Above all 422: the query itself is wrong."""
    script.steps = [problem(status, "invalid-request")]

    with pytest.raises(APIStatusError) as refusal:
        ask(client)

    assert refusal.value.status == status
    assert len(script.requests) == 1
    assert script.slept_s == []


def test_five_tries_and_then_the_error_carries_the_key(client: Client, script: Any, problem: Problem) -> None:
    """With the key, the caller can ask later whether the query was answered."""
    script.steps = [problem(503)] * 9

    with pytest.raises(UnavailableError) as failure:
        ask(client)

    assert len(script.requests) == 5
    assert failure.value.idempotency_key == script.keys[0]


def test_no_retry_when_none_is_wanted(script: Any, problem: Problem) -> None:
    """`max_retries=0` sends once."""
    script.steps = [problem(503)]
    transport = httpx.MockTransport(script)

    with (
        Client(base_url="https://sparing.test", api_key="k", max_retries=0, transport=transport) as client,
        pytest.raises(UnavailableError),
    ):
        ask(client)

    assert len(script.requests) == 1


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


@pytest.mark.parametrize("lost", LOST, ids=lambda error: type(error).__name__)
def test_an_upload_is_sent_again_under_its_key(lost: Exception, client: Client, script: Any) -> None:
    """The service stores it once: after any failure the whole file is sent again."""
    script.steps = [lost, httpx.Response(200, json={"rows": 1, "individuals": 1})]
    client.datasets.upload(dataset="d", table="t", file=b"a\n1\n")
    assert script.bodies == [b"a\n1\n"] * 2
    assert script.keys[0] == script.keys[1] is not None


@pytest.mark.parametrize("lost", LOST, ids=lambda error: type(error).__name__)
def test_making_a_key_is_repeated_only_if_the_request_never_left(lost: Exception, client: Client, script: Any) -> None:
    """The service cannot tell a repeat from a second principal."""
    never_left = isinstance(lost, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    script.steps = [lost, httpx.Response(422)]
    with pytest.raises(APIStatusError if never_left else APIConnectionError):
        client.principals.create(role="analyst", name="Ann")
    assert len(script.requests) == 1 + never_left


@pytest.mark.parametrize("status", [409, 502, 503, 504])
def test_making_a_key_is_not_repeated(status: int, client: Client, script: Any, problem: Problem) -> None:
    """It may have been made, and a second principal would be left over; 409 here means that a name is taken."""
    script.steps = [problem(status)]

    with pytest.raises(APIStatusError):
        client.principals.create(role="analyst", name="Ann")

    assert len(script.requests) == 1


def test_reading_is_repeated_but_a_conflict_is_not(client: Client, script: Any, problem: Problem) -> None:
    """Reading changes nothing; a conflict without a key is an answer."""
    script.steps = [problem(503), httpx.ReadError("reset"), problem(409, "name-taken")]

    with pytest.raises(ConflictError) as conflict:
        client.datasets.get(dataset="d")

    assert conflict.value.slug == "name-taken"
    assert len(script.requests) == 3


def test_422_names_the_fields(client: Client, script: Any, problem: Problem) -> None:
    """The message of the exception is enough to mend the query."""
    errors = [{"field": "where.ge[1]", "message": "must be a number"}]
    script.steps = [problem(422, "invalid-request", errors=errors)]

    with pytest.raises(InvalidRequestError, match=r"where\.ge\[1\]: must be a number") as refusal:
        ask(client)

    assert [(wrong.field, wrong.message) for wrong in refusal.value.errors] == [("where.ge[1]", "must be a number")]
    assert refusal.value.request_id == "r-1"
