"""The reads that only verification needs: answers in the ledger's order, all worst cases, sizes of entries."""

from dataclasses import replace
from uuid import UUID

from service.ledger.model.rows import AnswerRecord, DatasetRecord
from service.ledger.ports.store import Store
from tests.contracts.stores import ANALYST, answer, dataset, entry, priced_entry

ENTRIES = 20
"""More rows than Postgres returns in one fetch."""


def filled(store: Store, record: DatasetRecord) -> list[AnswerRecord]:
    """Entries with an answer each, their keys in another order; a second answer shows the first entry."""
    answers = []
    with store.transaction(record.id, lock=True) as transaction:
        for number in range(ENTRIES):
            following = entry(transaction.head, {0: 1})
            answers.append(answer(following, f"key-{ENTRIES - number}"))
            transaction.append([following], answers[-1:], {ANALYST: 2, UUID(int=number + 100): 3})
        transaction.commit()
    return answers


def test_all_answers_come_in_the_order_of_the_ledger(store: Store, record: DatasetRecord) -> None:
    """The order holds when other rows are read in between; no answer of another dataset is among them."""
    expected, other = filled(store, record), store.add_dataset(dataset("other"))
    with store.transaction(record.id, lock=False) as transaction:
        found = []
        for answer, shown in zip(transaction.answers(), transaction.entries(after=0), strict=True):
            assert answer.seq == shown.seq
            found.append(answer)
        assert found == expected
        assert list(transaction.answers()) == expected
    with store.transaction(other.id, lock=False) as transaction:
        assert list(transaction.answers()) == []


def test_all_worst_cases_are_listed_by_analyst(store: Store, record: DatasetRecord) -> None:
    """The worst cases are those of this dataset only."""
    filled(store, record)
    with store.transaction(record.id, lock=False) as transaction:
        expected = {UUID(int=number + 100): 3 for number in range(ENTRIES)}
        expected[ANALYST] = 2 * ENTRIES
        assert transaction.worst_cases() == expected
    with store.transaction(store.add_dataset(dataset("other")).id, lock=False) as transaction:
        assert transaction.worst_cases() == {}


def test_sizes_are_listed_newest_first(store: Store, record: DatasetRecord) -> None:
    """At most `limit` sizes are listed; an entry's size grows with its values, and none is of another dataset."""
    dimensions = [2, 1000, 40_000, 1]
    with store.transaction(record.id, lock=True) as transaction:
        for dimension in dimensions:
            longer = replace(entry(transaction.head, {0: 1}), dimension=dimension, values=bytes(8 * dimension))
            transaction.append([longer.sealed()], [], {})
        transaction.commit()
    with store.transaction(record.id, lock=False) as transaction:
        told = transaction.entry_sizes(before=2**62, limit=10)
        assert [seq for seq, _ in told] == [4, 3, 2, 1]
        besides = {size - 8 * dimension for (_, size), dimension in zip(told, dimensions[::-1], strict=True)}
        assert len(besides) == 1
        assert min(besides) > 0
        assert transaction.entry_sizes(before=4, limit=2) == told[1:3]
        assert transaction.entry_sizes(before=1, limit=2) == transaction.entry_sizes(before=9, limit=0) == []
    with store.transaction(store.add_dataset(dataset("other")).id, lock=False) as transaction:
        assert transaction.entry_sizes(before=2**62, limit=10) == []


def test_pieces_count_wherever_they_are_kept(store: Store, record: DatasetRecord) -> None:
    """One piece in the row, or several in the table of pieces: the size covers at least their content."""
    with store.transaction(record.id, lock=True) as transaction:
        for people in (3, 40_000):
            dense = priced_entry(transaction.head, dict.fromkeys(range(people), 7), slots=40_000)
            transaction.append([dense], [], {})
        transaction.commit()
    with store.transaction(record.id, lock=False) as transaction:
        sizes = [size for _, size in transaction.entry_sizes(before=2**62, limit=10)]
        kept = [sum(len(piece.content) for piece in each.pieces) for each in transaction.entries(after=0)]
        numbers = [len(each.pieces) for each in transaction.entries(after=0)]
    assert (numbers[0], numbers[1] > 1) == (1, True)
    assert all(0 <= size - content < 200 for size, content in zip(sizes[::-1], kept, strict=True))
