"""The table of principals on Postgres."""

from collections.abc import Collection, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from service.store.postgres.pool import SessionPool
from service.workflows.model.rows import PrincipalRecord

_NAMES: Final = tuple(each.name for each in fields(PrincipalRecord))
_COLUMNS: Final = ", ".join(_NAMES)
_INSERT: Final = f"INSERT INTO principals ({_COLUMNS}) VALUES ({', '.join(['%s'] * len(_NAMES))})"
_MAY_CHANGE: Final = ("name", "allowance_units", "key_hash", "organisation", "purpose", "expires_at")
_UPDATE: Final = (
    f"UPDATE principals SET {', '.join(f'{name} = %s' for name in _MAY_CHANGE)} WHERE id = %s AND revoked_at IS NULL"
)
_values: Final = attrgetter(*_NAMES)
_changed_values: Final = attrgetter(*_MAY_CHANGE, "id")


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
        changed = self._pool.commit(_UPDATE, list(_changed_values(record)))
        return changed == 1

    def revoke(self, principal_id: UUID, at: datetime) -> bool:
        changed = self._pool.commit(
            "UPDATE principals SET revoked_at = %s WHERE id = %s AND revoked_at IS NULL", [at, principal_id]
        )
        return changed == 1

    def _read(self, condition: str, values: Sequence[object]) -> list[PrincipalRecord]:
        rows = self._pool.rows(f"SELECT {_COLUMNS} FROM principals WHERE {condition}", values)
        return [_record_of(row) for row in rows]


def _record_of(row: Sequence[Any]) -> PrincipalRecord:
    values: list[Any] = [each.astimezone(UTC) if isinstance(each, datetime) else each for each in row]
    return PrincipalRecord(**dict(zip(_NAMES, values, strict=True)))
