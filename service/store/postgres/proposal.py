"""A proposal on Postgres: the assumption, the rows and the commit in one statement, whatever the size of the batch.

The statement locks the head's row and moves it, if everything that was assumed is so; all rows are joined to that one
row, so that there is nothing to insert when it did not move.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.errors import UniqueViolation
from psycopg.types.numeric import Int8

from service.store.postgres.rows import ANSWER_COLUMNS, ENTRY_COLUMNS, answer_row, entry_row
from service.store.postgres.transaction import UNITS_MAX, Connection
from service.workflows.ledger import LedgerEntry
from service.workflows.ports import AnswerRecord, Asked, CommitUnclear, Head, Known, Outdated

# How each column travels, in the order of ENTRY_COLUMNS and ANSWER_COLUMNS: whole numbers all alike, because a
# statement is prepared for the types that it is sent with, and the sum of a million charges as text.
_ENTRY_TYPES: Final = (
    "int8 uuid uuid text int8 bytea text float8 int8 int8 int8 int8 int8 bytea bytea int8 bytea int8 int8 text bytea"
    " timestamptz bytea bytea text"
).split()
_ANSWER_TYPES: Final = "uuid text bytea int8 uuid bytea timestamptz".split()
_SENT: Final[Mapping[str, Callable[[Any], object]]] = {"int8": Int8, "text": str}


def _unnested(types: Sequence[str]) -> str:
    return f"unnest({', '.join(f'%b::{kind}[]' for kind in types)})"


# The conditions see the database as it was when the statement began; whatever has come since has moved the head, at
# which Postgres looks again once it has the row's lock, or has taken a key, which cannot be taken twice.
_MOVED: Final = (
    "moved AS (UPDATE heads h SET seq = %b, hash = %b, worst_case_units = %b"
    " WHERE dataset_id = %b AND seq = %b AND hash = %b AND fence = %b AND epoch = %b AND data_version = %b"
    " AND NOT EXISTS (SELECT FROM answers a JOIN unnest(%b::uuid[], %b::text[]) AS asked (principal_id,"
    " idempotency_key) USING (principal_id, idempotency_key) WHERE a.dataset_id = h.dataset_id)"
    " AND NOT EXISTS (SELECT FROM ledger l WHERE l.dataset_id = h.dataset_id AND l.query_hash = ANY(%b::text[])"
    " AND l.epoch = h.epoch AND l.kind = 'query') RETURNING dataset_id)"
)
_ENTRIES: Final = (
    f"entries AS (INSERT INTO ledger (dataset_id, {ENTRY_COLUMNS})"
    f" SELECT dataset_id, {ENTRY_COLUMNS.replace('charged_units', 'charged_units::numeric')}"
    f" FROM moved, {_unnested(_ENTRY_TYPES)} AS sent ({ENTRY_COLUMNS}))"
)
_ANSWERS: Final = (
    f"replies AS (INSERT INTO answers (dataset_id, {ANSWER_COLUMNS})"
    f" SELECT dataset_id, {ANSWER_COLUMNS} FROM moved, {_unnested(_ANSWER_TYPES)} AS sent ({ANSWER_COLUMNS}))"
)
_WORST_CASES: Final = (
    "costs AS (INSERT INTO worst_cases (dataset_id, principal_id, units)"
    " SELECT dataset_id, principal_id, units FROM moved, unnest(%b::uuid[], %b::int8[]) AS sent (principal_id, units)"
    " ON CONFLICT (dataset_id, principal_id) DO UPDATE SET units = least(worst_cases.units + excluded.units, %b))"
)
PROPOSE: Final = f"WITH {_MOVED}, {_ENTRIES}, {_ANSWERS}, {_WORST_CASES} SELECT count(*) FROM moved"


class PostgresProposal:
    """The port's Proposal. Nothing is sent before `commit`."""

    def __init__(self, connection: Connection, dataset_id: int, head: Head, *, asked: Sequence[Asked]) -> None:
        """Assume the head."""
        self._connection, self._dataset_id, self._assumed, self._asked = connection, dataset_id, head, asked
        self._values: Sequence[object] = ()
        self.head, self.known = head, Known(answers={}, reusable={}, worst_cases={})

    def append(
        self, entries: Sequence[LedgerEntry], answers: Sequence[AnswerRecord], worst_cases: Mapping[UUID, int]
    ) -> None:
        last = entries[-1]
        self.head = replace(self.head, seq=last.seq, hash=last.hash, worst_case_units=last.worst_case_total_units)
        costs = (list(worst_cases), [Int8(units) for units in worst_cases.values()], Int8(UNITS_MAX))
        self._values = (
            *self._assumption(),
            *_columns(map(entry_row, entries), _ENTRY_TYPES),
            *_columns(map(answer_row, answers), _ANSWER_TYPES),
            *costs,
        )

    def commit(self) -> None:
        try:
            with _autocommit(self._connection):
                moved = self._connection.execute(PROPOSE, self._values).fetchall()[0][0]
        except UniqueViolation as refusal:
            raise Outdated from refusal
        except psycopg.Error as fault:
            raise CommitUnclear(type(fault).__name__) from fault
        if moved != 1:
            raise Outdated

    def _assumption(self) -> Sequence[object]:
        head, assumed = self.head, self._assumed
        moved = (Int8(head.seq), head.hash, Int8(head.worst_case_units), Int8(self._dataset_id))
        was = (assumed.seq, assumed.hash, assumed.fence, assumed.epoch, assumed.data_version)
        keys = ([each.address[0] for each in self._asked], [each.address[1] for each in self._asked])
        hashes = [each.query_hash for each in self._asked if each.query_hash is not None]
        return *moved, *(value if isinstance(value, bytes) else Int8(value) for value in was), *keys, hashes


@contextmanager
def _autocommit(connection: Connection) -> Iterator[None]:
    """A statement is a transaction: nothing need be sent before it and after it."""
    connection.autocommit = True
    try:
        yield
    finally:
        if not connection.closed:
            connection.autocommit = False


def _columns(rows: Iterable[Sequence[Any]], types: Sequence[str]) -> list[list[object]]:
    """Rows as columns, each value as it travels."""
    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    return [
        [None if value is None else _SENT[kind](value) for value in column] if kind in _SENT else list(column)
        for kind, column in zip(types, columns, strict=True)
    ]
