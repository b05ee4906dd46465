"""The statements in words are true: promises bound."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.accounting.accountings import GAUSSIAN, ConcentratedAccounting, RenyiAccounting
from service.accounting.statements import AccountStatement, discretised_units, promise_of_limit, statement_of_account
from service.core.charge import UNITS_PER_RHO


# The replace-one epsilons of the theory note, for budgets of these epsilons at delta 1e-5.
@pytest.mark.parametrize(
    ("epsilon", "replace_one"),
    [("0.3", 0.638641), ("0.5", 1.067299), ("0.8", 1.717046), ("1", 2.154677), ("2", 4.392911)],
)
def test_a_promise_states_both_neighbouring_relations(epsilon: str, replace_one: float) -> None:
    """Blanking a record: what the curator asked for. Replacing one: twice mu, four times rho."""
    delta = Decimal("1e-5")
    promise = promise_of_limit(GAUSSIAN, GAUSSIAN.budget_units(epsilon=Decimal(epsilon), delta=delta), delta)

    assert promise.epsilon == pytest.approx(float(epsilon), rel=1e-9)
    assert promise.epsilon_replace_one == pytest.approx(replace_one, abs=1e-6)
    assert promise.mu is not None
    assert promise.rho_replace_one is not None
    assert promise.mu_replace_one == pytest.approx(2 * promise.mu, rel=1e-15)
    assert Fraction(promise.rho_replace_one) == 4 * Fraction(promise.rho)
    assert promise.mu**2 / 2 >= float(promise.rho) * (1 - 1e-15)
    assert promise.delta == delta


def test_a_limit_of_nothing_promises_everything() -> None:
    """A limit of zero promises perfect privacy."""
    promise = promise_of_limit(GAUSSIAN, 0, Decimal("1e-9"))

    assert [promise.rho, promise.rho_replace_one] == [Decimal(0), Decimal(0)]
    assert [promise.mu, promise.epsilon, promise.epsilon_replace_one] == [0.0, 0.0, 0.0]


def test_rho_is_exact_in_a_promise() -> None:
    """A dozen digits, none of them rounded."""
    assert promise_of_limit(GAUSSIAN, UNITS_PER_RHO // 64, Decimal("1e-6")).rho == Decimal("0.015625")


@pytest.mark.parametrize("is_all_gaussian", [True, False])
def test_a_limit_has_an_advisory_epsilon_while_all_noise_is_gaussian(is_all_gaussian: bool) -> None:
    """It is that of the largest limit, whatever is spent; a promise by that curve itself has none."""
    delta = Decimal("1e-5")
    for accounting in (GAUSSIAN, ConcentratedAccounting(), RenyiAccounting(order=16)):
        budget = accounting.budget_units(epsilon=Decimal(1), delta=delta)
        statement = statement_of_account(
            accounting,
            largest_limit_units=budget,
            limit_units=budget // 2,
            spent_units=budget // 8,
            spent_units_max=0,
            budget_units=budget,
            delta=delta,
            is_all_gaussian=is_all_gaussian,
        )
        wanted = accounting.epsilon_of_gaussians(budget, delta)
        is_told = is_all_gaussian and accounting is not GAUSSIAN
        assert statement.promise_epsilon_advisory == (wanted if is_told else None)
        assert statement.promise.epsilon == pytest.approx(1)


DELTA = Decimal("1e-6")
BUDGET = GAUSSIAN.budget_units(epsilon=Decimal(1), delta=DELTA)
LARGEST = st.sampled_from([0, 1, BUDGET // 1000, BUDGET // 3, BUDGET])  # promises take milliseconds each


def stated(largest: int, limit: int, spent: int, spent_max: int = 0) -> AccountStatement:
    """The statement of an account."""
    return statement_of_account(
        GAUSSIAN,
        largest_limit_units=largest,
        limit_units=limit,
        spent_units=spent,
        spent_units_max=spent_max,
        budget_units=BUDGET,
        delta=DELTA,
    )


@given(LARGEST, st.data())
def test_the_promise_follows_from_the_largest_limit_alone(largest: int, data: st.DataObject) -> None:
    """Neither what is spent nor how far the limit was lowered makes it any smaller."""
    limit = data.draw(st.integers(0, largest))
    spent = data.draw(st.integers(0, limit))

    statement = stated(largest, limit, spent)

    assert statement.promise == promise_of_limit(GAUSSIAN, largest, DELTA)
    assert statement.share_spent == (spent / limit if limit else 1)


@given(LARGEST, st.data())
def test_so_far_rises_with_what_is_spent_and_is_never_above_the_promise(largest: int, data: st.DataObject) -> None:
    """A None stands for the promise, and stays once it is reached."""
    spent = sorted(data.draw(st.tuples(st.integers(0, largest), st.integers(0, largest))))
    statements = [stated(largest, largest, each) for each in spent]
    less, more = [each.epsilon_so_far_time_uniform for each in statements]

    assert less is not None or more is None
    assert less is None or more is None or less <= more
    assert all(each is None or each < statements[0].promise.epsilon for each in (less, more))


@given(st.integers(0, BUDGET), st.integers(0, BUDGET))
def test_what_a_restore_may_have_forgotten_counts_for_so_far_as_spent(spent: int, spent_max: int) -> None:
    """And for nothing else."""
    statement, known = stated(BUDGET, BUDGET, spent, spent_max), stated(BUDGET, BUDGET, max(spent, spent_max))

    assert statement.epsilon_so_far_time_uniform == known.epsilon_so_far_time_uniform
    assert (statement.share_spent, statement.promise) == (spent / BUDGET, known.promise)


def test_an_account_by_hand() -> None:
    """A quarter of a budget of epsilon 1, before and after the rest is given up; all of it; nothing."""
    quarter = BUDGET // 4
    for limit, share in ((BUDGET, 0.25), (quarter, 1.0)):
        statement = stated(BUDGET, limit, quarter)
        assert statement.promise.epsilon == pytest.approx(1, abs=1e-9)
        assert statement.share_spent == pytest.approx(share, rel=1e-9)
        assert statement.epsilon_so_far_time_uniform == pytest.approx(0.6871001540, rel=1e-9)
    assert stated(BUDGET, BUDGET, BUDGET).epsilon_so_far_time_uniform is None
    assert stated(BUDGET, BUDGET, 0).epsilon_so_far_time_uniform == 0
    assert stated(0, 0, 0).epsilon_so_far_time_uniform is None


def counted_by_filters(charges: list[int], step: int) -> list[int]:
    """The counter of the papers after each charge: a filter that cannot pay halts, and the next begins from zero."""
    begun, within, readings = 0, step, list[int]()
    for charge in charges:
        if within + charge > step:
            begun, within = begun + 1, 0
        within += charge
        readings.append(begun * step)
    return readings


@given(charges=st.lists(st.integers(1, 12), min_size=1, max_size=40))
def test_a_counter_that_begins_again_from_zero_reads_the_same_or_more(charges: list[int]) -> None:
    """With steps of 12 units, and charges that one step pays: no filter carries its rest over to the next one."""
    spent = [sum(charges[: place + 1]) for place in range(len(charges))]
    readings = [discretised_units(total, 12) for total in spent]
    assert all(ours <= theirs for ours, theirs in zip(readings, counted_by_filters(charges, 12), strict=True))
    assert all(total <= ours < total + 12 for total, ours in zip(spent, readings, strict=True))


def test_the_counter_loses_up_to_half() -> None:
    """Charges just above half a step fill a filter each."""
    assert counted_by_filters([7] * 12, 12)[-1] == 144
    assert discretised_units(7 * 12, 12) == 84


@given(charges=st.lists(st.integers(1, 30), max_size=30), steps=st.integers(0, 9))
def test_what_leaves_within_m_steps_is_what_a_filter_of_m_steps_lets_through(charges: list[int], steps: int) -> None:
    """The theorem's premise: the moment when the reading passes m is the moment when that filter would halt."""
    spent, within_filter, within_reading = 0, list[int](), list[int]()
    for number, charge in enumerate(charges):
        spent += charge
        within_filter += [number] if spent <= steps * 12 else []
        within_reading += [number] if discretised_units(spent, 12) <= steps * 12 else []
    assert within_reading == within_filter


@pytest.mark.parametrize(("spent", "step"), [(-1, 12), (1, 0), (1, -3)])
def test_no_reading_of_no_step(spent: int, step: int) -> None:
    """Nor of less than nothing."""
    with pytest.raises(ValueError, match="step positive"):
        discretised_units(spent, step)
