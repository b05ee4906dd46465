"""Every type of column goes into Postgres and comes back as the same codes, its ends and NULL among them."""

from dataclasses import replace

import numpy as np
import pytest

from service.query.columns import stored_codings
from service.query.keys import Key
from service.query.schema import Schema
from service.store.postgres.data_tables import BLOCK_ROWS_MAX, VECTOR_BYTES_AT_ONCE, records_tables
from service.store.postgres.store import PostgresStore
from tests.contracts.stores import dataset, open_store

COLUMNS = {
    "country": {"type": "category", "categories": ["NO", "SE"]},
    "item": {"type": "category", "size": 2**31},
    "age": {"type": "integer", "lower": -5, "upper": 2**53 - 1},
    "spend": {"type": "real", "lower": -2.5, "upper": 500},
    "member": {"type": "boolean"},
    "born": {"type": "date", "lower": "0001-01-01", "upper": "9999-12-31"},
    "seen": {"type": "datetime", "lower": "0001-01-01T00:00:00Z", "upper": "9999-12-31T23:59:59Z"},
}


def test_codes_survive_the_database(database_url: str) -> None:
    """The lowest, the highest, and NULL, of the widest domains."""
    schema = Schema.model_validate({"people": {"kind": "individuals", "key": "id", "columns": COLUMNS}})
    codings = stored_codings(schema)["people"]
    codes = {
        name: np.array([0, coding.span, coding.null_code, coding.span // 2], dtype=coding.dtype)
        for name, coding in codings.items()
    }
    with open_store("postgres", database_url) as store:
        assert isinstance(store, PostgresStore)
        record = store.add_dataset(replace(dataset(), schema=schema))
        with store.long_act(record.id) as act:
            slots = np.arange(4)
            act.add_individuals(slots, list(map(Key, "abcd")), np.full(4, 9))
            act.add_records("people", slots, codes)
            act.lock()
            act.journal("rows", {}, slots=4)
            act.commit()
        with store.transaction(record.id, lock=False) as transaction:
            for of in (None, np.array([0, 1, 2, 3])):
                found_slots, found = transaction.records("people", of=of)
                order = np.argsort(found_slots)
                for name, expected in codes.items():
                    assert found[name][order].tolist() == expected.tolist(), name


@pytest.mark.parametrize(("length", "upper", "pieces"), [(784, 255, 6), (3969, 255, 28), (2**16, 2**16 - 1, 1000)])
def test_vectors_are_read_in_pieces_of_their_own_bytes(length: int, upper: int, pieces: int) -> None:
    """A thousand blocks are full: no statement packs more than 32 MiB, or one block."""
    column = {"type": "vector", "length": length, "lower": 0, "upper": upper}
    schema = Schema.model_validate({"people": {"kind": "individuals", "key": "id", "columns": {"pixels": column}}})
    table = records_tables(1, schema)["people"]
    assert len(table.selects(1000)) == pieces
    assert table.blocks_at_once * BLOCK_ROWS_MAX * table.vector_bytes <= VECTOR_BYTES_AT_ONCE or pieces == 1000
    assert table.slots_at_once * table.vector_bytes <= VECTOR_BYTES_AT_ONCE
