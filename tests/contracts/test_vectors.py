"""Vectors in each store: they read back as they were written, are corrected, and leave nothing when they go."""

from dataclasses import replace
from typing import Any, LiteralString

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray
from psycopg import sql

from service.ledger.model.rows import ColumnCodes, DatasetRecord
from service.ledger.ports.store import Store
from service.query.keys import Key
from service.query.schema import Schema
from service.query.vector_columns import vectors_of
from service.store.postgres import data_tables
from tests.contracts.stores import dataset, open_store
from tests.digests import with_digests

COLUMNS: dict[str, Any] = {
    "pixels": {"type": "vector", "length": 5, "lower": 0, "upper": 255},
    "age": {"type": "integer", "lower": 0, "upper": 120},
    "wide": {"type": "vector", "length": 3000, "lower": -300, "upper": 300},
}
SCHEMA = Schema.model_validate({"people": {"kind": "individuals", "key": "id", "columns": COLUMNS}})
COUNT = 700


def codes_of(count: int, seed: int = 3) -> dict[str, NDArray[np.unsignedinteger]]:
    """Records: of every third individual one vector is missing, and of every seventh the other."""
    source = np.random.default_rng(seed)
    codes = with_digests({"age": np.arange(count, dtype=np.uint8) % 121}, range(count))
    for name, coding in vectors_of(SCHEMA.tables["people"].columns).items():
        rows = coding.missing(count)
        rows[:, 0] = np.arange(count) % (3 if name == "pixels" else 7) != 0
        numbers = source.integers(0, coding.span, size=(count, coding.length), endpoint=True)
        rows[:, 1:] = numbers * rows[:, :1]
        codes[name] = rows
    return codes


def filled(store: Store) -> tuple[DatasetRecord, ColumnCodes]:
    """A dataset with records of COUNT individuals, in an order of slots that is not theirs."""
    record, codes = store.add_dataset(replace(dataset(), schema=SCHEMA)), codes_of(COUNT)
    slots = np.random.default_rng(1).permutation(COUNT)
    with store.transaction(record.id, lock=True) as transaction:
        transaction.add_individuals(slots, [Key(f"p{slot}") for slot in slots], np.full(COUNT, 9))
        transaction.add_records("people", slots, {name: each[slots] for name, each in codes.items()})
        transaction.journal("rows", {}, slots=COUNT)
        transaction.commit()
    return record, codes


def assert_holds(
    store: Store, record: DatasetRecord, codes: ColumnCodes, slots: list[int], of: list[int] | None
) -> None:
    """The records of these slots are there, code by code."""
    with store.transaction(record.id, lock=False) as transaction:
        found_slots, found = transaction.records("people", of=None if of is None else np.array(of, dtype=np.int64))
    order = np.argsort(found_slots)
    assert found_slots[order].tolist() == slots
    for name, expected in codes.items():
        assert found[name].dtype == expected.dtype
        assert np.array_equal(found[name][order], expected[slots]), name


def test_vectors_read_back(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """All, one, some, and none of them; in one piece and in many."""
    record, codes = filled(store)
    everybody = list(range(COUNT))
    for most in (data_tables.VECTOR_BYTES_AT_ONCE, 2**18, 1):
        monkeypatch.setattr(data_tables, "VECTOR_BYTES_AT_ONCE", most)
        assert_holds(store, record, codes, everybody, None)
        for of in ([3], [0, 1, 2, 699], []):
            assert_holds(store, record, codes, of, of)


def test_a_corrected_record_replaces_its_vectors(store: Store) -> None:
    """A correction deletes its row and adds another."""
    record, codes = filled(store)
    other = codes_of(COUNT, seed=4)
    with store.transaction(record.id, lock=True) as transaction:
        transaction.delete_records(5, table="people")
        transaction.add_records("people", np.array([5]), {name: each[5:6] for name, each in other.items()})
        transaction.commit()
    expected = {name: each.copy() for name, each in codes.items()}
    for name, each in other.items():
        expected[name][5] = each[5]
    assert_holds(store, record, expected, list(range(COUNT)), None)


def test_a_column_of_vectors_is_added(store: Store) -> None:
    """The individuals that were there before have none in it."""
    record, codes = filled(store)
    more = {"more": {"type": "vector", "length": 2, "lower": 0, "upper": 9}}
    schema = Schema.model_validate({"people": {"kind": "individuals", "key": "id", "columns": COLUMNS | more}})
    with store.transaction(record.id, lock=True) as transaction:
        transaction.extend_tables(schema)
        transaction.set_registration(replace(record, schema=schema, version=2))
        transaction.commit()
    added = {"more": np.zeros((COUNT, 3), dtype=np.uint8)}
    assert_holds(store, record, {**codes, **added}, list(range(COUNT)), None)


def test_an_erased_individual_leaves_no_vector(store: Store) -> None:
    """The others keep theirs."""
    record, codes = filled(store)
    with store.transaction(record.id, lock=True) as transaction:
        transaction.erase(4, bytes(32))
        transaction.commit()
    assert_holds(store, record, codes, [slot for slot in range(COUNT) if slot != 4], None)
    assert_holds(store, record, codes, [], [4])


def test_vectors_are_stored_as_they_are_and_go_with_an_erasure(database_url: str) -> None:
    """Uncompressed, and outside their rows where they are long; the erased one's is not left behind there."""
    with open_store("postgres", database_url) as store, psycopg.connect(database_url, autocommit=True) as connection:
        record, codes = filled(store)
        table = sql.Identifier("records", data_tables.records_tables(record.id, SCHEMA)["people"].name)

        def asked(statement: LiteralString, *values: sql.Composable) -> list[Any]:
            return [value for (value,) in connection.execute(sql.SQL(statement).format(*values)).fetchall()]

        place = sql.Literal(table.as_string())
        strategy: LiteralString = (
            "SELECT attstorage::text FROM pg_attribute WHERE attrelid = {}::regclass AND attname = {}"
        )
        assert [asked(strategy, place, sql.Literal(column)) for column in ("pixels", "wide")] == [["e"], ["e"]]
        kept = int(codes["wide"][:, 0].sum())
        assert asked("SELECT sum(pg_column_size(wide)) FROM {}", table) == [kept * 6000]
        (outside,) = asked(
            "SELECT relname FROM pg_class WHERE oid = (SELECT reltoastrelid FROM pg_class WHERE oid = {}::regclass)",
            place,
        )
        chunks: LiteralString = "SELECT count(DISTINCT chunk_id) FROM {}"
        assert asked(chunks, sql.Identifier("pg_toast", outside)) == [kept]
        with store.transaction(record.id, lock=True) as transaction:
            transaction.erase(1, bytes(32))
            transaction.commit()
        assert asked(chunks, sql.Identifier("pg_toast", outside)) == [kept - 1]
