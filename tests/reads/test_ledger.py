"""Pages of the ledger and of receipts, read from a snapshot, and the largest limit ever in force for an individual."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from io import BytesIO
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.accounting.accountings import GAUSSIAN
from service.core.charge import units_down
from service.ledger.model.errors import InvalidRequest, NotFound, Unavailable
from service.ledger.model.individual_views import MyBudget
from service.ledger.model.rows import OwnAccount
from service.ledger.model.views import Page, Principal
from service.ledger.ports.store import StoreUnavailable
from service.query.keys import Key
from service.reads.ledger import Promised, my_budget_view, promised, slot_of
from service.workflows.replica import Replica
from tests.factories import PEOPLE, TWO_PEOPLE, analyst, ask, open_replica, register
from tests.gated_store import GatedStore
from tests.waiting import PATIENCE_S
from tests.workflows.surveys import surveyed, writer_of

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
    with surveyed(store, TWO_PEOPLE) as opened:
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
    held = writer_of(replica).submit_act(lambda transaction, state: None)
    store.wait_until_reached()
    assert [
        replica.auditors.ledger("survey", cursor=None, limit=9),
        replica.individuals.receipts(bob, cursor=None, limit=9),
    ] == usual
    assert replica.individuals.budgets(bob) == account
    store.gate.set()
    held.result(timeout=PATIENCE_S)


def test_more_people_make_shorter_pages_of_receipts(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """The length depends on the public capacity; pages of the ledger, which read no charges, do not change."""
    bob, capacity = individual(replica, "bob"), replica.registry.record("survey").capacity
    for bytes_max, expected in ((capacity // 4 * 3, 3), (capacity // 4, 1), (1, 1)):
        monkeypatch.setattr("service.reads.ledger.READ_BYTES_MAX", bytes_max)
        page = replica.individuals.receipts(bob, cursor=None, limit=100)
        assert (len(page.items), page.next is not None) == (expected, True)
        assert len(replica.auditors.ledger("survey", cursor=None, limit=100).items) == QUESTIONS


def test_long_queries_end_a_page_early(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of the ledger, of receipts and of accounts, with a next page as long as there are more items."""
    bob = individual(replica, "bob")
    for module in ("ledger", "accounts"):
        monkeypatch.setattr(f"service.reads.{module}.PAGE_BYTES_MAX", 4)
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
        replica.individuals.receipts(
            replace(individual(replica, "ann"), individual=Key("nobody")), cursor=None, limit=9
        )

    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(replica.registry._store, "transaction", away)
    with pytest.raises(Unavailable):
        replica.auditors.ledger("survey", cursor=None, limit=9)


BUDGET_RHO = Decimal("0.5")
BUDGET = units_down(Fraction(BUDGET_RHO))
TIERED = {**PEOPLE, "columns": {**PEOPLE["columns"], "tier": {"type": "budget"}}}  # type: ignore[dict-item]
TIERS = st.sampled_from(["", "0.5", "0.4", "0.1"])
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("lower"), st.sampled_from(["0.45", "0.3", "0.05", "0"])),
        st.tuples(st.just("ask"), st.sampled_from([3, 10])),
        st.tuples(st.just("leave and come back"), TIERS),
    ),
    max_size=6,
)


@contextmanager
def tiered_replica(tier: str) -> Iterator[tuple[Replica, Principal]]:
    """A dataset in which each individual joins with a limit of its own, and Bob's principal."""
    with open_replica() as replica:
        register(replica, tables={"people": TIERED})
        join(replica, tier)
        yield replica, replica.principals.create(role="individual", name="bob", dataset="survey", individual="bob")[0]


def join(replica: Replica, tier: str) -> None:
    """Bob joins, or comes back."""
    rows = f"person_id,country,age,spend,tier\nbob,NO,30,10,{tier}\n"
    replica.curators.append_rows("survey", "people", "text/csv", BytesIO(rows.encode()))


def account(replica: Replica, bob: Principal) -> MyBudget:
    """Bob's own account."""
    return replica.individuals.budgets(bob)[0]


def lower(replica: Replica, bob: Principal, rho: str) -> None:
    """Lower Bob's limit to `rho`; one above it, or below what is spent, is refused and changes nothing."""
    own = account(replica, bob)
    if not Fraction(own.spent_rho) <= Fraction(units_down(Fraction(rho)), 2**40) <= Fraction(own.budget_rho):
        with pytest.raises(InvalidRequest):
            replica.individuals.lower_limit(bob, "survey", limit_rho=Decimal(rho))
    else:
        told = replica.individuals.lower_limit(bob, "survey", limit_rho=Decimal(rho))
        assert told == account(replica, bob)


@settings(max_examples=30, deadline=None)
@given(TIERS, ACTS)
def test_the_promise_covers_the_largest_limit_ever(tier: str, acts: list[tuple[str, str]]) -> None:
    """It is exactly the largest one where the account says so, which holds until an erasure."""
    with tiered_replica(tier) as (replica, bob):
        who = analyst(replica)
        largest, has_left = Decimal(account(replica, bob).budget_rho), False
        for number, (act, how) in enumerate(acts):
            if act == "lower":
                lower(replica, bob, how)
            elif act == "ask":
                ask(replica, who, str(number), noise={"sigma": float(how)})
            else:
                replica.curators.erase_individual("survey", "bob")
                join(replica, how)
                has_left = True
            told = account(replica, bob)
            promise = Decimal(told.promise_rho)
            assert promise >= largest >= Decimal(told.budget_rho)
            is_own = largest == BUDGET_RHO or not has_left
            assert promise == (largest if is_own else BUDGET_RHO)
            assert told.promise_of == ("dataset_budget" if has_left else "largest_limit")
            so_far = told.epsilon_so_far_time_uniform
            assert so_far is None or so_far < told.promise_epsilon


def test_without_own_limits_the_promise_is_the_budget() -> None:
    """Without a column of limits the promise changes neither with the limit nor at a return."""
    with open_replica() as replica:
        register(replica, tables={"people": PEOPLE})
        join_plain(replica)
        bob, _ = replica.principals.create(role="individual", name="bob", dataset="survey", individual="bob")
        before = account(replica, bob)
        after = replica.individuals.lower_limit(bob, "survey", limit_rho=Decimal("0.01"))
        assert (before.promise_rho, before.promise_of) == (str(BUDGET_RHO), "largest_limit")
        assert after.budget_rho != before.budget_rho
        assert (after.promise_rho, after.promise_epsilon) == (before.promise_rho, before.promise_epsilon)
        replica.curators.erase_individual("survey", "bob")
        join_plain(replica)
        assert account(replica, bob).promise_epsilon == before.promise_epsilon


def join_plain(replica: Replica) -> None:
    """Bob joins, or comes back to, a dataset without tiers."""
    replica.curators.append_rows(
        "survey", "people", "text/csv", BytesIO(b"person_id,country,age,spend\nbob,NO,30,10\n")
    )


@pytest.mark.parametrize("tier", ["0.4", ""])
def test_after_a_restore_with_lost_charges_the_promise_is_the_budget(tier: str) -> None:
    """Individuals that join later get a lower limit, and lost charges count as spent so far."""
    forgotten = units_down(Fraction("0.05"))
    with tiered_replica(tier) as (replica, bob):
        record = replica.registry.record("survey")
        assert account(replica, bob).epsilon_so_far_time_uniform == 0
        with replica.registry.guard(record).transaction(lock=True) as transaction:
            transaction.fence_off(transaction.head.fence + 1, forgotten)
            found = promised(record, transaction, slot_of(transaction, Key("bob")))
        assert (found.limit_units, found.of) == (BUDGET, "dataset_budget")
        assert found.spent_units_max(limit_units=10, spent_units=5) == 5 + forgotten
        own = OwnAccount(limit=BUDGET, spent=0, paused=False, queries_charged=0, queries_left_out=0)
        assert my_budget_view(record, own, found).epsilon_so_far_time_uniform == pytest.approx(
            GAUSSIAN.epsilon_time_uniform(forgotten, budget_units=BUDGET, delta=Decimal("1e-6"))
        )


@pytest.mark.parametrize(
    ("is_restored", "limit", "spent", "at_most"),
    [(False, 7, 7, 7), (True, 7, 6, 6), (True, 7, 7, 20), (True, 0, 0, 20), (True, 7, 9, 20)],
)
def test_after_a_burn_to_the_limit_all_may_be_spent(is_restored: bool, limit: int, spent: int, at_most: int) -> None:
    """A burn stops at the limit; the lost charges may have exceeded it, if it was lowered in another history."""
    found = Promised(limit_units=20, of="largest_limit", is_restored=is_restored)
    assert found.spent_units_max(limit_units=limit, spent_units=spent) == at_most
    more = Promised(limit_units=20, of="largest_limit", joining_units=4)
    assert [more.spent_units_max(limit_units=20, spent_units=each) for each in (3, 18)] == [7, 20]


def test_a_search_goes_on_behind_pages_without_an_item(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page looks at so many entries, matching or not, and hands on a cursor until all were looked at."""
    monkeypatch.setattr("service.reads.ledger.SEARCHED_MAX", 2)
    pages: list[list[int]] = []

    def found(cursor: str | None, search: str) -> str | None:
        page = replica.auditors.ledger("survey", cursor=cursor, limit=9, search=search)
        pages.append([row.sequence for row in page.items])
        return page.next

    for search, expected in (("country", [[7], [4], [], [1]]), ("nowhere", [[], [], [], []])):
        cursor = found(None, search)
        while cursor is not None:
            cursor = found(cursor, search)
        assert pages == expected
        pages.clear()
