"""Tables beside the ledgers, on Postgres: principals, sign-ins, budget summaries and alarms, the proof of the pepper.

A start under another pepper is refused before anything is read or written under it. Under another pepper no key and no
piece of a ledger would open. No erased individual would be recognised, so that one who returns would get its budget
anew.
"""

import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from operator import attrgetter
from typing import Final
from uuid import UUID

from psycopg.types.json import Jsonb

from service.ledger.model.rows import EVERY_PRINCIPAL, PrincipalFilter, PrincipalRecord
from service.ledger.ports.store import BudgetAlarm, SignIn, SummaryPoint
from service.store.postgres.listings import escaped
from service.store.postgres.rows import by_name, columns_of, insertion
from service.store.postgres.sessions import SessionPool

_PRINCIPAL_COLUMNS: Final = columns_of(PrincipalRecord)
_SIGN_IN_COLUMNS: Final = columns_of(SignIn)
_ADDED_AT_ONCE: Final = 1000
_MAY_CHANGE: Final = ("name", "allowance_units", "key_hash", "organisation", "purpose", "expires_at")
_UPDATE: Final = (
    f"UPDATE principals SET {', '.join(f'{name} = %s' for name in _MAY_CHANGE)} WHERE id = %s AND revoked_at IS NULL"
)
_REBIND: Final = "SELECT rebind_principal(%s, %s, %s, %s, %s, %s, %s, %s, %s)"
_values: Final = attrgetter(*_PRINCIPAL_COLUMNS.split(", "))
_sign_in_values: Final = attrgetter(*_SIGN_IN_COLUMNS.split(", "))
_changed_values: Final = attrgetter(*_MAY_CHANGE, "id")
_rebound_values: Final = attrgetter(
    "id", "role", "dataset", "individual", "name", "allowance_units", "organisation", "purpose", "expires_at"
)


_LISTED: Final = (
    "(%s::uuid IS NULL OR id > %s) AND (%s::uuid IS NULL OR id <= %s)"
    " AND (%s::text IS NULL OR role = %s) AND (%s::text IS NULL OR dataset = %s)"
    " AND concat_ws(' ', name, role, dataset, individual, organisation) ILIKE ALL (%s::text[]) ORDER BY id LIMIT %s"
)
_REACH: Final = "SELECT id FROM principals WHERE (%s::uuid IS NULL OR id > %s) ORDER BY id OFFSET %s LIMIT 1"


class PostgresPrincipals:
    """The port's PrincipalTable."""

    def __init__(self, pool: SessionPool) -> None:
        self._pool = pool

    def add(self, records: Sequence[PrincipalRecord]) -> None:
        with self._pool.changing() as session, session.cursor() as cursor:
            for begin in range(0, len(records), _ADDED_AT_ONCE):  # one transaction, and never all of it in flight
                piece = records[begin : begin + _ADDED_AT_ONCE]
                cursor.executemany(insertion("principals", _PRINCIPAL_COLUMNS), [_values(record) for record in piece])

    def find(self, principal_id: UUID) -> PrincipalRecord | None:
        return next(iter(self._read("id = %s", [principal_id])), None)

    def some(self, principal_ids: Collection[UUID]) -> list[PrincipalRecord]:
        return self._read("id = ANY(%s)", [list(principal_ids)])

    def recognised(self, principal_ids: Collection[UUID]) -> list[PrincipalRecord]:
        return self._read("id = ANY(%s)", [list(principal_ids)], is_apart=True)

    def listed(
        self, *, after: UUID | None, limit: int, only: PrincipalFilter = EVERY_PRINCIPAL, last: UUID | None = None
    ) -> list[PrincipalRecord]:
        patterns = [f"%{escaped(word)}%" for word in only.words]
        place = [after, after, last, last]
        return self._read(_LISTED, [*place, only.role, only.role, only.dataset, only.dataset, patterns, limit])

    def reach(self, *, after: UUID | None, limit: int) -> UUID | None:
        rows = self._pool.rows(_REACH, [after, after, limit - 1])
        return rows[0][0] if rows else None

    def analysts_of(self, dataset: str) -> list[PrincipalRecord]:
        return self._read("role = 'analyst' AND (dataset IS NULL OR dataset = %s) ORDER BY name, id", [dataset])

    def change(self, record: PrincipalRecord) -> bool:
        changed = self._pool.commit(_UPDATE, list(_changed_values(record)))
        return changed == 1

    def rebind(self, record: PrincipalRecord) -> bool:
        with self._pool.changing() as session:
            return session.execute(_REBIND, _rebound_values(record)).fetchone() == (True,)

    def revoke(self, principal_id: UUID, at: datetime) -> bool:
        changed = self._pool.commit(
            "UPDATE principals SET revoked_at = %s WHERE id = %s AND revoked_at IS NULL", [at, principal_id]
        )
        return changed == 1

    def _read(self, condition: str, values: Sequence[object], *, is_apart: bool = False) -> list[PrincipalRecord]:
        statement = f"SELECT {_PRINCIPAL_COLUMNS} FROM principals WHERE {condition}"
        rows = self._pool.rows(statement, values, is_apart=is_apart)
        return [PrincipalRecord(**by_name(_PRINCIPAL_COLUMNS, row)) for row in rows]


class PostgresSignIns:
    """The port's SignInTable."""

    def __init__(self, pool: SessionPool) -> None:
        self._pool = pool

    def add(self, sign_in: SignIn, *, now: datetime) -> None:
        self._pool.commit(insertion("sign_ins", _SIGN_IN_COLUMNS), _sign_in_values(sign_in))
        self._pool.commit("DELETE FROM sign_ins WHERE expires_at <= %s", [now])

    def some(self, token_hashes: Collection[bytes]) -> list[SignIn]:
        statement = f"SELECT {_SIGN_IN_COLUMNS} FROM sign_ins WHERE token_hash = ANY(%s)"
        rows = self._pool.rows(statement, [list(token_hashes)], is_apart=True)
        return [SignIn(**by_name(_SIGN_IN_COLUMNS, row)) for row in rows]

    def extend(self, token_hashes: Collection[bytes], expires_at: datetime) -> None:
        with self._pool.apart() as session:
            session.execute(
                "UPDATE sign_ins SET expires_at = %s WHERE token_hash = ANY(%s)", [expires_at, list(token_hashes)]
            )

    def end(self, token_hash: bytes) -> None:
        self._pool.commit("DELETE FROM sign_ins WHERE token_hash = %s", [token_hash])


class PostgresSummaries:
    """The port's SummaryTable."""

    def __init__(self, pool: SessionPool) -> None:
        self._pool = pool

    def add_point(self, dataset_id: int, point: SummaryPoint) -> None:
        detail = asdict(point)
        values = [dataset_id, detail.pop("seq"), detail.pop("at"), Jsonb(detail)]
        self._pool.commit(
            insertion("summary_points", "dataset_id, seq, at, detail") + " ON CONFLICT DO NOTHING", values
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
    """Raise PepperMismatch unless `proof_of` the kept salt is the kept proof; a database's first start keeps both."""
    if not pool.rows(_PROOF, []):
        salt = secrets.token_bytes(_SALT_BYTES)
        pool.commit(_KEEP, [salt, proof_of(salt)])
    ((salt, proof),) = pool.rows(_PROOF, [])  # another replica's, if that was quicker
    if proof_of(bytes(salt)) != bytes(proof):
        raise PepperMismatch(
            "the pepper (SPARING_PEPPER, or the file pepper in the home) is not the one that this database was begun"
            " with: put that one back"
        )
