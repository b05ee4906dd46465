"""psycopg's exceptions become the port's, here and nowhere else."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout

from service.workflows.ports import StoreUnavailable


@contextmanager
def translated() -> Iterator[None]:
    """Any fault of the database, the connection or the pool is StoreUnavailable: an analyst may see nothing of it."""
    try:
        yield
    except (psycopg.Error, PoolTimeout, PoolClosed) as fault:
        raise StoreUnavailable(type(fault).__name__) from fault
