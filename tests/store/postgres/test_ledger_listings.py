"""The charge of one slot by an entry, in SQL: the same as decoding all of its charges."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from service.store.postgres.connection import Connection
from service.store.postgres.ledger_listings import OWN_SINCE, PADDING
from service.store.postgres.transaction import PostgresTransaction
from service.workflows.model.ledger_entry import EncodedCharges
from tests.contracts.stores import answer, dataset, open_store, second_entry

pytestmark = pytest.mark.slow

CHARGE_OF = (
    "SELECT slot, outcome, units FROM generate_series(0, %s) AS slot"
    " CROSS JOIN LATERAL charge_of(slot, %s::smallint, %s, %s, %s, %s) ORDER BY slot"
)


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    """As the service's role."""
    with psycopg.connect(database_url) as opened:
        opened.execute("SET ROLE sparing_api")
        yield opened


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    people=st.dictionaries(st.integers(0, 700), st.booleans(), max_size=60),
    base=st.sampled_from([0, 1, 7, 8, 600]),
    dense=st.booleans(),
    uniform=st.booleans(),
    is_older=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_every_slot_reads_as_decoding_says(
    connection: Connection, people: dict[int, bool], base: int, dense: bool, uniform: bool, is_older: bool, seed: int
) -> None:
    """Lists and bitmaps, one charge for all or each its own, with and without slots left out; and none at all."""
    drawn = {base + slot // (8 if dense else 1): is_active for slot, is_active in people.items()}
    touched = np.array(sorted(drawn), dtype=np.int64)
    active = np.array([drawn[slot] for slot in touched.tolist()], dtype=np.bool_)
    charges = np.random.default_rng(seed).integers(1, 2**62, np.count_nonzero(active))
    charges = np.broadcast_to(charges[:1], charges.shape) if uniform and charges.size else charges
    last = int(touched[-1]) + 20 if touched.size else 20
    encoded = EncodedCharges.of(
        touched=touched, active=active, charges=charges, slots=last - 10, one_charge=uniform and charges.size > 0
    )
    if is_older and active.all():
        encoded = replace(encoded, active=None)
    values = [last, encoded.form, encoded.slots, encoded.active, encoded.charge_units, encoded.charges]

    charged, units, left_out = (part.tolist() for part in encoded.decode())
    paid = dict(zip(charged, units, strict=True))
    expected = [
        (slot, "charged" if slot in paid else "left_out" if slot in left_out else "untouched", paid.get(slot, 0))
        for slot in range(last + 1)
    ]
    assert connection.execute(CHARGE_OF, values).fetchall() == expected


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
            transaction.add_individuals(np.array([0]), ["ann"], np.array([9]))
            transaction.journal("rows", {}, slots=20_000)
            transaction.commit()
        for charged in ({}, {0: 1}, {7: 1}, {19_999: 2}, dict.fromkeys(range(20_000), 3)):
            with store.transaction(record.id, lock=True) as transaction:
                made = second_entry(transaction.head, charged, slots=20_000)
                transaction.append([made], [answer(made, f"key-{made.seq}")], {})
                transaction.commit()
        with store.transaction(record.id, lock=False) as transaction:
            assert transaction.account_of(0).queries_charged == 2
    assert found == [len(PADDING)] * 5
