"""An answer restored under its key, in memory and on Postgres: the row is added, and nothing else changes."""

import hashlib

import numpy as np
import orjson
import pytest

from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.rows import Asked, DatasetRecord
from service.ledger.ports.store import HeadMoved, Store
from service.maintenance.rebuild_answer import rebuild
from service.query.canonical import canonical_bytes
from service.query.parse import parse_query
from tests.contracts.stores import ANALYST, answer, priced_entry

KEY = "key-1"
CANONICAL = canonical_bytes(
    parse_query(orjson.dumps({"version": 1, "select": [{"count": {}}], "noise": {"sigma": 20.0}})), table="people"
)


def without_an_answer(store: Store, record: DatasetRecord) -> LedgerEntry:
    """An entry of a count whose answer is not there, and one after it."""
    with store.transaction(record.id, lock=True) as transaction:
        first = priced_entry(
            transaction.head,
            {0: 1},
            canonical=CANONICAL,
            query_hash=hashlib.sha256(CANONICAL).hexdigest(),
            dimension=1,
            values=np.array([5], dtype=">i8").tobytes(),
        )
        transaction.append([first], [], {ANALYST: first.worst_case_units})
        later = priced_entry(transaction.head, {0: 1}, salt=bytes(range(1, 33)))
        transaction.append([later], [answer(later, "key-2")], {ANALYST: later.worst_case_units})
        transaction.commit()
    return first


def test_the_row_is_added_and_nothing_else_changes(store: Store, record: DatasetRecord) -> None:
    """The key has its answer, the head and the worst cases are unchanged, and a second call finds nothing to do."""
    entry = without_an_answer(store, record)
    head, costs = store.head(record.id), store.worst_cases_of(ANALYST)

    rebuilt = rebuild(store, "survey", seq=1, key=KEY)

    assert rebuilt is not None
    assert (rebuilt.seq, rebuilt.query_id, rebuilt.at) == (1, entry.query_id, entry.asked_at)
    assert orjson.loads(rebuilt.body)["values"] == [5]
    asked = [Asked(address=(ANALYST, KEY), query_hash=None)]
    with store.transaction(record.id, lock=False, asked=asked) as transaction:
        assert transaction.known.answers == {(ANALYST, KEY): rebuilt}
        assert [each.seq for each in transaction.answers()] == [1, 2]
    assert (store.head(record.id), store.worst_cases_of(ANALYST)) == (head, costs)
    assert rebuild(store, "survey", seq=1, key=KEY) is None


def test_a_conditional_append_under_a_rebuilt_key_is_refused(store: Store, record: DatasetRecord) -> None:
    """The head has not moved, and still its conditional append is refused: no individual is charged."""
    without_an_answer(store, record)
    head = store.head(record.id)
    following = priced_entry(head, {0: 1}, salt=bytes(range(2, 34)))
    asked = [Asked(address=(ANALYST, KEY), query_hash=None)]
    with store.conditional_append(record.id, head, asked=asked) as conditional_append:
        conditional_append.append([following], [answer(following, KEY)], {ANALYST: 1})
        assert rebuild(store, "survey", seq=1, key=KEY) is not None
        with pytest.raises(HeadMoved):
            conditional_append.commit()
    assert store.head(record.id) == head
