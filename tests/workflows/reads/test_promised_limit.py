"""The largest limit ever in force for an individual: from the journal if it is there, else the dataset's budget."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.accounting.odometer import epsilon_time_uniform
from service.core.units import rho_of_units, units_down
from service.workflows.model.errors import InvalidRequest
from service.workflows.model.rows import OwnAccount
from service.workflows.model.views import MyBudget, Principal
from service.workflows.reads.ledger import Promised, my_budget_view, promised, slot_of
from service.workflows.replica import Replica
from tests.factories import PEOPLE, analyst, ask, open_replica, register

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
    """Lower Bob's limit to `rho`; a raise is refused and changes nothing."""
    if units_down(Fraction(rho)) > units_down(Fraction(account(replica, bob).budget_rho)):
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


def test_a_limit_lowered_before_the_journal_held_the_old_one_is_unknown() -> None:
    """The budget is used as a bound, and the account says so."""
    with tiered_replica("0.4") as (replica, bob):
        record = replica.registry.record("survey")
        with replica.registry.guard(record).transaction(lock=True) as transaction:
            slot = slot_of(transaction, "bob")
            transaction.set_limit(slot, units_down(Fraction("0.1")))
            transaction.journal("limit", {"slot": slot, "limit_units": str(units_down(Fraction("0.1")))})
            transaction.commit()
        told = account(replica, bob)
        assert (Decimal(told.promise_rho), told.promise_of) == (rho_of_units(BUDGET), "dataset_budget")


@pytest.mark.parametrize("tier", ["0.4", ""])
def test_after_a_restore_with_lost_charges_the_promise_is_the_budget(tier: str) -> None:
    """Individuals that join later get a lower limit, and lost charges count as spent so far."""
    forgotten = units_down(Fraction("0.05"))
    with tiered_replica(tier) as (replica, bob):
        record = replica.registry.record("survey")
        assert account(replica, bob).epsilon_so_far_time_uniform == 0
        with replica.registry.guard(record).transaction(lock=True) as transaction:
            transaction.fence_off(transaction.head.fence + 1, forgotten)
            found = promised(record, transaction, slot_of(transaction, "bob"))
        assert (found.limit_units, found.of) == (BUDGET, "dataset_budget")
        assert found.spent_units_max(limit_units=10, spent_units=5) == 5 + forgotten
        own = OwnAccount(limit=BUDGET, spent=0, paused=False, queries_charged=0, queries_left_out=0)
        assert my_budget_view(record, own, found).epsilon_so_far_time_uniform == pytest.approx(
            epsilon_time_uniform(forgotten, budget_units=BUDGET, delta=Decimal("1e-6"))
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
