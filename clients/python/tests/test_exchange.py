"""The core of both clients without a client: a generator is told what happened, and says what to do next."""

from collections.abc import Generator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing import APIConnectionError, APIStatusError, SparingError
from sparing._calls import Blocking, Items, all_of, blocking, listing
from sparing._exchange import Announce, Outcome, Try, Wait, steps_of
from sparing._models import Allowance
from sparing._requests import Keyed, Request, get
from sparing._retry import Repeat, RetryPolicy

RETRY = RetryPolicy(max_retries=4, rng=lambda: 0.5)
KEYED = (Keyed(dataset="d", idempotency_key="k", document={"version": 1}),)
ASKED = Request(method="POST", path="/v1/q", repeat=Repeat.KEYED, idempotency_key="k", keyed=KEYED)
ADDRESS = httpx.Request("POST", "https://sparing.test/v1/q")
NEVER_LEFT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
LOST = (httpx.ReadTimeout, httpx.ReadError, httpx.RemoteProtocolError, httpx.WriteError)
OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.sampled_from([200, 400, 401, 403, 404, 409, 413, 422, 429, 500, 502, 503, 504]).map(
        lambda status: httpx.Response(status, json={}, request=ADDRESS)
    ),
    st.sampled_from([*NEVER_LEFT, *LOST, httpx.UnsupportedProtocol, httpx.TooManyRedirects]).map(
        lambda kind: kind("lost", request=ADDRESS)
    ),
)


def one(request: Request) -> Generator[Request | Blocking, object, object]:
    """A call of one request."""
    return (yield request)


def test_the_steps_of_a_query_that_is_lost_and_then_answered() -> None:
    """Told of once, tried, waited for, tried again."""
    steps = steps_of(one(ASKED), RETRY)
    assert next(steps) == Announce(KEYED[0])
    assert steps.send(None) == Try(ASKED)
    assert steps.send(httpx.ReadTimeout("late", request=ADDRESS)) == Wait(0.125)
    assert steps.send(None) == Try(ASKED)
    with pytest.raises(StopIteration) as end:
        steps.send(httpx.Response(200, json={"id": "q"}, request=ADDRESS))
    assert end.value.value == {"id": "q"}


@given(st.lists(OUTCOMES, min_size=5, max_size=5), st.sampled_from(Repeat))
def test_the_first_final_outcome_is_the_end(outcomes: list[Outcome], repeat: Repeat) -> None:
    """One wait between two tries, never more than five tries, and no try after an outcome that time does not cure."""
    request = Request(method="POST", path="/v1/q", repeat=repeat, idempotency_key="k")
    steps = steps_of(one(request), RETRY)
    taken: list[Any] = [next(steps)]
    told = iter(outcomes)
    found: object = None
    try:
        while True:
            taken.append(steps.send(next(told) if isinstance(taken[-1], Try) else None))
    except StopIteration as end:
        found = end.value
    except SparingError as error:
        found = error
    tries = sum(isinstance(step, Try) for step in taken)
    assert [type(step) for step in taken] == ([Try, Wait] * tries)[:-1]
    curable = [is_curable(outcome, repeat) for outcome in outcomes]
    assert tries == (curable.index(False) + 1 if False in curable else 5)
    last = outcomes[tries - 1]
    assert not isinstance(last, SparingError)
    expected = (
        APIConnectionError if isinstance(last, Exception) else dict if last.status_code == 200 else APIStatusError
    )
    assert isinstance(found, expected)
    assert getattr(found, "idempotency_key", "k") == "k"


def is_curable(outcome: Outcome, repeat: Repeat) -> bool:
    """The table of the README, written anew."""
    if isinstance(outcome, httpx.UnsupportedProtocol | httpx.TooManyRedirects):
        return False
    if not isinstance(outcome, httpx.Response):
        return repeat is not Repeat.ONCE or isinstance(outcome, NEVER_LEFT)
    cured = {Repeat.KEYED: {409, 429, 502, 503, 504}, Repeat.READ: {429, 502, 503, 504}, Repeat.ONCE: {429}}
    return outcome.status_code in cured[repeat]


def test_blocking_work_and_items_pass_through() -> None:
    """They are the business of the sender and of the reader of a stream."""
    work = steps_of(blocking(lambda: 3), RETRY)
    step = next(work)
    assert isinstance(step, Blocking)
    with pytest.raises(StopIteration) as end:
        work.send(step.work())
    assert end.value.value == 3

    stream = steps_of(listing(Allowance, "/v1/allowances"), RETRY)
    assert next(stream) == Try(get("/v1/allowances"))
    items = stream.send(httpx.Response(200, json=[{"dataset": "d", "spent_rho": "0"}], request=ADDRESS))
    assert isinstance(items, Items)
    assert [each.dataset for each in items.items] == ["d"]
    with pytest.raises(StopIteration):
        next(stream)


def test_all_items_of_a_stream_are_one_result() -> None:
    """Items of every page, in order."""
    call = all_of(listing(Allowance, "/v1/allowances", limit=1))
    assert next(call) == get("/v1/allowances", limit=1)
    page = {"items": [{"dataset": "d", "spent_rho": "0"}], "next": "c"}
    assert call.send(page) == get("/v1/allowances", limit=1, cursor="c")
    with pytest.raises(StopIteration) as end:
        call.send({"items": [{"dataset": "e", "spent_rho": "0"}], "next": None})
    assert [each.dataset for each in end.value.value] == ["d", "e"]
