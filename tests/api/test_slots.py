"""The arithmetic of instants: public numbers in, an instant out, and nothing between two slots."""

from hypothesis import given
from hypothesis import strategies as st

from service.api.slots import COORDINATE_NS, QUERY_NS, PublicWork, Slots

MS = 1_000_000
SLOTS = Slots(length_ns=10 * MS)
lengths = st.integers(1, 60_000).map(lambda ms: Slots(length_ns=ms * MS))
instants = st.integers(0, 2**62)
works = st.builds(PublicWork, queries=st.integers(1, 256), coordinates=st.integers(0, 2**28))


def test_one_small_query_is_due_after_one_slot() -> None:
    """And so is whatever nobody has said anything about."""
    assert SLOTS.count(PublicWork()) == SLOTS.count(PublicWork(coordinates=1)) == 1
    assert SLOTS.due(PublicWork(coordinates=1), arrived_ns=7, whole_ns=8) == 7 + 10 * MS


def test_more_numbers_and_more_queries_are_given_more_slots() -> None:
    """By what is public of them, and by nothing else."""
    assert SLOTS.count(PublicWork(coordinates=10 * MS // COORDINATE_NS - 1)) == 1
    assert SLOTS.count(PublicWork(coordinates=10 * MS // COORDINATE_NS)) == 2
    assert SLOTS.count(PublicWork(queries=1 + 10 * MS // QUERY_NS, coordinates=6)) == 2


@given(slots=lengths, one=works, other=works)
def test_what_asks_for_more_is_never_due_sooner(slots: Slots, one: PublicWork, other: PublicWork) -> None:
    """The number of slots grows with both numbers."""
    both = PublicWork(queries=max(one.queries, other.queries), coordinates=max(one.coordinates, other.coordinates))
    assert slots.count(both) >= max(slots.count(one), slots.count(other)) >= 1


@given(slots=lengths, work=works, arrived=instants, body=st.integers(0, 10**12))
def test_a_response_is_due_on_the_grid_and_has_its_time_after_the_body(
    slots: Slots, work: PublicWork, arrived: int, body: int
) -> None:
    """A whole number of slots after the arrival: at least its own after the slot in which the body was whole."""
    due = slots.due(work, arrived_ns=arrived, whole_ns=arrived + body)
    assert (due - arrived) % slots.length_ns == 0
    assert due > arrived + body + (slots.count(work) - 1) * slots.length_ns
    assert due <= arrived + body + slots.count(work) * slots.length_ns


@given(slots=lengths, arrived=instants, taken=st.integers(0, 10**12))
def test_what_is_late_leaves_at_the_next_multiple(slots: Slots, arrived: int, taken: int) -> None:
    """The first of the grid after now: of how late it was, only the slot is left."""
    leaves = slots.next(arrived_ns=arrived, now_ns=arrived + taken)
    assert (leaves - arrived) % slots.length_ns == 0
    assert 0 < leaves - (arrived + taken) <= slots.length_ns


@given(slots=lengths, work=works, arrived=instants, moved=instants)
def test_the_hour_of_day_does_not_matter(slots: Slots, work: PublicWork, arrived: int, moved: int) -> None:
    """The grid begins anew with every request: nothing depends on where the clock stands."""
    here = slots.due(work, arrived_ns=arrived, whole_ns=arrived) - arrived
    assert here == slots.due(work, arrived_ns=moved, whole_ns=moved) - moved
