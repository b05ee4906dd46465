"""The head of a dataset in Postgres: its row is the lock, the fence and the order of everything."""

from collections.abc import Sequence
from typing import Any, Final

from service.workflows.model.rows import Head
from service.workflows.ports.store import StoreUnavailable

HEAD_COLUMNS: Final = (
    "seq, hash, epoch, fence, data_version, slots, worst_case_units, checkpoint_seq, joining_units, journal_hash,"
    " pruned_seq"
)
LOCK_HEAD: Final = " FOR UPDATE"
LONG_ACTS: Final = 0x53504143
"""The class of the advisory locks of long acts; the dataset's number is the other half of such a lock's key."""
ONE_LONG_ACT: Final = "SELECT pg_advisory_xact_lock(%s, %s)"
READ_HEAD: Final = f"SELECT {HEAD_COLUMNS} FROM heads WHERE dataset_id = %s"


def head_of(row: Sequence[Any]) -> Head:
    """A head from its columns."""
    return Head(
        seq=row[0],
        hash=bytes(row[1]),
        epoch=row[2],
        fence=row[3],
        data_version=row[4],
        slots=row[5],
        worst_case_units=row[6],
        checkpoint_seq=row[7],
        joining_units=row[8],
        journal_hash=bytes(row[9]),
        pruned_seq=row[10],
    )


def head_in(rows: Sequence[Sequence[Any]]) -> Head:
    """The head among the rows of READ_HEAD. Raises StoreUnavailable where the dataset is deleted."""
    if not rows:
        raise StoreUnavailable("the dataset is deleted")
    return head_of(rows[0])
