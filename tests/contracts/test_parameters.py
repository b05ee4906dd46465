"""Parameters by their hash, in every store: kept with the entry or not at all, once, and for their analyst alone."""

import hashlib
from dataclasses import replace
from uuid import UUID

import pytest

from service.ledger.model.parameters import LEAST_BYTES, KeptParameters
from service.ledger.model.rows import Asked, DatasetRecord
from service.ledger.ports.store import HeadMoved, Store
from tests.contracts.stores import ANALYST, answer, dataset, entry, ledger

NUMBERS = bytes(range(48))
SHA256 = hashlib.sha256(NUMBERS).hexdigest()
ONE = KeptParameters(principal_id=ANALYST, sha256=SHA256, shape=(2, 3), numbers=NUMBERS)
LIST = KeptParameters(
    principal_id=ANALYST, sha256=hashlib.sha256(NUMBERS[8:]).hexdigest(), shape=(5,), numbers=NUMBERS[8:]
)


def found(
    store: Store, record: DatasetRecord, principal: UUID = ANALYST, sha256: str = SHA256
) -> KeptParameters | None:
    """The parameters, as a snapshot sees them."""
    with store.transaction(record.id, lock=False) as transaction:
        return transaction.parameters(principal, sha256)


def append(store: Store, record: DatasetRecord, *kept: KeptParameters, is_committed: bool = True) -> None:
    """An entry and its answer, with parameters."""
    with store.transaction(record.id, lock=True) as transaction:
        following = entry(transaction.head, {0: 1})
        transaction.append([following], [answer(following, f"key-{following.seq}")], {ANALYST: 1}, kept)
        if is_committed:
            transaction.commit()


def test_they_are_found_by_their_analyst_and_hash_alone(store: Store, record: DatasetRecord) -> None:
    """Neither by another analyst, nor by another hash, nor in another dataset."""
    other = store.add_dataset(dataset("other"))
    assert found(store, record) is None
    append(store, record, ONE, LIST)
    assert found(store, record) == ONE
    assert found(store, record, sha256=LIST.sha256) == LIST
    assert found(store, record, principal=UUID(int=8)) is None
    assert found(store, record, sha256="00" * 32) is None
    assert found(store, other) is None


def test_what_is_not_committed_is_not_kept(store: Store, record: DatasetRecord) -> None:
    """They go with the entry."""
    append(store, record, ONE, is_committed=False)
    assert found(store, record) is None
    assert store.head(record.id).seq == 0


def test_they_are_kept_once(store: Store, record: DatasetRecord) -> None:
    """The first shape stands, also within one commit; another analyst's are its own."""
    theirs, reshaped = replace(ONE, principal_id=UUID(int=8)), replace(ONE, shape=(6,))
    append(store, record, ONE, reshaped, theirs)
    append(store, record, reshaped)
    assert found(store, record) == ONE
    assert found(store, record, principal=UUID(int=8)) == theirs
    assert store.head(record.id).seq == 2


@pytest.mark.parametrize("has_moved", [False, True])
def test_a_conditional_append_keeps_them_if_it_appends(store: Store, record: DatasetRecord, has_moved: bool) -> None:
    """A head that has moved refuses entry and parameters alike."""
    head = store.head(record.id)
    following = entry(head, {0: 1})
    if has_moved:
        append(store, record)
    asked = [Asked(address=(ANALYST, "k"), query_hash=None)]
    with store.conditional_append(record.id, head, asked=asked) as appending:
        appending.append([following], [answer(following, "k")], {ANALYST: 1}, [ONE])
        if has_moved:
            with pytest.raises(HeadMoved):
                appending.commit()
        else:
            appending.commit()
    assert found(store, record) == (None if has_moved else ONE)


def test_they_go_with_entries_of_many_pieces(store: Store, record: DatasetRecord) -> None:
    """One transaction holds both, however many statements they are."""
    with store.transaction(record.id, lock=True) as transaction:
        large = entry(transaction.head, {slot: slot + 1 for slot in range(0, 200_000, 2)})
        assert len(large.pieces) > 1
        transaction.append([large], [answer(large)], {ANALYST: 1}, [ONE])
        transaction.commit()
    assert found(store, record) == ONE
    assert ledger(store, record) == [large]


def test_what_is_stored_of_an_analyst_is_counted(store: Store, record: DatasetRecord) -> None:
    """Each array with a least number of bytes, those of this analyst in this dataset alone; and which are stored."""
    large = bytes(2 * LEAST_BYTES)
    other = KeptParameters(principal_id=UUID(int=8), sha256=SHA256, shape=(2, 3), numbers=NUMBERS)
    long = KeptParameters(principal_id=ANALYST, sha256=hashlib.sha256(large).hexdigest(), shape=(1024,), numbers=large)
    append(store, record, ONE, other, long)
    for principal, asked, expected in (
        (ANALYST, [SHA256, LIST.sha256], (3 * LEAST_BYTES, {SHA256})),
        (UUID(int=8), [], (LEAST_BYTES, set[str]())),
        (UUID(int=9), [SHA256], (0, set[str]())),
    ):
        with store.transaction(record.id, lock=False) as transaction:
            assert transaction.parameters_stored(principal, asked) == expected
