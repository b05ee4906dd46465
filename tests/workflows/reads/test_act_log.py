"""The log of acts: everything that was done to a dataset, and nothing that an erasure has taken away."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from service.testing.store import MemoryStore
from service.workflows.model.errors import InvalidRequest, NotFound
from service.workflows.model.views import ActRow, Principal
from service.workflows.replica import Replica
from tests.factories import analyst, ask, open_replica, register, upload

ROWS = [("ann", "NO", 44, 10), ("canary-bob", "SE", 30, 20.5)]


@pytest.fixture
def store() -> MemoryStore:
    """One of its own."""
    return MemoryStore()


@pytest.fixture
def replica(store: MemoryStore) -> Iterator[Replica]:
    """Two people, and another dataset to which nothing was done."""
    with open_replica(store) as opened:
        register(opened)
        register(opened, "other")
        upload(opened, "people", ROWS)
        yield opened


def owner(replica: Replica, key: str) -> Principal:
    """Whose account it is."""
    return replica.principals.create(role="individual", name="owner", dataset="survey", individual=key)[0]


def acts(replica: Replica, *, limit: int = 100) -> list[ActRow]:
    """All of them, page by page."""
    page = replica.curators.acts("survey", cursor=None, limit=limit)
    found = [*page.items]
    while page.next is not None:
        page = replica.curators.acts("survey", cursor=page.next, limit=limit)
        found += page.items
    return found


def told(replica: Replica) -> list[tuple[str, int, str | None, dict[str, Any]]]:
    """What each act says."""
    return [(each.act, each.sequence, each.individual, each.detail) for each in acts(replica)]


def test_every_act_is_told_newest_first(replica: Replica) -> None:
    """In words and in rho, never in slots; what was done between two questions says so."""
    replica.individuals.lower_limit(owner(replica, "ann"), "survey", limit_rho=Decimal("0.25"))
    ask(replica, analyst(replica), "k1")
    replica.curators.open_epoch("survey")
    replica.curators.erase_individual("survey", "canary-bob")
    assert told(replica) == [
        ("erase", 1, None, {}),
        ("epoch", 1, None, {"epoch": 2}),
        ("limit", 0, "ann", {"limit_rho": "0.25"}),
        ("rows", 0, None, {"table": "people", "rows": 2, "individuals": 2}),
    ]
    assert replica.curators.acts("other", cursor=None, limit=5).items == ()


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_join_up(replica: Replica, limit: int) -> None:
    """Each act once, whatever comes while the pages are turned."""
    for _ in range(5):
        replica.curators.open_epoch("survey")
    assert [each.number for each in acts(replica, limit=limit)] == [6, 5, 4, 3, 2, 1]
    first = replica.curators.acts("survey", cursor=None, limit=2)
    replica.curators.open_epoch("survey")
    assert [each.number for each in replica.curators.acts("survey", cursor=first.next, limit=2).items] == [4, 3]


def test_an_erased_key_does_not_come_back(replica: Replica) -> None:
    """Neither in the erasure, nor in what that person did before; the act itself stays in the log."""
    bob = owner(replica, "canary-bob")
    replica.individuals.lower_limit(bob, "survey", limit_rho=Decimal("0.25"))
    assert [each.individual for each in acts(replica)] == ["canary-bob", None]
    replica.curators.erase_individual("survey", "canary-bob")
    assert "canary" not in repr(acts(replica))
    assert [each.act for each in acts(replica)] == ["erase", "limit", "rows"]


def test_an_act_of_a_kind_that_is_not_known_tells_that_it_was_done(replica: Replica, store: MemoryStore) -> None:
    """And when, and to whom: what its detail may say was decided by whoever made that kind."""
    with store.transaction(1, lock=True) as transaction:
        transaction.journal("later", {"slot": 0, "secret": "canary"})
        transaction.commit()
    (newest, *_) = acts(replica)
    assert (newest.act, newest.individual, newest.detail) == ("later", "ann", {})


def test_a_reconciliation_says_what_was_burned(replica: Replica, store: MemoryStore) -> None:
    """In rho, without the positions that it settled."""
    detail = {"why": "witness-lost", "units": str(2**39), "joining_units": "0", "fence": 2, "settled": [1, 1, 1]}
    with store.transaction(1, lock=True) as transaction:
        transaction.journal("reconcile", detail)
        transaction.commit()
    assert acts(replica)[0].detail == {"why": "witness-lost", "burned_rho": "0.5", "joining_rho": "0"}


def test_an_unknown_dataset_and_a_strange_cursor_are_refused(replica: Replica) -> None:
    """As in every listing."""
    with pytest.raises(NotFound):
        replica.curators.acts("nowhere", cursor=None, limit=5)
    with pytest.raises(InvalidRequest):
        replica.curators.acts("survey", cursor="x", limit=5)
