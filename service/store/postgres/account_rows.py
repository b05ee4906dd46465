"""Accounts read from Postgres: most have the dataset's own limit, and only the exceptions are listed.

Putting together the bytes of every individual's account took Postgres twice as long as reading the accounts, at every
start.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.store.postgres.data_tables import unpacked
from service.workflows.model.rows import SlotsInUse

EXTENT: Final = """
SELECT budget_units, (SELECT max(slot) FROM individuals WHERE dataset_id = datasets.id) FROM datasets WHERE id = %s
"""
"""The usual limit and the last slot; NULL when no individual has one. Takes the dataset."""

SLOTS_AT_ONCE: Final = 2**22
"""Slots that one statement packs, in far less than the gibibyte that a value may have."""

EXCEPTIONS: Final = """
SELECT count(*),
    string_agg(int4send(slot), ''::bytea) FILTER (WHERE key IS NULL),
    string_agg(int4send(slot), ''::bytea) FILTER (WHERE paused),
    string_agg(int4send(slot), ''::bytea) FILTER (WHERE limit_units <> %s),
    string_agg(int8send(limit_units), ''::bytea) FILTER (WHERE limit_units <> %s)
FROM individuals WHERE dataset_id = %s AND slot >= %s AND slot < %s
"""
"""The number of accounts; those without a record, those paused, and those with another limit.

Takes what `AccountRows.ranges` gives.
"""

SLOTS: Final = "SELECT slot FROM individuals WHERE dataset_id = %s"
"""Of every account."""

SOME: Final = """
SELECT string_agg(int4send(slot), ''::bytea), string_agg(int8send(limit_units), ''::bytea),
    string_agg(int4send((key IS NOT NULL)::integer), ''::bytea), string_agg(int4send(paused::integer), ''::bytea)
FROM unnest(%s::integer[], %s::integer[]) AS runs (first, last)
JOIN individuals ON dataset_id = %s AND slot >= first AND slot <= last
"""
"""The accounts of some runs of slots. Takes the first and the last slot of each run, and the dataset."""

_SLOT: Final = np.dtype(">i4")
_UNITS: Final = np.dtype(">i8")
Exceptions = tuple[int, bytes | None, bytes | None, bytes | None, bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRows:
    """The accounts of one dataset, as far as `EXTENT` tells."""

    dataset_id: int
    usual_units: int
    last: int | None

    @property
    def size(self) -> int:
        """How many slots there are up to the last."""
        return 0 if self.last is None else self.last + 1

    @property
    def ranges(self) -> list[list[int]]:
        """The values of `EXCEPTIONS`, for each stretch of slots."""
        usual = self.usual_units
        starts = range(0, self.size, SLOTS_AT_ONCE)
        return [[usual, usual, self.dataset_id, start, start + SLOTS_AT_ONCE] for start in starts]

    def are_all(self, parts: Sequence[Exceptions]) -> bool:
        """Whether every slot up to the last has an account."""
        return sum(count for count, *_ in parts) == self.size

    def read(self, parts: Sequence[Exceptions], slots: Sequence[int] | None) -> SlotsInUse:
        """All accounts, given what is exceptional of each stretch; `slots` where they are not `are_all`."""
        gone, resting, others, limits = unpacked([part[1:] for part in parts], [_SLOT, _SLOT, _SLOT, _UNITS])
        limit = np.full(self.size, self.usual_units, dtype=np.int64)
        limit[others] = limits
        present = np.ones(self.size, dtype=np.bool_)
        present[gone] = False
        paused = np.zeros(self.size, dtype=np.bool_)
        paused[resting] = True
        if slots is None:
            return SlotsInUse(slots=np.arange(self.size), limits=limit, present=present, paused=paused)
        at = np.array(slots, dtype=np.int64)
        return SlotsInUse(slots=at, limits=limit[at], present=present[at], paused=paused[at])


def accounts_of(parts: Sequence[Sequence[bytes | None]]) -> SlotsInUse:
    """The accounts that several statements `SOME` gave."""
    slots, limits, present, paused = unpacked(parts, [_SLOT, _UNITS, _SLOT, _SLOT])
    return SlotsInUse(
        slots=slots.astype(np.int64),
        limits=limits.astype(np.int64),
        present=present.astype(np.bool_),
        paused=paused.astype(np.bool_),
    )
