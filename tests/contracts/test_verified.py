"""What a verification reads and nobody else does: all replies in the order of the ledger, and all worst cases."""

from uuid import UUID

import pytest

from service.workflows.ports import Store
from service.workflows.records import AnswerRecord, DatasetRecord
from tests.contracts.stores import ANALYST, dataset, entry, reply

pytestmark = pytest.mark.slow

ENTRIES = 20
"""More than Postgres hands over at once."""


def filled(store: Store, record: DatasetRecord) -> list[AnswerRecord]:
    """Entries with a reply each, whose keys come in another order; the first is shown by a second reply."""
    replies = []
    with store.transaction(record.id, lock=True) as transaction:
        for number in range(ENTRIES):
            following = entry(transaction.head, {0: 1})
            replies.append(reply(following, f"key-{ENTRIES - number}"))
            transaction.append([following], replies[-1:], {ANALYST: 2, UUID(int=number + 100): 3})
        transaction.commit()
    return replies


def test_all_replies_come_in_the_order_of_the_ledger(store: Store, record: DatasetRecord) -> None:
    """Whatever else is read meanwhile; and none of another dataset's."""
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


def test_all_worst_cases_are_told_by_analyst(store: Store, record: DatasetRecord) -> None:
    """Of this dataset alone."""
    filled(store, record)
    with store.transaction(record.id, lock=False) as transaction:
        expected = {UUID(int=number + 100): 3 for number in range(ENTRIES)}
        expected[ANALYST] = 2 * ENTRIES
        assert transaction.worst_cases() == expected
    with store.transaction(store.add_dataset(dataset("other")).id, lock=False) as transaction:
        assert transaction.worst_cases() == {}
