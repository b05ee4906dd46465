"""The list of an entry's fields is complete: a row lacks nothing of an entry and repeats nothing."""

from dataclasses import fields, replace

from sqlalchemy.dialects import postgresql

from migrations.tables import LEDGER
from service.ledger.model.entry_fields import ENTRY_FIELDS, entry_from, entry_values
from service.ledger.model.ledger_entry import LedgerEntry, PublicEntry
from service.ledger.model.rows import Head
from tests.contracts.stores import priced_entry

HEAD = Head(seq=0, hash=bytes(32), epoch=1, fence=1, data_version=0, slots=9, worst_case_units=0, checkpoint_seq=0)
SQL_NAMES = {
    "SMALLINT": "int2",
    "INTEGER": "int4",
    "BIGINT": "int8",
    "DOUBLE PRECISION": "float8",
    "NUMERIC": "numeric",
    "TEXT": "text",
    "UUID": "uuid",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "BYTEA": "bytea",
}


def test_every_attribute_of_an_entry_is_listed_once() -> None:
    """Pieces are no field, and a row does not say that it is pruned."""
    own = {each.name for each in fields(LedgerEntry)} - {"pieces", "is_pruned"}
    assert sorted(each.name for each in ENTRY_FIELDS) == sorted(own)


def test_the_columns_are_those_of_the_table() -> None:
    """By name, type, and nullability."""
    listed = {each.name: (each.type, False) for each in ENTRY_FIELDS}
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    columns = {
        column.name: (SQL_NAMES[column.type.compile(dialect)], column.nullable)
        for column in LEDGER.columns
        if column.name not in {"dataset_id", "piece", "first_digest"}  # pieces are not a field
    }
    assert listed == columns


def test_an_entry_is_made_again_from_its_values() -> None:
    """All but its pieces."""
    made = priced_entry(HEAD, {0: 1, 3: 2})
    assert replace(entry_from(entry_values(made)), pieces=made.pieces) == made


def test_no_public_field_tells_charges() -> None:
    """By the names that analysts' statements read."""
    assert not {each.name for each in ENTRY_FIELDS if each.tells_charges} & {each.name for each in fields(PublicEntry)}
