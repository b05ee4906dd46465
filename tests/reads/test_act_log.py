"""The log of acts: all acts on a dataset, without the keys of erased individuals."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from service.ledger.model.errors import InvalidRequest, NotFound
from service.ledger.model.views import ActRow, Principal
from service.workflows.replica import Replica
from tests.factories import analyst, ask, open_replica, register, upload
from tests.memory.store import MemoryStore

ROWS = [("ann", "NO", 44, 10), ("canary-bob", "SE", 30, 20.5)]


@pytest.fixture
def replica(store: MemoryStore) -> Iterator[Replica]:
    """A replica with a dataset of two individuals, and a second dataset without acts."""
    with open_replica(store) as opened:
        register(opened)
        register(opened, "other")
        upload(opened, "people", ROWS)
        yield opened


def owner(replica: Replica, key: str) -> Principal:
    """The principal of an individual."""
    return replica.principals.create(role="individual", name="owner", dataset="survey", individual=key)[0]


def acts(replica: Replica, *, limit: int = 100) -> list[ActRow]:
    """All acts, read page by page."""
    page = replica.curators.acts("survey", cursor=None, limit=limit)
    found = [*page.items]
    while page.next is not None:
        page = replica.curators.acts("survey", cursor=page.next, limit=limit)
        found += page.items
    return found


def told(replica: Replica) -> list[tuple[str, int, str | None, dict[str, Any]]]:
    """(act, sequence, individual, detail) of each act."""
    return [(each.act, each.sequence, each.individual, each.detail) for each in acts(replica)]


def test_every_act_is_listed_newest_first(replica: Replica) -> None:
    """Details are in words and rho, never in slots; each act has the sequence at which it was done."""
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
    """Each act is listed once, also when new acts come between pages."""
    for _ in range(5):
        replica.curators.open_epoch("survey")
    assert [each.number for each in acts(replica, limit=limit)] == [6, 5, 4, 3, 2, 1]
    first = replica.curators.acts("survey", cursor=None, limit=2)
    replica.curators.open_epoch("survey")
    assert [each.number for each in replica.curators.acts("survey", cursor=first.next, limit=2).items] == [4, 3]


def test_an_erased_key_does_not_come_back(replica: Replica) -> None:
    """Neither the erasure nor the individual's earlier acts show the key; the acts themselves stay in the log."""
    bob = owner(replica, "canary-bob")
    replica.individuals.lower_limit(bob, "survey", limit_rho=Decimal("0.25"))
    assert [each.individual for each in acts(replica)] == ["canary-bob", None]
    replica.curators.erase_individual("survey", "canary-bob")
    assert "canary" not in repr(acts(replica))
    assert [each.act for each in acts(replica)] == ["erase", "limit", "rows"]


def test_an_act_of_an_unknown_kind_is_listed_without_detail(replica: Replica, store: MemoryStore) -> None:
    """Act, time and individual are shown; the detail of an unknown kind is not."""
    with store.transaction(1, lock=True) as transaction:
        transaction.journal("later", {"slot": 0, "secret": "canary"})
        transaction.commit()
    (newest, *_) = acts(replica)
    assert (newest.act, newest.individual, newest.detail) == ("later", "ann", {})


def test_a_reconciliation_says_what_was_burned(replica: Replica, store: MemoryStore) -> None:
    """The amount in rho, without the positions that it settled."""
    detail = {"why": "witness-lost", "units": str(2**39), "joining_units": "0", "fence": 2, "settled": [1, 1, 1]}
    with store.transaction(1, lock=True) as transaction:
        transaction.journal("reconcile", detail)
        transaction.commit()
    assert acts(replica)[0].detail == {"why": "witness-lost", "burned_rho": "0.5", "joining_rho": "0"}


def test_an_unknown_dataset_and_a_strange_cursor_are_refused(replica: Replica) -> None:
    """NotFound and InvalidRequest are raised, as in every listing."""
    with pytest.raises(NotFound):
        replica.curators.acts("nowhere", cursor=None, limit=5)
    with pytest.raises(InvalidRequest):
        replica.curators.acts("survey", cursor="x", limit=5)
