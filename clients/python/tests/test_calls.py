"""Listings of a server that lies: they end."""

from itertools import cycle
from typing import Any

import httpx
import pytest

from sparing import APIReplyError, Client, _calls

ROW = {"id": "p", "role": "analyst", "name": "Ann", "created_at": "2026-01-01T00:00:00Z"}


def page(cursor: object, *rows: object) -> httpx.Response:
    """A page, and the name of the next."""
    return httpx.Response(200, json={"items": list(rows), "next": cursor})


@pytest.mark.parametrize("cursors", [["c"], ["a", "b"], [""]], ids=str)
def test_a_listing_that_goes_in_a_circle_ends(client: Client, script: Any, cursors: list[str]) -> None:
    """With each page once, also where there is nothing on it."""
    again = cycle(cursors)
    script.steps = [lambda _: page(next(again))] * 9
    with pytest.raises(APIReplyError, match="goes in a circle"):
        list(client.principals.list())
    assert len(script.requests) == len(cursors) + 1


@pytest.mark.parametrize("cursor", [7, ["c"], {}, True, "c" * 1001], ids=["int", "list", "dict", "bool", "long"])
def test_a_cursor_is_a_short_text(client: Client, script: Any, cursor: object) -> None:
    """Nothing else is sent back."""
    script.steps = [page(cursor, ROW)]
    with pytest.raises(APIReplyError, match="next page has no name"):
        list(client.principals.list())


def test_a_listing_has_an_end(client: Client, script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one whose cursors are all different; what came before is consumed."""
    monkeypatch.setattr(_calls, "PAGES_MAX", 3)
    script.steps = [page(f"c{number}", ROW) for number in range(9)]
    rows = client.principals.list()
    assert [next(rows).id for _ in range(3)] == ["p"] * 3
    with pytest.raises(APIReplyError, match="more than 3 pages"):
        next(rows)


def test_a_long_search_may_have_empty_pages(client: Client, script: Any) -> None:
    """The service sends an empty page where nothing was found so far."""
    script.steps = [page("a"), page("b"), page(None, ROW)]
    assert [row.id for row in client.principals.list()] == ["p"]


LISTS: dict[str, Any] = {
    "keys that are no list": (lambda c: c.principals.create_for(dataset="d", individuals=["a"]), {}),
    "erasure requests that are numbers": (lambda c: c.datasets.erasure_requests(dataset="d"), [7]),
    "a record that is a list": (lambda c: c.me.record(dataset="d"), []),
    "a record without end": (lambda c: c.me.record(dataset="d"), {"a": eval("[" * 70 + "]" * 70)}),  # noqa: S307
    "an erasure that says nothing": (lambda c: c.me.erasure_requested(dataset="d"), {}),
    "no object for outcomes": (lambda c: list(c.queries.batch([{"dataset": "d", "sigma": 1}])), []),
}


@pytest.mark.parametrize(("act", "found"), LISTS.values(), ids=LISTS)
def test_nothing_is_guessed_of_a_reply(client: Client, script: Any, act: Any, found: Any) -> None:
    """An empty list in place of the keys would lose them without a word."""
    script.steps = [httpx.Response(200, json=found)]
    with pytest.raises(APIReplyError):
        act(client)
