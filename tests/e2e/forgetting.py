"""A search for an individual in all that a database holds: rows, statistics, sealed pieces and files."""

import struct
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from service.ledger.model.pieces import WHOLE
from service.store.postgres.rows import LedgerSeal
from tests.sealed_accounts import charged_in

Connection = psycopg.Connection[tuple[Any, ...]]
Needles = dict[str, tuple[bytes, ...]]
"""By name, every form in which something can stand."""

TABLES = "SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('public', 'records') ORDER BY 1, 2"
SEALED = """
SELECT l.seq, l.sigma, l.grid_log2, l.salt, p.number, coalesce(l.piece, p.sealed)
FROM ledger l LEFT JOIN pieces p USING (dataset_id, seq)
WHERE l.format = 2
"""
FILES = (
    "SELECT current_setting('data_directory') || '/base/' || oid FROM pg_database WHERE datname = current_database()"
)


def of_text(text: str) -> tuple[bytes, ...]:
    """A key."""
    return (text.encode(),)


def of_integer(number: int) -> tuple[bytes, ...]:
    """In decimal, and as eight bytes in either order."""
    return (str(number).encode(), number.to_bytes(8, "big"), number.to_bytes(8, "little"))


def of_real(number: float) -> tuple[bytes, ...]:
    """In decimal, and as a double in either order."""
    return (repr(number).encode(), struct.pack(">d", number), struct.pack("<d", number))


def found(needles: Needles, connection: Connection, ledger_key: bytes) -> dict[str, set[str]]:
    """By name of what was searched for, the places where it is; what is nowhere is not among them."""
    places: dict[str, set[str]] = {}
    for place, content in (*_dumped(connection), *_opened(connection, LedgerSeal(ledger_key))):
        for name, forms in needles.items():
            if any(form in content for form in forms):
                places.setdefault(name, set()).add(place)
    return places


def found_in_files(needles: Needles, connection: Connection) -> set[str]:
    """The names of what is in the database's own files, in dead pages too."""
    connection.execute("CHECKPOINT")
    ((directory,),) = connection.execute(FILES).fetchall()
    contents = [path.read_bytes() for path in Path(directory).iterdir()]
    return {name for name, forms in needles.items() if any(form in content for form in forms for content in contents)}


def sealed_slices(connection: Connection) -> Needles:
    """The bytes by which each piece, as it is stored now, would be found again."""
    rows = connection.execute(SEALED).fetchall()
    return {
        f"piece {WHOLE if number is None else number} of row {seq}": (bytes(sealed)[20:52],)
        for seq, _, _, _, number, sealed in rows
    }


def _dumped(connection: Connection) -> Iterator[tuple[str, bytes]]:
    """Each table as text and in binary, and the statistics about all of them."""
    for schema, table in connection.execute(TABLES).fetchall():
        for form in ("text", "binary"):
            yield table, _copied(connection, sql.Identifier(schema, table), form)
    yield "pg_statistic", _copied(connection, sql.Identifier("pg_statistic"), "text")


def _copied(connection: Connection, table: sql.Composable, form: str) -> bytes:
    statement = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT (FORMAT {})").format(table, sql.SQL(form))
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        return b"".join(bytes(part) for part in copy)


def _opened(connection: Connection, seal: LedgerSeal) -> Iterator[tuple[str, bytes]]:
    """Each sealed piece, and the charges that follow from it."""
    for seq, sigma, grid_log2, salt, number, sealed in connection.execute(SEALED).fetchall():
        piece = seal.open(bytes(salt), WHOLE if number is None else number, bytes(sealed))
        charges = charged_in(piece.quantities(), Fraction(sigma) / Fraction(2) ** grid_log2)
        yield f"row {seq}", piece.content
        yield f"row {seq}", " ".join(map(str, charges.values())).encode()
