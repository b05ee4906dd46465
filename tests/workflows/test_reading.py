"""What curators read of all budgets together."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.workflows.house import House
from service.workflows.reading import Standing, standing, summary
from tests.houses import analyst, ask, open_house, register, upload

ACCOUNTS = st.lists(st.tuples(st.booleans(), st.integers(0, 100), st.integers(0, 120)), max_size=60)


@pytest.fixture
def house() -> Iterator[House]:
    """Two people."""
    with open_house() as opened:
        register(opened)
        upload(opened, "people", [("ann", "NO", 44, 10), ("bob", "SE", 30, 20.5)])
        yield opened


@given(ACCOUNTS)
def test_a_summary_counts_everybody_present_once(accounts: list[tuple[bool, int, int]]) -> None:
    """Bins, quantiles and who has nothing left, against Python's own numbers; some have spent more than their limit."""
    present, limit, spent = (list(column) for column in zip(*accounts, strict=True)) if accounts else ([], [], [])
    there = Standing(
        seq=7,
        present=np.array(present, dtype=np.bool_),
        limit=np.array(limit, dtype=np.int64),
        spent=np.array(spent, dtype=np.int64),
    )
    told = summary(there)

    shares = sorted(max(limit - spent, 0) / limit if limit else 0.0 for here, limit, spent in accounts if here)
    assert (told.sequence, told.individuals) == (7, len(shares))
    assert told.exhausted == sum(spent >= limit for here, limit, spent in accounts if here)
    assert sum(each.individuals for each in told.remaining_share_histogram) == len(shares)
    for place, each in enumerate(told.remaining_share_histogram):
        last = place == len(told.remaining_share_histogram) - 1
        expected = sum(each.low <= share < each.high or (last and share == each.high) for share in shares)
        assert each.individuals == expected
    assert set(told.quantiles) == ({"0.05", "0.25", "0.5", "0.75", "0.95"} if shares else set())
    for level, value in told.quantiles.items():
        rank = float(level) * (len(shares) - 1)
        below, above = int(rank), min(int(rank) + 1, len(shares) - 1)
        assert value == pytest.approx(shares[below] + (rank - below) * (shares[above] - shares[below]))


def test_what_is_made_of_a_standing_later_is_of_the_sequence_it_was_taken_at(house: House) -> None:
    """The line copies and goes on: what is spent meanwhile does not show, and nobody waits for the numbers."""
    line, who = house.lines.line(house.lines.record("survey")), analyst(house)
    ask(house, who, "a", reuse=False)
    before = line.read(standing)
    spent = before.spent.copy()
    ask(house, who, "b", reuse=False)
    assert line.read(standing).spent.sum() > spent.sum()
    assert np.array_equal(before.spent, spent)
    assert (summary(before).sequence, house.budget_summary("survey").sequence) == (1, 2)
