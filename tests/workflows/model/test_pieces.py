"""Pieces: an entry's data of people is read as it was written, and its size says little about any individual."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.arrays import Touched, uniform
from service.core.release import Participants
from service.workflows.model.pieces import (
    CONTENT_BYTES_MAX,
    STRETCH_SLOTS,
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
    """The quantities of a release for these people; under ONE_NORM each has 7."""
    slots = sorted(people)
    norms = np.array([people[slot].norm for slot in slots], dtype=np.int64)
    return Quantities(
        measure=measure,
        touched=np.array(slots, dtype=np.int64),
        active=np.array([people[slot].is_active for slot in slots], dtype=np.bool_),
        amounts=uniform(7, len(slots)) if measure is Measure.ONE_NORM else norms,
    )


def dense(count: int, *, start: int = 0) -> dict[int, Person]:
    """So many people in adjacent slots; one in five of them cannot pay."""
    return {start + n: Person(norm=n + 1, is_active=n % 5 > 0) for n in range(count)}


def pieces_for(people: dict[int, Person], measure: Measure = Measure.NORMS, *, largest: int = 2**62) -> list[Piece]:
    """The pieces of an entry for these people."""
    blocks = told(people, measure).blocks()
    return list(pieces_of(blocks, measure, amount_max=largest, slots=SLOTS, salt=SALT))


@pytest.mark.slow
@settings(max_examples=times(40, 100))
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
    assert [piece.number for piece in pieces] == [WHOLE] or len({piece.number for piece in pieces}) == len(pieces)


@given(
    people=PEOPLE, crowd=st.sampled_from([0, 5000]), measure=st.sampled_from(Measure), slot=st.integers(0, SLOTS - 1)
)
def test_the_piece_of_a_slot_gives_its_state_and_charge(
    people: dict[int, Person], crowd: int, measure: Measure, slot: int
) -> None:
    """The charge is that of the paper, in fractions; a left-out individual pays nothing."""
    everybody = dense(crowd, start=17) | people
    pieces = {piece.number: piece for piece in pieces_for(everybody, measure)}
    piece = pieces.get(WHOLE, pieces.get(number_for(slot)))
    found = ("untouched", 0) if piece is None else piece.quantities().own(slot, 1e6)
    person = everybody.get(slot)
    if person is None:
        assert found == ("untouched", 0)
    elif not person.is_active:
        assert found == ("left_out", 0)
    else:
        norm = 7 if measure is Measure.ONE_NORM else person.norm
        price = min(ceil(Fraction(norm) * 2**39 / Fraction(1e6) ** 2), 2**62)
        assert found == ("charged", norm if measure is Measure.UNITS else price)


def test_few_people_are_one_piece_and_many_are_pieces_by_stretch() -> None:
    """A receipt of a dense query reads 8 KiB and the amounts of a stretch."""
    assert [piece.number for piece in pieces_for(dense(500))] == [WHOLE]
    pieces = pieces_for(dense(SLOTS))
    assert [piece.number for piece in pieces] == [0, 1, 2]
    assert max(len(piece.content) for piece in pieces) == CONTENT_BYTES_MAX


@pytest.mark.parametrize(("largest", "width"), [(1, 1), (255, 1), (256, 2), (2**16, 4), (2**32 - 1, 4), (2**62, 8)])
def test_an_amount_takes_the_bytes_that_the_largest_needs(largest: int, width: int) -> None:
    """The size is equal between neighbours, whatever the amounts are."""
    people = {slot: Person(norm=1, is_active=True) for slot in range(SLOTS)}
    pieces = pieces_for(people, largest=largest)
    assert len(pieces[0].content) == CONTENT_BYTES_MAX - (8 - width) * STRETCH_SLOTS
    assert joined(pieces).amounts.tolist() == [1] * SLOTS


@pytest.mark.slow
@settings(max_examples=times(40, 100))
@given(people=PEOPLE, crowd=st.sampled_from([0, 900, 5000, SLOTS - 17]), measure=st.sampled_from(Measure))
def test_bytes_do_not_depend_on_the_form_of_blocks(people: dict[int, Person], crowd: int, measure: Measure) -> None:
    """One list, lists cut anywhere, stretches of a piece and of a page."""
    everybody = dense(crowd, start=17) | people
    (listed,) = told(everybody, measure).blocks()
    contents = [piece.content for piece in pieces_for(everybody, measure)]
    for blocks in (
        cut(listed, 371),
        cut(listed, STRETCH_SLOTS),
        stretches(listed, STRETCH_SLOTS),
        stretches(listed, PAGE),
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
        )
        for start in range(0, max(slots.size, 1), size)
    ]


def stretches(block: Participants, size: int) -> list[Participants]:
    """The same individuals over stretches of so many slots, up to the end of a page."""
    slots, found = block.touched.slots(), []
    is_one = block.norms_squared.strides == (0,) and slots.size > 0
    for start in range(0, 4 * STRETCH_SLOTS, size):
        here = (slots >= start) & (slots < start + size)
        marks, active = np.zeros((2, size), dtype=np.bool_)
        marks[slots[here] - start], active[slots[here] - start] = True, block.active[here]
        norms = np.full(size, 99)
        norms[slots[here] - start] = block.norms_squared[here]
        found.append(
            Participants(
                touched=Touched(slice(start, start + size), marks),
                active=active,
                norms_squared=uniform(int(block.norms_squared[0]), size) if is_one else norms,
                count=int(here.sum()),
            )
        )
    return found


@pytest.mark.parametrize("measure", [Measure.NORMS, Measure.ONE_NORM])
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
    sizes = {len(pieces_for(dense(count))[0].content) for count in range(650) if len(pieces_for(dense(count))) == 1}
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
