"""A proposal on Postgres: the assumption, the rows and the commit in one journey.

The first statement locks the head's row and moves it, if everything that was assumed is so; otherwise it divides by
zero, which aborts the transaction in the server, so that the rows and the commit behind it come to nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

import psycopg
from psycopg.errors import DivisionByZero, UniqueViolation

from service.store.postgres.rows import answer_row, entry_row
from service.store.postgres.transaction import ADD_WORST_CASE, INSERT_ANSWER, INSERT_ENTRY, UNITS_MAX, Connection
from service.workflows.ledger import LedgerEntry
from service.workflows.ports import AnswerRecord, Asked, CommitUnclear, Head, Known, Outdated

# The conditions see the database as it was when the statement began; whatever has come since has moved the head, for
# which Postgres looks again once it has the row's lock, or has taken a key, which cannot be taken twice.
MOVE_HEAD: Final = (
    "WITH moved AS (UPDATE heads h SET seq = %s, hash = %s, worst_case_units = %s"
    " WHERE dataset_id = %s AND seq = %s AND hash = %s AND fence = %s AND epoch = %s AND data_version = %s"
    " AND NOT EXISTS (SELECT FROM answers a JOIN unnest(%s::uuid[], %s::text[]) AS asked (principal_id,"
    " idempotency_key) USING (principal_id, idempotency_key) WHERE a.dataset_id = h.dataset_id)"
    " AND NOT EXISTS (SELECT FROM ledger l WHERE l.dataset_id = h.dataset_id AND l.query_hash = ANY(%s::text[])"
    " AND l.epoch = h.epoch AND l.kind = 'query') RETURNING 1) SELECT 1 / count(*) FROM moved"
)


class PostgresProposal:
    """The port's Proposal. Nothing is sent before `commit`."""

    def __init__(self, connection: Connection, dataset_id: int, head: Head, *, asked: Sequence[Asked]) -> None:
        """Assume the head."""
        self._connection, self._dataset_id, self._assumed, self._asked = connection, dataset_id, head, asked
        self._rows: list[tuple[str, Sequence[object]]] = []
        self.head, self.known = head, Known(answers={}, reusable={}, worst_cases={})

    def append(
        self, entries: Sequence[LedgerEntry], answers: Sequence[AnswerRecord], worst_cases: Mapping[UUID, int]
    ) -> None:
        dataset, last = self._dataset_id, entries[-1]
        self.head = replace(self.head, seq=last.seq, hash=last.hash, worst_case_units=last.worst_case_total_units)
        self._rows = [
            (MOVE_HEAD, self._assumption()),
            *((INSERT_ENTRY, (dataset, *entry_row(entry))) for entry in entries),
            *((INSERT_ANSWER, (dataset, *answer_row(answer))) for answer in answers),
            *((ADD_WORST_CASE, (dataset, who, units, UNITS_MAX)) for who, units in worst_cases.items()),
        ]

    def commit(self) -> None:
        try:
            with self._connection.pipeline(), self._connection.cursor() as cursor:
                for statement, values in self._rows:
                    cursor.execute(statement, values)
                self._connection.commit()
        except (DivisionByZero, UniqueViolation) as refusal:
            raise Outdated from refusal
        except psycopg.Error as fault:
            raise CommitUnclear(type(fault).__name__) from fault

    def _assumption(self) -> Sequence[object]:
        head, assumed = self.head, self._assumed
        moved = (head.seq, head.hash, head.worst_case_units, self._dataset_id)
        was = (assumed.seq, assumed.hash, assumed.fence, assumed.epoch, assumed.data_version)
        keys = ([each.address[0] for each in self._asked], [each.address[1] for each in self._asked])
        return *moved, *was, *keys, [each.query_hash for each in self._asked if each.query_hash is not None]
