"""Conditional appends, in memory and on Postgres: the whole batch becomes durable, or none of it."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from service.core.charge import CHARGE_UNITS_MAX
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.rows import AnswerRecord, Asked, DatasetRecord, Head
from service.ledger.ports.store import HeadMoved, Store
from tests.contracts.stores import ANALYST, answer, append, entry, ledger


def propose(
    store: Store,
    record: DatasetRecord,
    head: Head,
    entries: Sequence[LedgerEntry],
    answers: Sequence[AnswerRecord],
    *,
    hashes: Sequence[str | None] = (None,),
    units: int = 7,
) -> Head:
    """Commit a conditional append on `head`; the new head."""
    asked = [Asked(address=(ANALYST, answer.key), query_hash=each) for answer in answers for each in hashes]
    with store.conditional_append(record.id, head, asked=asked) as conditional_append:
        conditional_append.append(entries, answers, {ANALYST: units})
        conditional_append.commit()
        return conditional_append.head


def began(store: Store, record: DatasetRecord) -> tuple[Head, LedgerEntry]:
    """A ledger of one entry, and its head."""
    start = store.head(record.id)
    first = entry(start, {0: 5})
    return propose(store, record, start, [first], [answer(first)]), first


def test_everything_of_a_batch_is_there_after_commit(store: Store, record: DatasetRecord) -> None:
    """Entries with charges, their answers, the worst case, and the head."""
    start = store.head(record.id)
    first = entry(start, {0: 5, 3: 5}, (2,))
    second = entry(replace(start, seq=1, hash=first.hash), {0: 5, 1: 2**40, 2: 3})
    answers = [answer(first, "one"), answer(second, "two"), answer(second, "three")]
    head = propose(store, record, start, [first, second], answers)

    assert store.head(record.id) == head
    assert (head.seq, head.hash) == (2, second.hash)
    assert ledger(store, record) == [first, second]
    asked = [Asked(address=(ANALYST, key), query_hash=None) for key in ("one", "two", "three")]
    with store.transaction(record.id, lock=False, asked=asked) as transaction:
        assert list(transaction.known.answers.values()) == answers
        assert transaction.known.worst_cases == {ANALYST: 7}
    propose(store, record, head, [entry(head, {})], [])
    assert store.worst_cases_of(ANALYST) == {"survey": 14}


def test_a_million_charges_and_numbers_read_back(store: Store, record: DatasetRecord) -> None:
    """Megabytes in one column, next to a sum beyond 64 bits."""
    start = store.head(record.id)
    charged = {slot: 2**59 + slot for slot in range(100_000)}
    large = entry(start, charged, dimension=2**20, values=bytes(2**23), analyst="å\u2028")
    assert large.charged_units > 2**64
    propose(store, record, start, [large], [answer(large)])
    assert ledger(store, record) == [large]


@pytest.mark.parametrize("units", [CHARGE_UNITS_MAX, CHARGE_UNITS_MAX - 1, 1])
def test_an_analysts_worst_cases_saturate(store: Store, record: DatasetRecord, units: int) -> None:
    """The sum stops at the largest cost of one query, reached from below or exceeded."""
    for number in range(3):
        head = store.head(record.id)
        following = replace(entry(head, {}), worst_case_total_units=CHARGE_UNITS_MAX)
        propose(store, record, head, [following], [answer(following, f"key-{number}")], units=units)
        assert store.worst_cases_of(ANALYST) == {"survey": min((number + 1) * units, CHARGE_UNITS_MAX)}


def _acted(store: Store, record: DatasetRecord) -> None:
    with store.transaction(record.id, lock=True) as transaction:
        transaction.journal("rows", {}, slots=1)
        transaction.commit()


def _opened(store: Store, record: DatasetRecord) -> None:
    with store.transaction(record.id, lock=True) as transaction:
        transaction.journal("epoch", {}, epoch=transaction.head.epoch + 1)
        transaction.commit()


def _fenced(store: Store, record: DatasetRecord) -> None:
    with store.transaction(record.id, lock=True) as transaction:
        transaction.fence_off(transaction.head.fence + 1, 0)
        transaction.commit()


def _appended(store: Store, record: DatasetRecord) -> None:
    append(store, record, {0: 1}, key="other")


@pytest.mark.parametrize("happened", [_appended, _acted, _opened, _fenced])
def test_nothing_is_committed_on_another_head(
    store: Store, record: DatasetRecord, happened: Callable[[Store, DatasetRecord], None]
) -> None:
    """Another replica has appended, a curator has acted, an epoch has begun, or the writer was fenced off."""
    start = store.head(record.id)
    happened(store, record)
    before, entries = store.head(record.id), ledger(store, record)
    with pytest.raises(HeadMoved):
        propose(store, record, start, [first := entry(start, {0: 5})], [answer(first)])
    assert (store.head(record.id), ledger(store, record)) == (before, entries)
    assert store.worst_cases_of(ANALYST).get("survey", 0) == 0
    with store.transaction(record.id, lock=True, asked=[_key()]) as transaction:
        assert transaction.known.answers == {}


def test_a_head_of_the_same_sequence_and_another_hash_is_refused(store: Store, record: DatasetRecord) -> None:
    """The hash decides, not the sequence: a restored database may have come as far again."""
    start = store.head(record.id)
    with pytest.raises(HeadMoved):
        propose(store, record, replace(start, hash=bytes(32)), [first := entry(start, {})], [answer(first)])
    assert ledger(store, record) == []


def test_a_key_that_is_taken_refuses_the_whole_batch(store: Store, record: DatasetRecord) -> None:
    """No key gets two answers, and no query of the batch is charged."""
    head, first = began(store, record)
    following = entry(head, {1: 5})
    with pytest.raises(HeadMoved):
        propose(store, record, head, [following], [answer(following, "fresh"), answer(following)])
    assert ledger(store, record) == [first]


def test_a_key_that_was_not_asked_for_cannot_be_taken_twice_either(store: Store, record: DatasetRecord) -> None:
    """A constraint of the database enforces it."""
    head, first = began(store, record)
    following = entry(head, {1: 5})
    with store.conditional_append(record.id, head, asked=[]) as conditional_append:
        conditional_append.append([following], [answer(following)], {})
        with pytest.raises(HeadMoved):
            conditional_append.commit()
    assert ledger(store, record) == [first]


def test_a_query_that_could_be_reused_is_not_charged_again(store: Store, record: DatasetRecord) -> None:
    """An equal query of this epoch refuses the append; one of an earlier epoch, or with `reuse` off, does not."""
    head, first = began(store, record)
    following = entry(head, {1: 5})
    with pytest.raises(HeadMoved):
        propose(store, record, head, [following], [answer(following, "again")], hashes=[None, "q"])
    head = propose(store, record, head, [following], [answer(following, "fresh")])
    _opened(store, record)
    head = store.head(record.id)
    third = entry(head, {1: 5})
    propose(store, record, head, [third], [answer(third, "next epoch")], hashes=["q"])
    assert ledger(store, record) == [first, following, third]


def test_of_two_appends_on_one_head_one_is_committed(store: Store, record: DatasetRecord) -> None:
    """In every round exactly one is committed, and the ledger has no gap."""

    def race(name: str, head: Head) -> bool:
        try:
            propose(store, record, head, [mine := entry(head, {0: 1})], [answer(mine, f"{name}-{head.seq}")])
        except HeadMoved:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        for _ in range(25):
            head = store.head(record.id)
            assert sorted(pool.map(race, ("one", "two"), (head, head))) == [False, True]
    assert [each.seq for each in ledger(store, record)] == list(range(1, 26))


def _key() -> Asked:
    return Asked(address=(ANALYST, "key-1"), query_hash=None)
