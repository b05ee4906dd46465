"""Uploads under an idempotency key, in every store: kept with the rows or not at all."""

from dataclasses import replace
from uuid import UUID

import numpy as np

from service.ledger.model.journal import UploadRecord
from service.ledger.model.rows import DatasetRecord
from service.ledger.ports.store import Store
from service.query.keys import Key
from tests.contracts.stores import dataset

CURATOR = UUID(int=3)
UPLOAD = UploadRecord(address=(CURATOR, "key 1"), digest=bytes(range(32)), report=b'{"rows":1}')


def keep(store: Store, record: DatasetRecord, upload: UploadRecord, *, is_committed: bool = True) -> None:
    """One individual, uploaded under the key."""
    with store.long_act(record.id) as act:
        slot = act.head.slots
        act.add_individuals(np.array([slot]), [Key(f"person {slot}")], np.array([9]))
        act.lock()
        act.journal("rows", {}, slots=slot + 1)
        act.keep_upload(upload)
        if is_committed:
            act.commit()


def found(store: Store, record: DatasetRecord, key: str = "key 1", principal: UUID = CURATOR) -> UploadRecord | None:
    """The upload under a key, as a snapshot and as a long act see it."""
    with store.transaction(record.id, lock=False) as transaction:
        seen = transaction.upload_at((principal, key))
    with store.long_act(record.id) as act:
        assert act.upload_at((principal, key)) == seen
    return seen


def test_an_upload_is_found_under_its_key_alone(store: Store, record: DatasetRecord) -> None:
    """Neither under another key, nor by another principal, nor in another dataset."""
    other = store.add_dataset(dataset("other"))
    assert found(store, record) is None
    keep(store, record, UPLOAD)
    assert found(store, record) == UPLOAD
    assert found(store, record, key="Key 1") is None
    assert found(store, record, principal=UUID(int=4)) is None
    assert found(store, other) is None


def test_an_upload_that_is_not_committed_is_not_found(store: Store, record: DatasetRecord) -> None:
    """The record goes with the rows."""
    keep(store, record, UPLOAD, is_committed=False)
    assert found(store, record) is None


def test_several_uploads_are_kept(store: Store, record: DatasetRecord) -> None:
    """Each under its own key."""
    second = replace(UPLOAD, address=(CURATOR, "key 2"), report=b"{}")
    keep(store, record, UPLOAD)
    keep(store, record, second)
    assert [found(store, record), found(store, record, key="key 2")] == [UPLOAD, second]
