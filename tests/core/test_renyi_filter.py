"""An individual that can pay, equality included, is active; no spent total ever exceeds a limit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.core.charge import CHARGE_UNITS_MAX, LIMIT_UNITS_MAX
from service.core.renyi_filter import Accounts, FilterViolation, Touched
from tests.core.contributions import row

UNITS = st.one_of(st.integers(0, 5), st.integers(0, LIMIT_UNITS_MAX))
CHARGES = st.one_of(st.integers(0, 5), st.integers(0, CHARGE_UNITS_MAX))


def nobody(size: int) -> NDArray[np.bool_]:
    """No individual has paused."""
    return np.zeros(size, dtype=np.bool_)


def accounts(spent: NDArray[np.int64], limit: NDArray[np.int64]) -> Accounts:
    """Accounts of a writable copy."""
    return Accounts.of(spent=spent, limits=limit.copy(), paused=nobody(limit.size))


def everybody(size: int) -> NDArray[np.bool_]:
    """All of the places."""
    return np.ones(size, dtype=np.bool_)


def active_of(book: Accounts, slots: NDArray[np.int64], charges: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The active of a list: as a list, and the same over the stretch of all accounts."""
    listed = book.active(Touched(slots), charges)
    touched, spread = over_all(book, slots, charges)
    stretched = book.active(touched, spread)
    assert touched.slots(stretched).tolist() == slots[listed].tolist()
    assert not stretched[~touched.among(everybody(touched.size))].any()
    return listed


def over_all(book: Accounts, slots: NDArray[np.int64], charges: NDArray[np.int64]) -> tuple[Touched, NDArray[np.int64]]:
    """The slots (k,) and charges (k,) as a stretch of all accounts; the charges of the others are not theirs."""
    marks, spread = nobody(book.size), np.full(book.size, 3)
    marks[slots], spread[slots] = True, charges
    return Touched(slice(0, book.size), marks), spread


def debit(book: Accounts, slots: NDArray[np.int64], charges: NDArray[np.int64]) -> None:
    """Debit a list of slots, and the same slots of a copy as a stretch."""
    copy = accounts(book.spent, book.limits)
    touched, spread = over_all(book, slots, charges)
    refused = False
    try:
        copy.debit(touched, touched.among(everybody(touched.size)), spread)
    except FilterViolation:
        refused = True
    try:
        debited = book.debit(Touched(slots), everybody(slots.size), charges)
    finally:
        assert copy.spent.tolist() == book.spent.tolist()
    assert not refused
    assert debited.tolist() == charges.tolist()


@st.composite
def ledgers(draw: st.DrawFn) -> tuple[Accounts, NDArray[np.int64], NDArray[np.int64]]:
    """Accounts, some of their slots, scattered or consecutive, and a charge for each of these."""
    people = draw(st.lists(st.tuples(UNITS, UNITS, st.booleans()), min_size=1, max_size=8))
    spent, limit, paused = zip(*people, strict=True)
    slots = sorted(draw(st.sets(st.integers(0, len(people) - 1))))
    charges = [draw(CHARGES) for _ in slots]
    book = accounts(row(*spent), row(*limit))
    book.paused[:] = paused
    return book, row(*slots), row(*charges)


@given(ledgers())
def test_active_is_the_inequality_of_algorithm_2(ledger: tuple[Accounts, NDArray[np.int64], NDArray[np.int64]]) -> None:
    """Spent plus charge at most the limit, in Python's integers, person by person; and no paused individual."""
    book, slots, charges = ledger

    expected = [
        int(book.spent[slot]) + charge <= int(book.limits[slot]) and not book.paused[slot]
        for slot, charge in zip(slots.tolist(), charges.tolist(), strict=True)
    ]

    assert active_of(book, slots, charges).tolist() == expected


@given(ledgers(), CHARGES)
def test_one_charge_for_all_is_the_same_inequality(
    ledger: tuple[Accounts, NDArray[np.int64], NDArray[np.int64]], charge: int
) -> None:
    """A charge given once, as a broadcast view, decides as the same number written out for everyone."""
    book, slots, _ = ledger
    once = np.broadcast_to(np.int64(charge), slots.shape)

    assert active_of(book, slots, once).tolist() == active_of(book, slots, once.copy()).tolist()


@pytest.mark.parametrize("slots", [row(0, 2, 3, 5), row(0, 9, 99), row(4, 5, 6)], ids=["dense", "sparse", "stretch"])
@pytest.mark.parametrize("poor", [(), (1,), (0, 1), (1, 5)])
def test_one_charge_for_all_finds_every_individual_that_cannot_pay(
    slots: NDArray[np.int64], poor: tuple[int, ...]
) -> None:
    """Accounts are read in one stretch or one by one; a poor neighbour in between changes nothing."""
    book = accounts(row(*[0] * 100), row(*[10] * 100))
    book.set_spent(row(*poor), 8)

    active = active_of(book, slots, np.broadcast_to(np.int64(3), slots.shape))

    assert active.tolist() == [slot not in poor for slot in slots.tolist()]


@pytest.mark.parametrize("slots", [row(0, 2, 3, 5), row(0, 9, 99), row(4, 5, 6)], ids=["dense", "sparse", "stretch"])
@pytest.mark.parametrize("resting", [(), (5,), (0, 9), (1,)])
@pytest.mark.parametrize("charge", [0, 3])
def test_a_paused_individual_is_left_out(slots: NDArray[np.int64], resting: tuple[int, ...], charge: int) -> None:
    """It is left out of free queries too, however the accounts are read; the others stay as they are."""
    book = accounts(row(*[0] * 100), row(*[10] * 100))
    book.paused[list(resting)] = True

    once = active_of(book, slots, np.broadcast_to(np.int64(charge), slots.shape))

    assert once.tolist() == [slot not in resting for slot in slots.tolist()]
    assert active_of(book, slots, np.full(slots.shape, charge)).tolist() == once.tolist()


@given(ledgers(), st.data())
def test_the_dropped_are_never_active_and_no_other_is_less(
    ledger: tuple[Accounts, NDArray[np.int64], NDArray[np.int64]], data: st.DataObject
) -> None:
    """This holds for a list and for a stretch alike."""
    book, slots, charges = ledger
    times = data.draw(st.lists(st.sampled_from([0, 1, 2, 255]), min_size=slots.size, max_size=slots.size))
    dropped = np.array(times, dtype=np.uint8)
    expected = active_of(book, slots, charges) & (dropped == 0)
    assert book.active(Touched(slots), charges, dropped).tolist() == expected.tolist()
    touched, spread = over_all(book, slots, charges)
    by_slot = np.zeros(book.size, dtype=np.uint8)
    by_slot[slots] = dropped
    assert touched.slots(book.active(touched, spread, by_slot)).tolist() == slots[expected].tolist()


@given(st.integers(0, 40), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=8))
def test_smaller_charges_admit_no_less(limit: int, steps: list[tuple[int, int]]) -> None:
    """A sequence of charges of which none is larger continues at least as long, as Lemma 4.2 wants of a filter.

    Two individuals of one limit have the larger and the smaller charges; one that is left out has halted. Each goes on
    exactly while the sum of all its charges is at most the limit.
    """
    book, gone, asked = accounts(row(0, 0), row(limit, limit)), np.zeros(2, dtype=np.uint8), row(0, 0)
    touched = Touched(row(0, 1))
    for step in steps:
        charges = row(max(step), min(step))
        active = book.active(touched, charges, gone)
        book.debit(touched, active, charges)
        gone[~active] = 1
        asked += charges
        assert active.tolist() == (asked <= limit).tolist()
        assert active[1] >= active[0]


def test_a_smaller_charge_may_take_the_room_of_a_later_one() -> None:
    """Under the skip rule, which goes on after a charge that does not fit, the lemma is of whole sequences alone."""
    book = accounts(row(0, 0), row(10, 10))
    found = []
    for charges in (row(11, 1), row(10, 10)):
        active = active_of(book, row(0, 1), charges)
        debit(book, row(0, 1)[active], charges[active])
        found.append(active.tolist())
    assert found == [[False, True], [True, False]]


def test_a_pause_stops_no_debit() -> None:
    """Charges before a pause are replayed after it, and a burn charges every individual up to its limit."""
    book = accounts(row(0, 0), row(10, 10))
    book.paused[:] = True

    debit(book, row(0, 1), row(10, 4))

    assert book.spent.tolist() == [10, 4]
    with pytest.raises(FilterViolation):
        debit(book, row(0, 1), row(1, 1))


def test_the_first_accounts_share_their_memory() -> None:
    """A part is made without looking at the whole, and what is written to it is written to the whole."""
    book = accounts(row(1, 2, 3), row(4, 5, 6))
    part = book.first(2)
    part.paused[1] = True
    debit(part, row(0), row(3))

    assert (part.size, part.spent.tolist(), part.limits.tolist()) == (2, [4, 2], [4, 5])
    assert book.paused.tolist() == [False, True, False]
    assert book.spent.tolist() == [4, 2, 3]


@given(ledgers())
def test_debit_takes_from_those_and_only_those(ledger: tuple[Accounts, NDArray[np.int64], NDArray[np.int64]]) -> None:
    """Debiting the active ones adds exactly their charges, and no other account moves."""
    book, slots, charges = ledger
    active = active_of(book, slots, charges)
    expected = book.spent.tolist()
    for slot, charge in zip(slots[active].tolist(), charges[active].tolist(), strict=True):
        expected[slot] += charge

    debit(book, slots[active], charges[active])

    assert book.spent.tolist() == expected


@given(ledgers())
def test_one_unaffordable_charge_stops_the_whole_debit(
    ledger: tuple[Accounts, NDArray[np.int64], NDArray[np.int64]],
) -> None:
    """All or nothing: a violation leaves every account as it was."""
    book, slots, charges = ledger
    book.paused[:] = False
    before = book.spent.tolist()
    if active_of(book, slots, charges).all():
        slots, charges = row(0), row(int(book.limits[0]) + 1)

    with pytest.raises(FilterViolation):
        debit(book, slots, charges)

    assert book.spent.tolist() == before


def test_equality_stays_active_and_a_unit_more_does_not() -> None:
    """`<=`, not `<`: at equality the limit is spent to the last unit."""
    book = accounts(row(7, 7, 7), row(10, 10, 10))

    assert active_of(book, row(0, 1, 2), row(2, 3, 4)).tolist() == [True, True, False]


def test_an_exhausted_individual_still_affords_a_free_query() -> None:
    """A zero vector costs zero; also for an individual with a limit below its spent total."""
    book = accounts(row(10), row(10))

    assert active_of(book, row(0), row(0)).tolist() == [True]


def test_a_limit_lowered_below_what_is_spent_leaves_one_out() -> None:
    """Such accounts are legal, and even a free query does not touch them."""
    book = accounts(row(10), row(4))

    assert active_of(book, row(0), row(1)).tolist() == [False]
    with pytest.raises(FilterViolation):
        debit(book, row(0), row(1))


def test_a_saturated_charge_is_never_affordable() -> None:
    """Also against the largest limit, and without wrapping around."""
    book = accounts(row(0, LIMIT_UNITS_MAX), row(LIMIT_UNITS_MAX, LIMIT_UNITS_MAX))

    assert active_of(book, row(0, 1), row(CHARGE_UNITS_MAX, CHARGE_UNITS_MAX)).tolist() == [False, False]


def test_a_negative_charge_is_a_violation() -> None:
    """There are no refunds, hidden among honest charges either."""
    book = accounts(row(5, 5, 5), row(9, 9, 9))

    with pytest.raises(FilterViolation):
        debit(book, row(0, 1, 2), row(1, -1, 1))

    assert book.spent.tolist() == [5, 5, 5]


@pytest.mark.parametrize("slots", [row(2, 3), row(3), row(0, 1, 2, 99)])
def test_slots_beyond_the_accounts_are_refused(slots: NDArray[np.int64]) -> None:
    """In a list and in a stretch."""
    book = accounts(row(0, 0, 0), row(9, 9, 9))
    end = int(slots[-1]) + 1
    for touched in (Touched(slots), Touched(slice(0, end), everybody(end))):
        charges, active = np.ones(touched.size, dtype=np.int64), everybody(touched.size)
        with pytest.raises(IndexError):
            book.active(touched, charges)
        with pytest.raises(IndexError):
            book.debit(touched, active, charges)
        with pytest.raises(IndexError):
            book.take_back(touched, active, charges)
    assert book.spent.tolist() == [0, 0, 0]


@given(ledgers(), st.booleans())
def test_what_is_taken_back_was_never_spent(
    ledger: tuple[Accounts, NDArray[np.int64], NDArray[np.int64]], is_stretch: bool
) -> None:
    """After a debit that did not become durable all accounts are as before, paused or not."""
    book, slots, charges = ledger
    before = book.spent.tolist()
    touched = Touched(slots)
    if is_stretch:
        touched, charges = over_all(book, slots, charges)
    active = book.active(touched, charges)
    book.debit(touched, active, charges)

    book.take_back(touched, active, charges)

    assert book.spent.tolist() == before


@pytest.mark.parametrize("charges", [row(0, 3, 0), row(1, -1, 1)])
def test_more_than_was_spent_is_never_taken_back(charges: NDArray[np.int64]) -> None:
    """There are no refunds."""
    book = accounts(row(2, 2, 2), row(9, 9, 9))

    with pytest.raises(FilterViolation):
        book.take_back(Touched(row(0, 1, 2)), everybody(3), charges)

    assert book.spent.tolist() == [2, 2, 2]


EVENTS = st.sampled_from(["limit", "load", "pause", "debit", "take back"])


@given(
    st.lists(st.tuples(UNITS, UNITS), min_size=1, max_size=5),
    st.lists(st.tuples(EVENTS, st.integers(0, 4), UNITS), max_size=12),
)
def test_the_spent_total_and_the_limit_never_come_apart(
    people: list[tuple[int, int]], events: list[tuple[str, int, int]]
) -> None:
    """Limits, loads, pauses, debits and debits taken back in any order: totals, limits and rooms of Python's integers.

    A pause moves none of them, and the one charged next is active if it has not paused and can pay.
    """
    spent, limits = [person[0] for person in people], [person[1] for person in people]
    paused, book = [False] * len(people), accounts(row(*spent), row(*limits))
    for kind, number, units in events:
        slot = number % len(people)
        can_pay = spent[slot] + units <= limits[slot]
        if kind == "limit":
            book.set_limits(slot, units)
            limits[slot] = units
        elif kind == "load":
            book.set_spent(row(slot), units)
            spent[slot] = units
        elif kind == "pause":
            book.paused[slot] = paused[slot] = not paused[slot]
        elif kind == "debit" and can_pay:
            debit(book, row(slot), row(units))
            spent[slot] += units
        elif kind == "take back" and units <= spent[slot]:
            book.take_back(Touched(row(slot)), everybody(1), row(units))
            spent[slot] -= units
        assert (book.spent.tolist(), book.limits.tolist()) == (spent, limits)
        assert book.room.tolist() == [limit - total for limit, total in zip(limits, spent, strict=True)]
        assert book.spent_of(row(slot)).tolist() == [spent[slot]]
        is_active = spent[slot] + units <= limits[slot] and not paused[slot]
        assert active_of(book, row(slot), row(units)).tolist() == [is_active]


@pytest.mark.parametrize("units", [-1, LIMIT_UNITS_MAX + 1])
def test_units_out_of_range_are_refused(units: int) -> None:
    """They are refused as a limit and as a spent total."""
    book = accounts(row(1, 2), row(3, 4))

    with pytest.raises(ValueError, match="limits"):
        book.set_limits(slice(None), units)
    with pytest.raises(ValueError, match="spent"):
        book.set_spent(slice(None), units)
    assert (book.spent.tolist(), book.limits.tolist()) == ([1, 2], [3, 4])


def test_an_empty_query_and_an_empty_debit_change_nothing() -> None:
    """An empty query, on empty accounts too."""
    book = accounts(row(), row())
    debit(book, row(), row())

    assert active_of(book, row(), row()).tolist() == []


@pytest.mark.parametrize(
    ("spent", "limit"),
    [
        (row(1), row(1, 2)),
        (np.zeros((1, 1), dtype=np.int64), np.zeros((1, 1), dtype=np.int64)),
        (row(-1), row(1)),
        (row(0), row(-1)),
        (row(0), row(LIMIT_UNITS_MAX + 1)),
        (row(LIMIT_UNITS_MAX + 1), row(0)),
        (np.zeros(1), row(1)),
        (row(1), np.ones(1, dtype=np.int32)),
    ],
)
def test_accounts_on_which_the_arithmetic_could_fail_cannot_be_made(
    spent: NDArray[np.int64], limit: NDArray[np.int64]
) -> None:
    """int64 units in range, one limit each."""
    with pytest.raises(ValueError, match=r"limit|spent"):
        Accounts.of(spent=spent, limits=limit, paused=nobody(limit.size).reshape(limit.shape))


def test_room_that_is_no_room_cannot_be_given() -> None:
    """int64 units, and no spent total out of range."""
    rooms: list[NDArray[Any]] = [np.zeros(1), row(8), row(7 - 1 - LIMIT_UNITS_MAX)]
    for room in rooms:
        with pytest.raises(ValueError, match=r"int64|spent"):
            Accounts(limits=row(7), room=room, paused=nobody(1))


@pytest.mark.parametrize("paused", [nobody(1), nobody(3), np.zeros(2, dtype=np.int64), nobody(2).reshape(2, 1)])
def test_accounts_without_a_pause_for_each_cannot_be_made(paused: NDArray[np.bool_]) -> None:
    """One truth value each."""
    with pytest.raises(ValueError, match="one pause"):
        Accounts.of(spent=row(0, 0), limits=row(1, 1), paused=paused)
