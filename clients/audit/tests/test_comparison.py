"""Comparisons: equal words pass, and each kind of difference is counted under its own name."""

from dataclasses import replace

import numpy as np
import pytest

from sparing_audit.comparison import (
    SHOWN_MAX,
    Mismatches,
    Recorded,
    compare_accounts,
    compare_ledger,
    compare_own_account,
)
from sparing_audit.own_filter import Filter, price_of
from sparing_audit.service import Account, LedgerEntry, OwnAccount, OwnReceipt
from sparing_audit.victims import Victims, drawn_victims

SIGMA, LIMIT = 100.0, 2**30


@pytest.fixture
def victims() -> Victims:
    """All but the first in the data."""
    found = drawn_victims(120, np.random.default_rng(1))
    found.is_in[:] = True
    found.is_in[0] = False
    return found


@pytest.fixture
def own(victims: Victims) -> Filter:
    """Nothing spent yet."""
    return Filter([LIMIT] * len(victims.keys), is_dropping=False)


@pytest.fixture
def recorded(own: Filter) -> Recorded:
    """One query about the first three: two are charged, the third asks for too much."""
    lengths = [1, 1, 10**6]
    outcomes = tuple(own.decide(place, length, price_of(SIGMA), shortens=False) for place, length in enumerate(lengths))
    return Recorded(
        sequence=1,
        places=np.arange(3),
        asked=np.array(lengths, dtype=np.float64),
        counted=np.array([float(outcome.counted) for outcome in outcomes]),
        outcomes=outcomes,
        values=np.zeros(3),
        sigma=SIGMA,
        grid=1.0,
    )


def accounts_of(victims: Victims, own: Filter) -> dict[str, Account]:
    """The accounts of a service that is right."""
    return {
        key: Account(
            spent=own.spent[place] if victims.is_in[place] else 0,
            limit=LIMIT,
            charged=own.charged[place] if victims.is_in[place] else 0,
            left_out=own.left_out[place],
        )
        for place, key in enumerate(victims.keys)
    }


def found(accounts: dict[str, Account], victims: Victims, own: Filter) -> dict[str, int]:
    """The differences in accounts, by check."""
    mismatches = Mismatches()
    compare_accounts(accounts, victims=victims, own=own, mismatches=mismatches, after=1)
    assert mismatches.compared["charges"] == len(victims.keys)
    return dict(mismatches.counts)


@pytest.mark.usefixtures("recorded")
def test_right_accounts_have_no_differences(victims: Victims, own: Filter) -> None:
    """A blank victim has spent nothing, though the audit follows what it would have spent."""
    assert own.spent[0] > 0
    assert found(accounts_of(victims, own), victims, own) == {}


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(
    ("field", "check"),
    [("spent", "charges"), ("charged", "active sets"), ("left_out", "active sets"), ("limit", "limits")],
)
def test_each_difference_has_a_name(victims: Victims, own: Filter, field: str, check: str) -> None:
    """By one unit or query, in one account."""
    accounts = accounts_of(victims, own)
    wrong = replace(accounts["v2"], **{field: getattr(accounts["v2"], field) + 1})
    assert found({**accounts, "v2": wrong}, victims, own) == {check: 1}


@pytest.mark.usefixtures("recorded")
def test_a_missing_account_is_a_difference_unless_its_owner_is_erased(victims: Victims, own: Filter) -> None:
    """Under every name."""
    accounts = accounts_of(victims, own)
    del accounts["v5"]
    assert found(accounts, victims, own) == {"charges": 1, "active sets": 1, "limits": 1}
    victims.is_erased[5] = True
    mismatches = Mismatches()
    compare_accounts(accounts, victims=victims, own=own, mismatches=mismatches, after=1)
    assert not mismatches.counts


def test_the_ledger_counts_victims_in_the_data(victims: Victims, recorded: Recorded) -> None:
    """One charged and one left out, of three; other numbers and other entries are differences."""
    for entries, differences in (
        ([LedgerEntry(sequence=1, charged=1, left_out=1)], 0),
        ([LedgerEntry(sequence=1, charged=2, left_out=1)], 1),
        ([LedgerEntry(sequence=1, charged=1, left_out=1), LedgerEntry(sequence=2, charged=0, left_out=0)], 1),
        ([], 2),
    ):
        mismatches = Mismatches()
        compare_ledger(entries, [recorded], victims, mismatches)
        assert mismatches.counts["ledger"] == differences


@pytest.mark.parametrize(
    ("place", "outcome", "units"), [(1, "charged", 54975582), (2, "left_out", 0), (7, "untouched", 0)]
)
def test_receipts_are_compared_query_by_query(
    victims: Victims, own: Filter, recorded: Recorded, place: int, outcome: str, units: int
) -> None:
    """A victim without a coordinate in a query is untouched by it."""
    account = accounts_of(victims, own)[victims.keys[place]]
    right = OwnReceipt(sequence=1, outcome=outcome, units=units)
    for receipts, differences in (((right,), 0), ((replace(right, units=units + 1),), 1), ((), 1)):
        mismatches = Mismatches()
        said = OwnAccount(account=account, receipts=receipts)
        compare_own_account(said, place, [recorded], own, victims, mismatches)
        assert mismatches.counts["own accounts"] == differences


def test_the_first_differences_are_kept_in_words() -> None:
    """And all are counted."""
    mismatches = Mismatches()
    for number in range(10):
        mismatches.expect("charges", holds=number % 2 == 0, words=f"difference {number}")
    assert (mismatches.compared["charges"], mismatches.counts["charges"]) == (10, 5)
    assert mismatches.first["charges"] == [f"difference {number}" for number in (1, 3, 5)][:SHOWN_MAX]
