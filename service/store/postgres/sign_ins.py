"""The table of sign-ins on Postgres."""

from datetime import UTC, datetime
from typing import Final

from service.store.postgres.pool import SessionPool
from service.workflows.ports.sign_ins import SignIn

_COLUMNS: Final = "token_hash, principal_id, key_hash, began_at, expires_at"


class PostgresSignIns:
    """The port's SignInTable."""

    def __init__(self, pool: SessionPool) -> None:
        self._pool = pool

    def add(self, sign_in: SignIn, *, now: datetime) -> None:
        values = [sign_in.token_hash, sign_in.principal_id, sign_in.key_hash, sign_in.began_at, sign_in.expires_at]
        self._pool.commit(f"INSERT INTO sign_ins ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s)", values)
        self._pool.commit("DELETE FROM sign_ins WHERE expires_at <= %s", [now])

    def find(self, token_hash: bytes) -> SignIn | None:
        rows = self._pool.rows(f"SELECT {_COLUMNS} FROM sign_ins WHERE token_hash = %s", [token_hash])
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
