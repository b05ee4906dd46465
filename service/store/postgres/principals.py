"""The table of principals on Postgres."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from service.store.postgres.pool import SessionPool
from service.workflows.model.rows import PrincipalRecord

_COLUMNS: Final = (
    "id, role, name, dataset, individual, allowance_units, key_hash, created_at, revoked_at,"
    " organisation, purpose, expires_at"
)
_INSERT: Final = f"INSERT INTO principals ({_COLUMNS}) VALUES ({', '.join(['%s'] * (_COLUMNS.count(',') + 1))})"


class PostgresPrincipals:
    """The port's PrincipalTable."""

    def __init__(self, pool: SessionPool) -> None:
        self._pool = pool

    def add(self, records: Sequence[PrincipalRecord]) -> None:
        with self._pool.one() as session, session.cursor() as cursor:
            cursor.executemany(_INSERT, [_values(record) for record in records])

    def find(self, principal_id: UUID) -> PrincipalRecord | None:
        return next(iter(self._read("id = %s", [principal_id])), None)

    def some(self, principal_ids: Collection[UUID]) -> list[PrincipalRecord]:
        return self._read("id = ANY(%s)", [list(principal_ids)])

    def listed(self, *, after: UUID | None, limit: int) -> list[PrincipalRecord]:
        return self._read("%s::uuid IS NULL OR id > %s ORDER BY id LIMIT %s", [after, after, limit])

    def analysts_of(self, dataset: str) -> list[PrincipalRecord]:
        return self._read("role = 'analyst' AND (dataset IS NULL OR dataset = %s) ORDER BY name, id", [dataset])

    def change(self, record: PrincipalRecord) -> bool:
        changed = self._pool.commit(
            "UPDATE principals SET name = %s, allowance_units = %s, key_hash = %s, organisation = %s, purpose = %s,"
            " expires_at = %s WHERE id = %s AND revoked_at IS NULL",
            [
                record.name,
                record.allowance_units,
                record.key_hash,
                record.organisation,
                record.purpose,
                record.expires_at,
                record.id,
            ],
        )
        return changed == 1

    def revoke(self, principal_id: UUID, at: datetime) -> bool:
        changed = self._pool.commit(
            "UPDATE principals SET revoked_at = %s WHERE id = %s AND revoked_at IS NULL", [at, principal_id]
        )
        return changed == 1

    def _read(self, condition: str, values: Sequence[object]) -> list[PrincipalRecord]:
        rows = self._pool.rows(f"SELECT {_COLUMNS} FROM principals WHERE {condition}", values)
        return [_record_of(row) for row in rows]


def _values(record: PrincipalRecord) -> tuple[object, ...]:
    return (
        record.id,
        record.role,
        record.name,
        record.dataset,
        record.individual,
        record.allowance_units,
        record.key_hash,
        record.created_at,
        record.revoked_at,
        record.organisation,
        record.purpose,
        record.expires_at,
    )


def _record_of(row: Sequence[Any]) -> PrincipalRecord:
    return PrincipalRecord(
        id=row[0],
        role=row[1],
        name=row[2],
        dataset=row[3],
        individual=row[4],
        allowance_units=row[5],
        key_hash=bytes(row[6]),
        created_at=_utc(row[7]),
        revoked_at=None if row[8] is None else _utc(row[8]),
        organisation=row[9],
        purpose=row[10],
        expires_at=None if row[11] is None else _utc(row[11]),
    )


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC)
