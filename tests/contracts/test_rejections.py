"""Batches that a store rejects because of their values, by either way of committing: none of it is kept."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import pytest

from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.rows import AnswerRecord, Asked, DatasetRecord
from service.ledger.ports.store import CommitRejected, Store
from service.ledger.ports.transaction import ConditionalAppend, Transaction
from tests.contracts.stores import ANALYST, answer, entry, ledger

CHECK_VIOLATION, UNIQUE_VIOLATION = "23514", "23505"
Begin = Callable[[Store, DatasetRecord], AbstractContextManager[ConditionalAppend | Transaction]]


@contextmanager
def proposed(store: Store, record: DatasetRecord) -> Iterator[ConditionalAppend]:
    """A conditional append: one round trip."""
    asked = [Asked(address=(ANALYST, f"key-{number}"), query_hash=None) for number in (1, 2)]
    with store.conditional_append(record.id, store.head(record.id), asked=asked) as conditional_append:
        yield conditional_append


@contextmanager
def locked(store: Store, record: DatasetRecord) -> Iterator[Transaction]:
    """A transaction under the dataset's lock."""
    with store.transaction(record.id, lock=True) as transaction:
        yield transaction


def pair(store: Store, record: DatasetRecord) -> tuple[list[LedgerEntry], list[AnswerRecord]]:
    """Two entries that continue the head, and their answers."""
    head = store.head(record.id)
    first = entry(head, {0: 5})
    second = entry(replace(head, seq=first.seq, hash=first.hash), {1: 5})
    return [first, second], [answer(first, "key-1"), answer(second, "key-2")]


@pytest.mark.parametrize("begin", [proposed, locked])
def test_values_that_break_a_constraint_reject_the_whole_batch(
    store: Store, record: DatasetRecord, begin: Begin
) -> None:
    """The exception holds a code and none of the values, the ledger is as before, and the next batch commits."""
    entries, answers = pair(store, record)
    before = store.head(record.id)
    short = [entries[0], replace(entries[1], values=b"12345678")]
    with begin(store, record) as appending:
        appending.append(short, answers, {ANALYST: 9})
        with pytest.raises(CommitRejected) as rejection:
            appending.commit()
    assert (rejection.value.code, str(rejection.value)) == (CHECK_VIOLATION, CHECK_VIOLATION)
    assert rejection.value.__cause__ is None
    assert (store.head(record.id), ledger(store, record)) == (before, [])
    assert store.worst_cases_of(ANALYST) == {}
    with begin(store, record) as appending:
        appending.append(entries, answers, {ANALYST: 9})
        appending.commit()
    assert store.head(record.id).seq == 2


def test_a_second_answer_under_a_key_is_rejected_under_the_lock(store: Store, record: DatasetRecord) -> None:
    """The key was looked up under the lock, so no other process can have taken it since: a retry would not help."""
    entries, answers = pair(store, record)
    with locked(store, record) as transaction:
        transaction.append(entries[:1], answers[:1], {})
        transaction.commit()
    with locked(store, record) as transaction:
        transaction.append(entries[1:], [replace(answers[1], key="key-1")], {})
        with pytest.raises(CommitRejected, match=UNIQUE_VIOLATION):
            transaction.commit()
    assert store.head(record.id).seq == 1
