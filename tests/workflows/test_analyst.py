"""The worst case of a preview as an epsilon, and an analyst's own releases, page by page."""

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from datetime import datetime

import pytest

from service.ledger.model.analyst_views import ReleaseRow
from service.ledger.model.errors import InvalidRequest
from service.ledger.model.views import Principal
from service.query.canonical import canonical_json
from service.query.parse import parse_query
from service.workflows.replica import Replica
from tests.factories import analyst, ask, open_replica, register, upload

HALF = b'{"version":1,"select":[{"count":{}}],"noise":{"share":0.5}}'


def test_without_a_declared_delta_the_worst_case_is_no_epsilon() -> None:
    """With one it is the accounting's, as each of them shows."""
    with open_replica() as replica:
        register(replica, rho="0.5")
        assert replica.analysts.preview(analyst(replica), "survey", parse_query(HALF)).worst_case_epsilon is None


KEYS = ["b", "a", "a/b", "//", "Z", "~", " "]


@pytest.fixture
def replica() -> Iterator[Replica]:
    """Two datasets and a fixed clock, so that all releases are of one second."""
    with open_replica() as opened:
        for name in ("survey", "another"):
            register(opened, name)
            upload(opened, "people", [("ann", "NO", 44, 10)], name)
        yield opened


def every_page(replica: Replica, who: Principal, limit: int) -> list[tuple[ReleaseRow, ...]]:
    """The items of each page, in order."""
    pages: list[tuple[ReleaseRow, ...]] = []
    cursor = None
    while not pages or cursor is not None:
        page = replica.analysts.releases(who, cursor=cursor, limit=limit)
        pages.append(page.items)
        cursor = page.next
    return pages


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_a_page_that_ends_within_a_second_loses_and_repeats_nothing(replica: Replica, limit: int) -> None:
    """The newer dataset and the later sequence come first; two answers that show one entry are both listed."""
    who = analyst(replica)
    for number, key in enumerate(KEYS):
        ask(replica, who, key, noise={"sigma": 5.0 + number})
        ask(replica, who, f"{key}!", noise={"sigma": 5.0 + number})
        ask(replica, who, key, "another")
    listed = [row for page in every_page(replica, who, limit) for row in page]
    expected = [("another", 1)] * len(KEYS) + [("survey", seq) for seq in range(len(KEYS), 0, -1) for _ in range(2)]
    assert [(row.dataset, row.sequence) for row in listed] == expected


def test_long_queries_end_a_page_early(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first query that reaches the bound is the last of its page; pages go on until all are listed."""
    who = analyst(replica)
    for number in range(5):
        ask(replica, who, str(number), noise={"sigma": 5.0 + number})
    (page,) = every_page(replica, who, 100)
    length = len(canonical_json(page[0].query))
    for bytes_max, expected in ((2 * length, [2, 2, 1]), (2 * length + 1, [3, 2]), (1, [1] * 5 + [0])):
        monkeypatch.setattr("service.reads.ledger.PAGE_BYTES_MAX", bytes_max)
        monkeypatch.setattr("service.workflows.analyst.PAGE_BYTES_MAX", bytes_max)
        assert [len(page) for page in every_page(replica, who, 100)] == expected


@pytest.mark.parametrize(
    "cursor",
    [
        "2026-11-21T09:30:15/1/1/key",
        "2026-11-21T09:30:15+00:00/1/1",
        "2026-11-21T09:30:15+00:00/x/1/key",
        "2026-11-21T09:30:15+00:00/1/-1/key",
        "2026-11-21T09:30:15+00:00/1/1/k\0y",
        "never/1/1/key",
        "",
        "///",
    ],
)
def test_a_cursor_that_this_listing_has_not_given_is_refused(replica: Replica, cursor: str) -> None:
    """The refusal is InvalidRequest, not a database error."""
    with pytest.raises(InvalidRequest) as refused:
        replica.analysts.releases(analyst(replica), cursor=cursor, limit=3)
    assert [error.field for error in refused.value.errors] == ["cursor"]


def test_the_longest_cursor_fits_into_an_address(replica: Replica) -> None:
    """A key may have 128 characters, a cursor as it is sent 512."""
    who = analyst(replica)
    ask(replica, who, "~" * 128)
    cursor = replica.analysts.releases(who, cursor=None, limit=1).next
    assert cursor is not None
    assert datetime.fromisoformat(cursor.partition("/")[0]).microsecond == 0
    assert len(urlsafe_b64encode(cursor.encode())) <= 512
    assert replica.analysts.releases(who, cursor=cursor, limit=1).items == ()
