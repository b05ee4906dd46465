"""The only place where psycopg's exceptions become the port's."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout

from service.workflows.ports.store import CommitRejected, CommitUnclear, StoreUnavailable

_REPEATING: Final = ("22", "23")
"""The classes of SQLSTATE for data exceptions and violated constraints: the same values fail again."""


@contextmanager
def translated() -> Iterator[None]:
    """Any fault of the database, the connection or the pool is StoreUnavailable: an analyst may see nothing of it."""
    try:
        yield
    except (psycopg.Error, PoolTimeout, PoolClosed) as fault:
        raise StoreUnavailable(type(fault).__name__) from fault


@contextmanager
def committing() -> Iterator[None]:
    """Around what makes a transaction durable: CommitRejected where Postgres blames the values, else CommitUnclear.

    An error of either class ends the transaction, so that nothing of it is durable, also when COMMIT itself reports it.
    """
    try:
        yield
    except psycopg.Error as fault:
        if fault.sqlstate is not None and fault.sqlstate.startswith(_REPEATING):
            raise CommitRejected(fault.sqlstate) from None
        raise CommitUnclear(type(fault).__name__) from fault
    except StoreUnavailable as fault:
        raise CommitUnclear(type(fault).__name__) from fault
