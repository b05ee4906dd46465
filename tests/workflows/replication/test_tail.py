"""The tail: used only if it leads from the position of memory to the head named by the database."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from service.workflows.model.ledger_entry import LedgerEntry
from service.workflows.model.rows import Head
from service.workflows.replication.exchange import TAIL_MAX, Tail
from tests.contracts.caches import GENESIS, HEAD, chain

ENTRIES = chain(8)


def head_at(entries: list[LedgerEntry]) -> Head:
    """The head after these entries."""
    return replace(HEAD, seq=entries[-1].seq, hash=entries[-1].hash) if entries else HEAD


def offered(*entries: LedgerEntry, after: int = 0) -> Tail:
    """A tail that was offered these entries."""
    tail = Tail()
    tail.offer(entries, after=after)
    return tail


@given(start=st.integers(0, 8), end=st.integers(0, 8), held=st.sets(st.integers(0, 7)))
def test_only_a_complete_tail_is_used(start: int, end: int, held: set[int]) -> None:
    """All entries from one position to the other, or none."""
    tail = offered(*(ENTRIES[n] for n in held))
    own_hash = ENTRIES[start - 1].hash if start else GENESIS
    wanted = ENTRIES[start:end]
    is_whole = start < end and held >= set(range(start, end))
    assert tail.between(start, own_hash, head_at(ENTRIES[:end])) == (wanted if is_whole else [])


def test_another_history_of_the_same_length_is_not_used() -> None:
    """A clone of the database has the same seal and the same sequence; its hashes differ."""
    other = chain(8)
    assert offered(*other).between(0, GENESIS, head_at(ENTRIES)) == []
    assert offered(*ENTRIES[:4], *other[4:]).between(0, GENESIS, head_at(ENTRIES)) == []
    assert offered(*other[:4], *ENTRIES[4:]).between(0, GENESIS, head_at(ENTRIES)) == []
    assert offered(*ENTRIES).between(0, other[0].hash, head_at(ENTRIES)) == []
    assert offered(*ENTRIES).between(0, b"", head_at(ENTRIES)) == []


def test_an_entry_that_was_changed_is_passed_over() -> None:
    """Its hash does not match its content, whatever hash it claims."""
    cheaper = replace(ENTRIES[2], charged_units=0)
    tail = offered(*ENTRIES[:2], cheaper, *ENTRIES[3:])
    assert tail.between(0, GENESIS, head_at(ENTRIES)) == []
    assert tail.last(after=0) == 2


def test_entries_behind_are_dropped_and_those_far_ahead_are_not_kept() -> None:
    """A tail takes little memory."""
    tail = offered(*chain(TAIL_MAX + 5))
    assert tail.last(after=0) == TAIL_MAX
    tail.offer([], after=TAIL_MAX)
    assert tail._entries == {}
    assert tail.last(after=TAIL_MAX) == TAIL_MAX
