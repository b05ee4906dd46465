"""The encoding of charges: the stored bytes state each charge, in a size that one individual hardly changes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.core.arrays import uniform
from service.workflows.model.ledger_entry import EncodedCharges

SLOTS = 5001
ONE_MORE_BYTES = 4 + 1 + 8
"""Of one individual: the slot in a list, a bit that begins a byte, and the charge."""

Charged = dict[int, int | None]
"""Units by touched slot, None for those left out."""


def arrays(people: Charged) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """The touched slots, which of them are charged, and their charges."""
    touched = np.array(sorted(people), dtype=np.int64)
    active = np.array([people[slot] is not None for slot in touched.tolist()], dtype=np.bool_)
    return (
        touched,
        active,
        np.array([units for _, units in sorted(people.items()) if units is not None], dtype=np.int64),
    )


def encoded(people: Charged, *, one_charge: bool, slots: int = SLOTS) -> EncodedCharges:
    """The encoded charges; under `one_charge` every charge is 7."""
    touched, active, charges = arrays(people)
    units = uniform(7, charges.size) if one_charge else charges
    return EncodedCharges.of(touched=touched, active=active, charges=units, slots=slots, one_charge=one_charge)


def size_of(charges: EncodedCharges) -> int:
    """The total of all bytes of variable length."""
    return sum(len(part) for part in (charges.slots, charges.active, charges.charges) if part is not None)


CHARGES = st.none() | st.integers(1, 2**60) | st.just(7)
PEOPLE: st.SearchStrategy[Charged] = st.dictionaries(st.integers(0, SLOTS - 1), CHARGES, max_size=300)


@given(people=PEOPLE, one_charge=st.booleans())
def test_charges_are_read_as_they_were_written(people: Charged, *, one_charge: bool) -> None:
    """Charged and left-out individuals in order with every charge, for any mixture of the two."""
    touched, active, charges = arrays(people)
    units = [7] * charges.size if one_charge else charges.tolist()
    stored = encoded(people, one_charge=one_charge)
    assert stored.touched().tolist() == touched.tolist()
    for read, written in zip(
        stored.decode(), (touched[active].tolist(), units, touched[~active].tolist()), strict=True
    ):
        assert read.tolist() == written
    assert (stored.charges is None, stored.charge_units is None) == (one_charge, not one_charge)


@given(people=PEOPLE)
def test_entries_of_earlier_versions_are_read(people: Charged) -> None:
    """They had no bitmap when all were charged, and one number for charges that were equal by chance."""
    stored = encoded(people, one_charge=False)
    _, active, charges = arrays(people)
    older = replace(
        stored,
        active=None if active.all() else stored.active,
        charges=None if len(set(charges.tolist())) <= 1 else stored.charges,
        charge_units=max(charges.tolist(), default=0) if len(set(charges.tolist())) <= 1 else None,
    )
    assert [part.tolist() for part in older.decode()] == [part.tolist() for part in stored.decode()]


@given(people=PEOPLE, slot=st.integers(0, SLOTS - 1), now=CHARGES, one_charge=st.booleans())
def test_one_individual_changes_the_size_by_a_few_bytes(
    people: Charged, slot: int, now: int | None, *, one_charge: bool
) -> None:
    """Touched or not, left out, with the common charge or another, in the highest slot or in any other."""
    others = {other: units for other, units in people.items() if other != slot}
    sizes = [size_of(encoded(each, one_charge=one_charge)) for each in (others, people, others | {slot: now})]
    assert max(sizes) - min(sizes) <= ONE_MORE_BYTES


@pytest.mark.parametrize("one_charge", [False, True])
@pytest.mark.parametrize("touched", [0, 1, 10, SLOTS - 2])
def test_equal_charges_take_as_much_as_others(touched: int, *, one_charge: bool) -> None:
    """A sum to which all add 1 takes as much as one to which one adds 2; a count has one charge, also of no one."""
    equal: Charged = dict.fromkeys(range(touched), 7)
    sizes = {size_of(encoded(people, one_charge=one_charge)) for people in (equal, equal | {0: 9} if equal else equal)}
    assert len(sizes) == 1
    assert (encoded(equal, one_charge=one_charge).charge_units is not None) is one_charge


@pytest.mark.parametrize("last", [10, 4999, 5000])
def test_a_bitmap_is_of_all_slots(last: int) -> None:
    """Whichever slot is the last one touched."""
    people: Charged = dict.fromkeys([*range(200), last], 7)
    stored = encoded(people, one_charge=True)
    assert (stored.form, len(stored.slots)) == (1, (SLOTS + 7) // 8)


def test_contradictory_charges_are_refused() -> None:
    """A single charge given as several, and a slot beyond those handed out."""
    touched, active, charges = arrays({3: 5, 4: 6})
    with pytest.raises(ValueError, match="view"):
        EncodedCharges.of(touched=touched, active=active, charges=charges, slots=5, one_charge=True)
    with pytest.raises(IndexError, match="handed out"):
        EncodedCharges.of(touched=touched, active=active, charges=charges, slots=4, one_charge=False)
