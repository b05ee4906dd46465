"""Leases on datasets, in the table `dataset_owners`, over sessions of their own.

A pool that requests share may be exhausted for longer than a lease lasts, and renewals must not wait for it. Each
session holds an advisory lock of its replica, which Postgres releases when the process dies. So the leases of a process
that was killed are free at once. Only a lease of a process that hangs, or whose connection was cut off without an end,
has to expire. A lease with more than two terms left was made under a wrong clock, and is no longer in force.
"""

from typing import Any, Final

import psycopg

from service.ledger.model.rows import Lease, ReplicaAddress
from service.ledger.ports.store import StoreUnavailable
from service.store.postgres.sessions import SessionPool

_SESSIONS_MAX: Final = 2
_TIMEOUT_MS: Final = 1000
_LOCK: Final = "SELECT pg_advisory_lock_shared(hashtextextended(%s::uuid::text, 0))"
# The row stays locked to the end of the transaction, also where nothing is updated: what is then read is in force.
_CLAIM: Final = """
INSERT INTO dataset_owners AS held (dataset_id, replica, url, expires_at)
VALUES (%s, %s, %s, clock_timestamp() + %s * interval '1 second')
ON CONFLICT (dataset_id) DO UPDATE
SET replica = excluded.replica, url = excluded.url, expires_at = excluded.expires_at
WHERE held.replica = excluded.replica
   OR held.expires_at NOT BETWEEN clock_timestamp() AND clock_timestamp() + 2 * (%s * interval '1 second')
   OR pg_try_advisory_xact_lock(hashtextextended(held.replica::text, 0))
"""
_RENEW: Final = "UPDATE dataset_owners SET expires_at = clock_timestamp() + %s * interval '1 second' WHERE replica = %s"
_RELEASE: Final = (
    "UPDATE dataset_owners SET expires_at = clock_timestamp() WHERE replica = %s AND expires_at > clock_timestamp()"
)
_LEASES: Final = (
    "SELECT dataset_id, replica, url, extract(epoch FROM expires_at - clock_timestamp())::float8 FROM dataset_owners"
)
_IN_FORCE: Final = " WHERE expires_at BETWEEN clock_timestamp() AND clock_timestamp() + 2 * (%s * interval '1 second')"


class PostgresLeases:
    """The port's Leases."""

    def __init__(self, database_url: str, replica: ReplicaAddress) -> None:
        """Open the sessions of one replica. Raises StoreUnavailable when no session comes."""
        self._pool = _LockedConnections(database_url, replica)

    def close(self) -> None:
        """Close every session, which frees the replica's leases."""
        self._pool.close()

    def claim(self, dataset_id: int, replica: ReplicaAddress, *, lease_s: float) -> Lease:
        with self._pool.one() as session:
            session.execute(_CLAIM, [dataset_id, replica.id, replica.url, lease_s, lease_s])
            rows = session.execute(f"{_LEASES} WHERE dataset_id = %s", [dataset_id]).fetchall()
        if not rows:
            raise StoreUnavailable("a claimed dataset has no lease")
        return _lease_of(rows[0])

    def renew(self, replica: ReplicaAddress, *, lease_s: float) -> list[Lease]:
        with self._pool.one() as session:
            session.execute(_RENEW, [lease_s, replica.id])
            rows = session.execute(f"{_LEASES}{_IN_FORCE}", [lease_s]).fetchall()
        return [_lease_of(row) for row in rows]

    def release(self, replica: ReplicaAddress) -> None:
        self._pool.commit(_RELEASE, [replica.id])


class _LockedConnections(SessionPool):
    """Sessions that show that their replica is alive: each shares the replica's advisory lock until it ends."""

    def __init__(self, database_url: str, replica: ReplicaAddress) -> None:
        self._replica = replica
        super().__init__(
            database_url,
            connections_max=_SESSIONS_MAX,
            statement_timeout_ms=_TIMEOUT_MS,
            lock_timeout_ms=_TIMEOUT_MS,
            tcp_timeout_ms=_TIMEOUT_MS,
        )

    def _configure(self, session: psycopg.Connection[Any]) -> None:
        super()._configure(session)
        session.execute(_LOCK, [self._replica.id])
        session.commit()


def _lease_of(row: tuple[Any, ...]) -> Lease:
    return Lease(dataset_id=row[0], replica=ReplicaAddress(id=row[1], url=row[2]), left_s=row[3])
