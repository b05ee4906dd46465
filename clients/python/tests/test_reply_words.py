"""Each request has a word; a reply that repeats another one is none."""

from typing import Any

import httpx
import pytest

from sparing import APIConnectionError, Client, UnavailableError
from sparing._reply_words import REPLY_TO


def repeating(document: Any, status: int = 200) -> Any:
    """A reply of a service that repeats words."""
    return lambda request: httpx.Response(status, json=document, headers={REPLY_TO: request.headers[REPLY_TO]})


def test_a_reply_to_another_request_is_none(client: Client, script: Any, answer: Any) -> None:
    """The query is asked again under its key, and with another word."""
    script.steps = [
        httpx.Response(200, json={**answer, "values": [1.0]}, headers={REPLY_TO: "other"}),
        repeating(answer),
    ]
    assert client.queries.ask(dataset="d", sigma=20).values == (41.5,)
    first, second = script.requests
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]
    assert first.headers[REPLY_TO] != second.headers[REPLY_TO]


def test_a_refusal_of_another_request_is_none(connect: Any, script: Any) -> None:
    """Nor is it told as one."""
    script.steps = [httpx.Response(404, headers={REPLY_TO: "other"})]
    with connect(max_retries=0) as client, pytest.raises(APIConnectionError, match="is to another request"):
        client.queries.ask(dataset="d", sigma=20)


def test_a_service_that_has_repeated_words_does_so_always(connect: Any, script: Any, answer: Any) -> None:
    """From then on an answer without one is none; the options of some requests change nothing about that."""
    script.steps = [httpx.Response(200, json=answer), repeating(answer), httpx.Response(200, json=answer)]
    with connect(max_retries=0) as client:
        for _ in range(2):
            assert client.queries.ask(dataset="d", sigma=20).values == (41.5,)
        with pytest.raises(APIConnectionError, match="is to another request"):
            client.with_options(timeout=1).queries.ask(dataset="d", sigma=20)


def test_a_refusal_without_a_word_is_of_a_proxy(connect: Any, script: Any, answer: Any) -> None:
    """It is told as it came."""
    script.steps = [repeating(answer), httpx.Response(502)]
    with connect(max_retries=0) as client:
        client.queries.ask(dataset="d", sigma=20)
        with pytest.raises(UnavailableError):
            client.queries.ask(dataset="d", sigma=20)


def test_the_fake_service_repeats_words(fake: Any) -> None:
    """In answers and refusals."""
    with httpx.Client(transport=fake.transport, base_url=fake.url) as client:
        for key in (fake.api_key, "unknown"):
            headers = {"Authorization": f"Bearer {key}", REPLY_TO: "word"}
            assert client.get("/v1/datasets", headers=headers).headers[REPLY_TO] == "word"
