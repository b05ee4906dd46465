"""Tables beside the ledgers, on Postgres: principals, sign-ins, budget summaries and alarms, the proof of the pepper.

A start under another pepper is refused before anything is read or written under it: no key would open, no piece of a
ledger, and no erased individual be recognised, so that one who returns would have a budget anew.
"""

import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from service.store.postgres.sessions import SessionPool
from service.workflows.model.rows import PrincipalRecord
from service.workflows.ports.store import BudgetAlarm, SignIn, SummaryPoint

__all__ = ["PepperMismatch", "PostgresPrincipals", "PostgresSignIns", "PostgresSummaries", "check_pepper"]

_PRINCIPAL_NAMES: Final = tuple(each.name for each in fields(PrincipalRecord))
_PRINCIPAL_COLUMNS: Final = ", ".join(_PRINCIPAL_NAMES)
_INSERT_PRINCIPAL: Final = (
    f"INSERT INTO principals ({_PRINCIPAL_COLUMNS}) VALUES ({', '.join(['%s'] * len(_PRINCIPAL_NAMES))})"
)
_MAY_CHANGE: Final = ("name", "allowance_units", "key_hash", "organisation", "purpose", "expires_at")
_UPDATE: Final = (
    f"UPDATE principals SET {', '.join(f'{name} = %s' for name in _MAY_CHANGE)} WHERE id = %s AND revoked_at IS NULL"
)
_values: Final = attrgetter(*_PRINCIPAL_NAMES)
_changed_values: Final = attrgetter(*_MAY_CHANGE, "id")


class PostgresPrincipals:
    """The port's PrincipalTable."""

    def __init__(self, pool: SessionPool) -> None:
        self._pool = pool

    def add(self, records: Sequence[PrincipalRecord]) -> None:
        with self._pool.one() as session, session.cursor() as cursor:
            cursor.executemany(_INSERT_PRINCIPAL, [_values(record) for record in records])

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
        rows = self._pool.rows(f"SELECT {_PRINCIPAL_COLUMNS} FROM principals WHERE {condition}", values)
        return [_record_of(row) for row in rows]


def _record_of(row: Sequence[Any]) -> PrincipalRecord:
    values: list[Any] = [each.astimezone(UTC) if isinstance(each, datetime) else each for each in row]
    return PrincipalRecord(**dict(zip(_PRINCIPAL_NAMES, values, strict=True)))


_SIGN_IN_COLUMNS: Final = "token_hash, principal_id, key_hash, began_at, expires_at"


class PostgresSignIns:
    """The port's SignInTable."""

    def __init__(self, pool: SessionPool) -> None:
        self._pool = pool

    def add(self, sign_in: SignIn, *, now: datetime) -> None:
        values = [sign_in.token_hash, sign_in.principal_id, sign_in.key_hash, sign_in.began_at, sign_in.expires_at]
        self._pool.commit(f"INSERT INTO sign_ins ({_SIGN_IN_COLUMNS}) VALUES (%s, %s, %s, %s, %s)", values)
        self._pool.commit("DELETE FROM sign_ins WHERE expires_at <= %s", [now])

    def find(self, token_hash: bytes) -> SignIn | None:
        rows = self._pool.rows(f"SELECT {_SIGN_IN_COLUMNS} FROM sign_ins WHERE token_hash = %s", [token_hash])
        for found, principal_id, key_hash, began_at, expires_at in rows:
            return SignIn(
                token_hash=bytes(found),
                principal_id=principal_id,
                key_hash=bytes(key_hash),
                began_at=began_at.astimezone(UTC),
                expires_at=expires_at.astimezone(UTC),
            )
        return None

    def extend(self, token_hash: bytes, expires_at: datetime) -> None:
        self._pool.commit("UPDATE sign_ins SET expires_at = %s WHERE token_hash = %s", [expires_at, token_hash])

    def end(self, token_hash: bytes) -> None:
        self._pool.commit("DELETE FROM sign_ins WHERE token_hash = %s", [token_hash])


class PostgresSummaries:
    """The port's SummaryTable."""

    def __init__(self, pool: SessionPool) -> None:
        self._pool = pool

    def add_point(self, dataset_id: int, point: SummaryPoint) -> None:
        detail = {
            "individuals": point.individuals,
            "exhausted": point.exhausted,
            "paused": point.paused,
            "cannot_afford": point.cannot_afford,
            "quantiles": list(point.quantiles),
        }
        self._pool.commit(
            "INSERT INTO summary_points (dataset_id, seq, at, detail) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
            [dataset_id, point.seq, point.at, Jsonb(detail)],
        )

    def points(self, dataset_id: int) -> list[SummaryPoint]:
        rows = self._pool.rows(
            "SELECT seq, at, detail FROM summary_points WHERE dataset_id = %s ORDER BY seq", [dataset_id]
        )
        return [
            SummaryPoint(seq=seq, at=at.astimezone(UTC), **(detail | {"quantiles": tuple(detail["quantiles"])}))
            for seq, at, detail in rows
        ]

    def drop_points(self, dataset_id: int, seqs: Sequence[int]) -> None:
        self._pool.commit(
            "DELETE FROM summary_points WHERE dataset_id = %s AND seq = ANY(%s)", [dataset_id, list(seqs)]
        )

    def alarm(self, dataset_id: int) -> BudgetAlarm | None:
        rows = self._pool.rows("SELECT share, rang_seq FROM alarms WHERE dataset_id = %s", [dataset_id])
        return BudgetAlarm(share=rows[0][0], rang_seq=rows[0][1]) if rows else None

    def set_alarm(self, dataset_id: int, alarm: BudgetAlarm | None) -> None:
        if alarm is None:
            self._pool.commit("DELETE FROM alarms WHERE dataset_id = %s", [dataset_id])
            return
        self._pool.commit(
            "INSERT INTO alarms (dataset_id, share, rang_seq) VALUES (%s, %s, %s)"
            " ON CONFLICT (dataset_id) DO UPDATE SET share = excluded.share, rang_seq = excluded.rang_seq",
            [dataset_id, alarm.share, alarm.rang_seq],
        )


_SALT_BYTES: Final = 32
_PROOF: Final = "SELECT salt, proof FROM pepper"
_KEEP: Final = "INSERT INTO pepper (salt, proof) VALUES (%s, %s) ON CONFLICT DO NOTHING"


class PepperMismatch(Exception):
    """This pepper is not the one that the database was begun with."""


def check_pepper(pool: SessionPool, proof_of: Callable[[bytes], bytes]) -> None:
    """Raise PepperMismatch unless `proof_of` a salt is the proof that is kept; keep it at a database's first start."""
    if not pool.rows(_PROOF, []):
        salt = secrets.token_bytes(_SALT_BYTES)
        pool.commit(_KEEP, [salt, proof_of(salt)])
    ((salt, proof),) = pool.rows(_PROOF, [])  # another replica's, if that was quicker
    if proof_of(bytes(salt)) != bytes(proof):
        raise PepperMismatch(
            "the pepper (SPARING_PEPPER, or the file pepper in the home) is not the one that this database was begun"
            " with: put that one back"
        )
