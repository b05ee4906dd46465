"""The filters and odometers of Feldman and Zrnic."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing_papers.feldman_zrnic import (
    compute_filters,
    compute_odometers,
    counter_reading,
    discretised_reading,
    exceeded_shares,
    rogers_steps,
)
from sparing_papers.figure import Request
from sparing_papers.made_up import made_up_digits

REQUEST = Request(seed=20260218, quick=True, digits=made_up_digits(1))
CHARGES = st.lists(st.integers(1, 100), min_size=1, max_size=50)


def test_the_filters_are_in_order() -> None:
    """At every epsilon B* admits fewer steps than the best conversion, and that one fewer than Gaussian DP."""
    table = compute_filters(REQUEST)
    found = {(row[0], row[1], row[2]): int(row[3]) for row in table.rows}
    epsilons = sorted({float(row[2]) for row in table.rows})
    for epsilon in epsilons:
        assert found["Gaussian", "B*", epsilon] < found["Gaussian", "Remark 4.4", epsilon]
        assert found["Gaussian", "Remark 4.4", epsilon] < found["Gaussian", "gdp", epsilon]
        assert found["pure", "Rogers et al.", epsilon] < found["pure", "Theorem 4.8", epsilon]
        assert found["pure", "Remark 4.4", epsilon] <= found["pure", "Laplace, zcdp", epsilon]
    at_one = {name: found["pure", name, 1.0] for name in ("Theorem 4.8", "Remark 4.4", "Rogers et al.", "sum")}

    assert at_one == {"Theorem 4.8": 416, "Remark 4.4": 611, "Rogers et al.": 185, "sum": 100}
    assert (found["pure", "Laplace, zcdp", 1.0], found["pure", "Laplace, gdp", 1.0]) == (613, 459)


@pytest.mark.parametrize(("epsilon", "step"), [(0.5, 0.01), (1.0, 0.01), (1.0, 0.1), (3.0, 0.05)])
def test_the_filter_of_rogers_halts_at_the_step_after(epsilon: float, step: float) -> None:
    """By the inequality itself, at the steps found and at one more."""

    def left_side(steps: int) -> float:
        log, squares = math.log(1e5), steps * step**2
        constant = epsilon**2 / (28.04 * log)
        root = math.sqrt(2 * (squares + constant) * (1 + 0.5 * math.log(1 + squares / constant)) * log)
        return steps * step * (math.exp(step) - 1) / 2 + root

    steps = rogers_steps(epsilon, 1e-5, step)

    assert left_side(steps) <= epsilon < left_side(steps + 1)


@given(CHARGES)
def test_the_papers_counter_reads_no_less_than_the_rounded_total(charges: list[int]) -> None:
    """After every charge, and at most one step more for each time that it began again."""
    spent = 0
    for number, reading in enumerate(counter_reading([float(each) for each in charges], 100.0)):
        spent += charges[number]
        assert discretised_reading(spent, 100.0) <= reading
        assert reading < 2 * spent + 100


def test_a_charge_above_the_step_has_no_reading() -> None:
    """The papers leave that case out."""
    with pytest.raises(ValueError, match="above the step"):
        counter_reading([0.5, 1.5], 1.0)


def test_the_spent_total_read_at_its_worst_is_no_bound() -> None:
    """It is exceeded in far more runs than promised; at a fixed time and by levels it is not."""
    shares = exceeded_shares(np.random.default_rng(5), REQUEST)

    assert all(shares["at some time"] > 3 * np.array([0.1, 0.01, 0.001]))
    assert all(shares["levels"] <= [0.1, 0.01, 0.001])
    assert all(shares["at one time"] <= [0.1, 0.01, 0.0015])


def test_equal_seeds_give_equal_readings() -> None:
    """Bit by bit, and another seed gives others."""
    first, again = (compute_odometers(REQUEST) for _ in range(2))
    other = compute_odometers(Request(seed=2, quick=True, digits=REQUEST.digits))

    assert first == again
    assert first.rows != other.rows
