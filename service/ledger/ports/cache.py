"""The cache's port: values that replicas share, and whose loss at any moment costs only time.

A value from the cache was made by a replica that held the pepper, but it may be old or of another history. So every
value says to which state it belongs, and a replica that uses the value compares that state with the database. Nothing
here ever says that an individual can still pay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.rows import DatasetRecord, Head

SLICE_SLOTS: Final = 1024
"""The number of consecutive slots in a slice. A slice has 25 KiB, little enough to read for one account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitNotice:
    """The new position of a dataset: its registration, the writers' fence, the last sequence, and its records."""

    genesis: bytes
    fence: int
    seq: int
    data_version: int

    @property
    def position(self) -> tuple[int, int, int]:
        """(fence, sequence, data version): every later state of one history exceeds it."""
        return self.fence, self.seq, self.data_version


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerPosition(CommitNotice):
    """One state of one dataset: its position, with the hash of the ledger's last entry."""

    hash: bytes

    @classmethod
    def of(cls, record: DatasetRecord, head: Head) -> Self:
        """The state that a head shows."""
        return cls(
            genesis=record.genesis, fence=head.fence, seq=head.seq, hash=head.hash, data_version=head.data_version
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedEntry:
    """An entry of a dataset's ledger."""

    genesis: bytes
    entry: LedgerEntry


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AccountSlice:
    """The accounts of the consecutive slots from `number * SLICE_SLOTS` on, in one state of the dataset.

    All arrays are (m,) with m <= SLICE_SLOTS: slots beyond m did not exist in that state. `limits` and `spent` are in
    units. The counters `charged` and `left_out` are in queries.
    """

    place: LedgerPosition
    number: int
    limits: NDArray[np.int64]
    spent: NDArray[np.int64]
    paused: NDArray[np.bool_]
    charged: NDArray[np.uint32]
    left_out: NDArray[np.uint32]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSummary:
    """The summary of all budgets in one state of the dataset, as JSON."""

    place: LedgerPosition
    body: bytes


Shared = SharedEntry | AccountSlice | SharedSummary


class Cache:
    """Replicas' shared values; in this one none are held.

    No method raises, and none takes longer than a short time-out: absent means unknown.
    """

    def share(self, values: Sequence[Shared], notice: Sequence[CommitNotice]) -> None:
        """Keep values for other replicas, if possible, and send notices.

        A slice is never replaced by one of an earlier state.
        """

    def entries(self, genesis: bytes, *, after: int, to: int) -> list[LedgerEntry]:  # noqa: ARG002 - of the adapters
        """Those entries with after < seq <= to that are held, in order, with holes."""
        return []

    def slices(self, genesis: bytes, numbers: Sequence[int]) -> list[AccountSlice]:  # noqa: ARG002 - the same
        """The slices of these that are held, each at the position at which it was taken."""
        return []

    def summary(self, genesis: bytes) -> SharedSummary | None:  # noqa: ARG002 - the same
        """The summary that was shared last."""
        return None

    def audience(self) -> int:
        """The number of listening replicas, this one included; 0 when unknown."""
        return 0

    def listen(self, *, within_s: float) -> list[CommitNotice]:  # noqa: ARG002 - the same
        """The notices that have come; waits for the first. The first call begins to listen. One thread at a time."""
        return []

    def take(self, bucket: str, *, per_s: int, burst: int) -> float | None:  # noqa: ARG002 - the same
        """Take one token of a bucket that all replicas share: 0, or after how many s there is one; None: unknown."""
        return None

    def close(self) -> None:
        """Forget the connections."""


class NoCache(Cache):
    """A cache in which nothing is shared: no other replica is there."""
