"""Pieces: an entry's data of people is read as it was written, and its size says little about any individual."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import ceil

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.arrays import uniform
from service.core.laws import Gaussian
from service.core.release import Participants
from service.core.renyi_filter import Touched
from service.ledger.model.pieces import (
    CONTENT_BYTES_MAX,
    STRETCH_SLOTS,
    TWO_NORMS_BYTES_MAX,
    WHOLE,
    Measure,
    Piece,
    Quantities,
    joined,
    number_for,
    pieces_digest,
    pieces_of,
)
from tests.rotation import times

SALT = bytes(range(32))
SLOTS = 3 * STRETCH_SLOTS - 5
NORMS = st.integers(1, 2**62)


@dataclass(frozen=True)
class Person:
    """A touched individual."""

    norm: int
    is_active: bool


PEOPLE = st.dictionaries(st.integers(0, SLOTS - 1), st.builds(Person, NORMS, st.booleans()), max_size=60)


def told(people: dict[int, Person], measure: Measure = Measure.NORMS) -> Quantities:
    """The quantities of a release for these people; under ONE_NORM each has 7.

    Under TWO_NORMS every third of the active has half of its norm counted, and those left out nothing.
    """
    slots = sorted(people)
    norms = np.array([people[slot].norm for slot in slots], dtype=np.int64)
    active, norms_before = np.array([people[slot].is_active for slot in slots], dtype=np.bool_), None
    if measure is Measure.TWO_NORMS:
        norms_before, norms = norms, np.array([counted(slot, people[slot]) for slot in slots], dtype=np.int64)
    return Quantities(
        measure=measure,
        touched=np.array(slots, dtype=np.int64),
        active=active,
        amounts=uniform(7, len(slots)) if measure is Measure.ONE_NORM else norms,
        norms_before=norms_before,
    )


def counted(slot: int, person: Person) -> int:
    """The counted norm of a person under TWO_NORMS."""
    return (person.norm // 2 if slot % 3 == 0 else person.norm) * person.is_active


@cache
def dense(count: int, *, start: int = 0) -> dict[int, Person]:
    """The people in `count` adjacent slots; one in five of them cannot pay."""
    return {start + n: Person(norm=n + 1, is_active=n % 5 > 0) for n in range(count)}


def pieces_for(people: dict[int, Person], measure: Measure = Measure.NORMS, *, largest: int = 2**62) -> list[Piece]:
    """The pieces of an entry for these people."""
    blocks = told(people, measure).blocks()
    return list(pieces_of(blocks, measure, amount_max=largest, slots=SLOTS, salt=SALT))


@settings(max_examples=times(20, 100))
@given(people=PEOPLE, crowd=st.sampled_from([0, 100, 3000, STRETCH_SLOTS + 7]), measure=st.sampled_from(Measure))
def test_quantities_are_read_as_they_were_written(people: dict[int, Person], crowd: int, measure: Measure) -> None:
    """For few people and for many, in one piece or several."""
    quantities = told(dense(crowd, start=17) | people, measure)
    pieces = pieces_for(dense(crowd, start=17) | people, measure)
    found = joined(pieces)
    assert found.measure is measure
    assert found.touched.tolist() == quantities.touched.tolist()
    assert found.active.tolist() == quantities.active.tolist()
    assert found.amounts.tolist() == quantities.amounts.tolist()
    assert [None if each.norms_before is None else each.norms_before.tolist() for each in (found, quantities)] == [
        None if quantities.norms_before is None else quantities.norms_before.tolist()
    ] * 2
    assert [piece.number for piece in pieces] == [WHOLE] or len({piece.number for piece in pieces}) == len(pieces)


@settings(max_examples=times(60, 100))
@given(
    people=PEOPLE,
    crowd=st.sampled_from([0, 5000]),
    measure=st.sampled_from(Measure),
    slot=st.one_of(st.integers(0, 60), st.integers(0, SLOTS - 1)),
)
@example(people={3: Person(10, is_active=True)}, crowd=0, measure=Measure.TWO_NORMS, slot=3)
def test_the_piece_of_a_slot_gives_its_state_and_charge(
    people: dict[int, Person], crowd: int, measure: Measure, slot: int
) -> None:
    """The charge is that of the paper, in fractions; a left-out individual pays nothing, and sees what it would have.

    A shortened one pays for what was counted.
    """
    everybody = dense(crowd, start=17) | people
    pieces = {piece.number: piece for piece in pieces_for(everybody, measure)}
    piece = pieces.get(WHOLE, pieces.get(number_for(slot)))
    found = ("untouched", 0, 0) if piece is None else piece.quantities().own(slot, Gaussian(1e6))
    person = everybody.get(slot)
    if person is None:
        assert found == ("untouched", 0, 0)
        return
    whole = 7 if measure is Measure.ONE_NORM else person.norm
    part = counted(slot, person) if measure is Measure.TWO_NORMS else whole
    prices = [min(ceil(Fraction(norm) * 2**39 / Fraction(1e6) ** 2), 2**62) for norm in (part, whole)]
    price, asked = [part, whole] if measure is Measure.UNITS else prices
    if not person.is_active:
        assert found == ("left_out", 0, asked)
    else:
        assert found == ("charged" if part == whole else "shortened", price, asked)


def test_few_people_are_one_piece_and_many_are_pieces_by_stretch() -> None:
    """A receipt of a dense query reads 8 KiB and the amounts of a stretch."""
    assert [piece.number for piece in pieces_for(dense(500))] == [WHOLE]
    pieces = pieces_for(dense(SLOTS))
    assert [piece.number for piece in pieces] == [0, 1, 2]
    assert max(len(piece.content) for piece in pieces) == CONTENT_BYTES_MAX
    longest = max(len(piece.content) for piece in pieces_for(dense(SLOTS), Measure.TWO_NORMS))
    assert longest == TWO_NORMS_BYTES_MAX


@pytest.mark.parametrize(("largest", "width"), [(1, 1), (255, 1), (256, 2), (2**16, 4), (2**32 - 1, 4), (2**62, 8)])
def test_an_amount_takes_the_bytes_that_the_largest_needs(largest: int, width: int) -> None:
    """The size is equal between neighbours, whatever the amounts are."""
    people = {slot: Person(norm=1, is_active=True) for slot in range(SLOTS)}
    pieces = pieces_for(people, largest=largest)
    assert len(pieces[0].content) == CONTENT_BYTES_MAX - (8 - width) * STRETCH_SLOTS
    assert joined(pieces).amounts.tolist() == [1] * SLOTS


@settings(max_examples=times(20, 100))
@given(people=PEOPLE, crowd=st.sampled_from([0, 900, 5000, SLOTS - 17]), measure=st.sampled_from(Measure))
def test_bytes_do_not_depend_on_the_form_of_blocks(people: dict[int, Person], crowd: int, measure: Measure) -> None:
    """One list, lists cut anywhere, stretches of a piece and of a page, a list with marks from end to end."""
    everybody = dense(crowd, start=17) | people
    (listed,) = told(everybody, measure).blocks()
    contents = [piece.content for piece in pieces_for(everybody, measure)]
    for blocks in (
        cut(listed, 371),
        cut(listed, STRETCH_SLOTS),
        stretches(listed, STRETCH_SLOTS),
        stretches(listed, PAGE),
        [marked(listed)],
    ):
        found = pieces_of(blocks, measure, amount_max=2**62, slots=SLOTS, salt=SALT)
        assert [piece.content for piece in found] == contents


PAGE = 2 * STRETCH_SLOTS


def cut(block: Participants, size: int) -> list[Participants]:
    """A list in parts of so many individuals, at least one."""
    slots = block.touched.slots()
    return [
        Participants(
            touched=Touched(slots[start : start + size]),
            active=block.active[start : start + size],
            norms_squared=block.norms_squared[start : start + size],
            count=slots[start : start + size].size,
            norms_before=None if block.norms_before is None else block.norms_before[start : start + size],
        )
        for start in range(0, max(slots.size, 1), size)
    ]


def marked(block: Participants) -> Participants:
    """A list with the ends of every piece in it, some of them untouched, as an index gives it."""
    slots, ends = block.touched.slots(), np.arange(0, SLOTS, STRETCH_SLOTS)
    listed = np.unique(np.concatenate([slots, ends, ends[1:] - 1, [SLOTS - 1]]))
    marks = np.isin(listed, slots)
    active, norms = np.zeros(listed.size, dtype=np.bool_), np.full(listed.size, 99)
    active[marks], norms[marks] = block.active, block.norms_squared
    if block.norms_squared.strides == (0,) and slots.size > 0:
        norms = uniform(int(block.norms_squared[0]), listed.size)
    norms_before = None
    if block.norms_before is not None:
        norms_before = np.full(listed.size, 98)
        norms_before[marks] = block.norms_before
    return Participants(
        touched=Touched(listed, marks), active=active, norms_squared=norms, count=slots.size, norms_before=norms_before
    )


def stretches(block: Participants, size: int) -> list[Participants]:
    """The individuals of a block over stretches of so many slots, up to the end of a page."""
    slots, found = block.touched.slots(), []
    is_one = block.norms_squared.strides == (0,) and slots.size > 0
    for start in range(0, 4 * STRETCH_SLOTS, size):
        here = (slots >= start) & (slots < start + size)
        marks, active = np.zeros((2, size), dtype=np.bool_)
        marks[slots[here] - start], active[slots[here] - start] = True, block.active[here]
        norms, norms_before = np.full(size, 99), np.full(size, 98)
        norms[slots[here] - start] = block.norms_squared[here]
        if block.norms_before is not None:
            norms_before[slots[here] - start] = block.norms_before[here]
        found.append(
            Participants(
                touched=Touched(slice(start, start + size), marks),
                active=active,
                norms_squared=uniform(int(block.norms_squared[0]), size) if is_one else norms,
                count=int(here.sum()),
                norms_before=None if block.norms_before is None else norms_before,
            )
        )
    return found


@pytest.mark.parametrize("measure", [Measure.NORMS, Measure.ONE_NORM, Measure.TWO_NORMS])
@pytest.mark.parametrize("count", [1, 7, 100, 5000, SLOTS - 1])
def test_one_more_or_less_changes_no_size(count: int, measure: Measure) -> None:
    """Leaving one individual out changes no size either; the sizes between these grow in steps."""

    def sizes(people: dict[int, Person]) -> list[int]:
        return [len(piece.content) for piece in pieces_for(people, measure)]

    people = dense(count)
    assert sizes(people) == sizes(people | {count: Person(1, is_active=True)})
    assert sizes(people) == sizes(people | {0: Person(1, is_active=False)})


def test_sizes_grow_in_few_steps() -> None:
    """Up to 8 KiB in total there are forty sizes, not four thousand."""
    made = [pieces_for(dense(count)) for count in range(650)]
    sizes = {len(pieces[0].content) for pieces in made if len(pieces) == 1}
    assert len(sizes) <= 45


def test_a_digest_binds_salt_number_and_content() -> None:
    """Changing any of them gives another digest; the digest of all pieces binds their order."""
    piece = Piece.of(SALT, 3, b"x")
    others = [Piece.of(bytes(32), 3, b"x"), Piece.of(SALT, 4, b"x"), Piece.of(SALT, 3, b"y")]
    assert len({each.digest for each in [piece, *others]}) == 4
    assert pieces_digest([piece, others[1]]) != pieces_digest([others[1], piece])
    assert pieces_digest([piece]) != pieces_digest([piece, others[1]])


@pytest.mark.parametrize("content", [b"", b"\x09" * 40, b"\x01\x00\x08\x00\x00\x00\x02\x00\x00\x00\x08" + bytes(8)])
def test_content_that_is_no_piece_is_refused(content: bytes) -> None:
    """Too short, of an unknown measure, or with parts that do not go together."""
    with pytest.raises(ValueError):  # noqa: PT011 - of several kinds
        Piece.of(SALT, 0, content).quantities()


def test_slots_that_were_not_handed_out_are_refused() -> None:
    """They would be charged to the next individual that joins."""
    with pytest.raises(IndexError, match="handed out"):
        pieces_for({SLOTS: Person(1, is_active=True)})


def test_an_entry_without_pieces_is_refused() -> None:
    """An entry that could not be opened does not count as one without individuals."""
    with pytest.raises(ValueError, match="another pepper"):
        joined([])
