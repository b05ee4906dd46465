"""Pages of the ledger and of receipts, read from a snapshot."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import pytest

from service.workflows.model.errors import InvalidRequest, NotFound, Unavailable
from service.workflows.model.views import Page, Principal
from service.workflows.ports.store import StoreUnavailable
from service.workflows.replica import Replica
from tests.factories import analyst, ask, open_replica, register, upload
from tests.gated_store import GatedStore

QUESTIONS = 7
Item = TypeVar("Item")


@pytest.fixture
def store() -> Iterator[GatedStore]:
    """A store whose locked transactions can be held."""
    made = GatedStore()
    yield made
    made.gate.set()


@pytest.fixture
def replica(store: GatedStore) -> Iterator[Replica]:
    """A dataset of two individuals with several queries, some of which touch only one of them."""
    with open_replica(store) as opened:
        register(opened)
        upload(opened, "people", [("ann", "NO", 44, 10), ("bob", "SE", 30, 20.5)])
        who = analyst(opened)
        for number in range(QUESTIONS):
            where: dict[str, Any] = {"where": {"eq": [{"col": "country"}, "NO"]}} if number % 3 == 0 else {}
            ask(opened, who, str(number), noise={"sigma": 1.5 + number}, **where)
        yield opened


def individual(replica: Replica, key: str) -> Principal:
    """The principal of an individual."""
    return replica.principals.create(role="individual", name=key, dataset="survey", individual=key)[0]


def every_item(page_of: Callable[[str | None], Page[Item]]) -> list[Item]:
    """The items of all pages, in order."""
    page = page_of(None)
    items = [*page.items]
    while page.next is not None:
        page = page_of(page.next)
        items += page.items
    return items


@pytest.mark.parametrize("limit", [1, 3, QUESTIONS, 100])
def test_pages_join_up(replica: Replica, limit: int) -> None:
    """Every entry once, newest first, in ledger and receipts; the receipts' charges add up to the spent total."""
    bob = individual(replica, "bob")
    ledger = every_item(lambda cursor: replica.auditors.ledger("survey", cursor=cursor, limit=limit))
    receipts = every_item(lambda cursor: replica.individuals.receipts(bob, cursor=cursor, limit=limit))
    assert [row.sequence for row in ledger] == [row.sequence for row in receipts] == list(range(QUESTIONS, 0, -1))
    assert [row.charged + row.left_out for row in ledger] == [1 if n % 3 == 0 else 2 for n in range(QUESTIONS)][::-1]
    outcomes = {row.sequence: row.outcome for row in receipts}
    assert {outcomes[n + 1] for n in range(0, QUESTIONS, 3)} == {"untouched"}
    assert {outcomes[n + 1] for n in range(QUESTIONS) if n % 3} <= {"charged", "left_out"}
    (account,) = replica.individuals.budgets(bob)
    assert sum(Fraction(row.charged_rho or "kept") for row in receipts) == Fraction(account.spent_rho)


def test_reads_do_not_wait_for_the_writer(replica: Replica, store: GatedStore) -> None:
    """Ledger, receipts and own account are read while an act holds the dataset's lock and the writer."""
    bob = individual(replica, "bob")
    usual = [
        replica.auditors.ledger("survey", cursor=None, limit=9),
        replica.individuals.receipts(bob, cursor=None, limit=9),
    ]
    account = replica.individuals.budgets(bob)
    store.gate.clear()
    held = replica.registry.writer(replica.registry.record("survey")).submit_act(lambda transaction, state: None)
    store.wait_until_reached()
    assert [
        replica.auditors.ledger("survey", cursor=None, limit=9),
        replica.individuals.receipts(bob, cursor=None, limit=9),
    ] == usual
    assert replica.individuals.budgets(bob) == account
    store.gate.set()
    held.result(timeout=30)


def test_more_people_make_shorter_pages_of_receipts(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """The length depends on the public capacity; pages of the ledger, which read no charges, do not change."""
    bob, capacity = individual(replica, "bob"), replica.registry.record("survey").capacity
    for bytes_max, expected in ((capacity // 4 * 3, 3), (capacity // 4, 1), (1, 1)):
        monkeypatch.setattr("service.workflows.reads.ledger.READ_BYTES_MAX", bytes_max)
        page = replica.individuals.receipts(bob, cursor=None, limit=100)
        assert (len(page.items), page.next is not None) == (expected, True)
        assert len(replica.auditors.ledger("survey", cursor=None, limit=100).items) == QUESTIONS


def test_long_queries_end_a_page_early(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of the ledger, of receipts and of accounts, with a next page as long as there are more items."""
    bob = individual(replica, "bob")
    for module in ("ledger", "accounts"):
        monkeypatch.setattr(f"service.workflows.reads.{module}.PAGE_BYTES_MAX", 4)
    for page in (
        replica.auditors.ledger("survey", cursor=None, limit=9),
        replica.individuals.receipts(bob, cursor=None, limit=9),
    ):
        assert (len(page.items), page.next) == (1, str(QUESTIONS))
    first = replica.curators.budgets("survey", cursor=None, limit=9)
    assert [row.key for row in first.items] == ["ann", "bob"]
    assert first.next is not None
    assert replica.curators.budgets("survey", cursor=first.next, limit=9).items == ()


def test_refusals_are_those_of_the_workflows(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown cursor, an absent individual, an unavailable database."""
    with pytest.raises(InvalidRequest):
        replica.auditors.ledger("survey", cursor="x", limit=9)
    with pytest.raises(NotFound):
        replica.individuals.receipts(replace(individual(replica, "ann"), individual="nobody"), cursor=None, limit=9)

    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(replica._store, "transaction", away)
    with pytest.raises(Unavailable):
        replica.auditors.ledger("survey", cursor=None, limit=9)
