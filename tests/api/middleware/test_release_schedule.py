"""The arithmetic of instants: public numbers in, an instant out, and nothing between two beginnings of slots."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.middleware.release_slots import Slots

MS = 1_000_000
SLOTS = Slots(length_ns=10 * MS)
lengths = st.integers(1, 60_000).map(lambda ms: Slots(length_ns=ms * MS))
instants = st.integers(0, 2**62)
spans = st.integers(0, 10**12)


@pytest.mark.parametrize(
    ("whole_ms", "held_ms", "leaves_ms"),
    [(0, 10, 10), (0.1, 10, 10), (5, 10, 10), (5.1, 10, 20), (9.9, 10, 20), (10, 50, 60), (0, 2, 10), (5.1, 2, 20)],
)
def test_a_response_without_a_reservation_leaves_about_so_much_later(
    whole_ms: float, held_ms: float, leaves_ms: float
) -> None:
    """At the first beginning of a slot that leaves it at least half a slot less than that, or than a slot."""
    assert SLOTS.after(int(whole_ms * MS), int(held_ms * MS)) == leaves_ms * MS


def test_short_slots_hold_as_long_as_long_ones() -> None:
    """The time is what the work has, and no number of slots."""
    assert Slots(length_ns=2 * MS).after(4 * MS + 1, 50 * MS) == 54 * MS
    assert Slots(length_ns=2 * MS).after(5 * MS + 1, 50 * MS) == 56 * MS


@given(slots=lengths, whole=instants, held=spans)
def test_such_a_response_leaves_at_a_beginning_within_half_a_slot_of_its_delay(
    slots: Slots, whole: int, held: int
) -> None:
    """Never sooner than half a slot before its delay is over, and never half a slot after."""
    leaves = slots.after(whole, held)
    assert leaves % slots.length_ns == 0
    assert -1 <= 2 * (leaves - whole - max(held, slots.length_ns)) + slots.length_ns < 2 * slots.length_ns


@pytest.mark.parametrize(
    ("arrived_ms", "due_ms", "now_ms", "leaves_ms"),
    [
        (2, 30, 30.1, 60),  # twice 28 ms after 2 is 58
        (2, 30, 57.9, 60),
        (2, 30, 58, 120),  # four times 28 ms after 2 is 114
        (2, 30, 113.9, 120),
        (2, 30, 114, 230),  # eight times 28 ms after 2 is 226
        (9, 10, 10.1, 20),  # a delay below a slot counts as a slot
        (9, 10, 19, 30),
    ],
)
def test_what_is_late_leaves_at_two_four_eight_times_its_delay(
    arrived_ms: float, due_ms: float, now_ms: float, leaves_ms: float
) -> None:
    """Rounded up to the beginning of a slot."""
    arrived, due, now = (int(ms * MS) for ms in (arrived_ms, due_ms, now_ms))
    assert SLOTS.late(arrived_ns=arrived, due_ns=due, now_ns=now) == leaves_ms * MS


@given(slots=lengths, arrived=instants, delay=spans, late=spans)
def test_of_how_late_it_was_only_the_number_of_doublings_is_left(
    slots: Slots, arrived: int, delay: int, late: int
) -> None:
    """The instant is one of a few that arrival and due instant determine; it is never past."""
    due = arrived + delay
    leaves = slots.late(arrived_ns=arrived, due_ns=due, now_ns=due + late)
    counted = max(delay, slots.length_ns)
    possible = (-(-(arrived + counted * 2**doublings) // slots.length_ns) * slots.length_ns for doublings in range(64))
    assert leaves in possible
    assert due + late < leaves
