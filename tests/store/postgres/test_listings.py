"""Accounts and receipts read as much of each entry, whichever individuals it touched."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from psycopg import sql

from service.ledger.model.pieces import CONTENT_BYTES_MAX
from service.query.keys import Key
from service.store.postgres.listings import OWN_SINCE
from service.store.postgres.rows import SEAL_BYTES
from service.store.postgres.transaction import PostgresTransaction
from tests.contracts.stores import answer, dataset, open_store, priced_entry


def test_an_account_reads_as_much_of_each_entry(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many others an entry touched, and whether it touched this individual at all."""
    found, real = list[int](), PostgresTransaction._rows

    def rows(self: PostgresTransaction, statement: str | sql.Composed, values: Sequence[object]) -> list[Any]:
        read = real(self, statement, values)
        found.extend(len(row[-1]) for row in read if statement == OWN_SINCE)
        return read

    monkeypatch.setattr(PostgresTransaction, "_rows", rows)
    with open_store("postgres", database_url) as store:
        record = store.add_dataset(dataset())
        with store.transaction(record.id, lock=True) as transaction:
            transaction.add_individuals(np.array([0]), [Key("ann")], np.array([9]))
            transaction.journal("rows", {}, slots=20_000)
            transaction.commit()
        for charged in ({}, {0: 1}, {7: 1}, {19_999: 2}, dict.fromkeys(range(20_000), 3)):
            with store.transaction(record.id, lock=True) as transaction:
                made = priced_entry(transaction.head, charged, slots=20_000)
                transaction.append([made], [answer(made, f"key-{made.seq}")], {})
                transaction.commit()
        with store.transaction(record.id, lock=False) as transaction:
            assert transaction.account_of(0).queries_charged == 2
    assert found == [CONTENT_BYTES_MAX + SEAL_BYTES] * 5
