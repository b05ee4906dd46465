"""The division of a dataset's pages over shards: public arithmetic, the same for every dataset of a capacity.

Shard k of N holds the pages p with p mod N = k. It numbers them 0, 1, 2, ..., so that its page l is page l N + k of the
dataset. A page is never on two shards. Neither, therefore, is an individual or a piece of a ledger entry.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

import numpy as np

from service.arrays import Integers, Mask
from service.query.schema import EventsTable, IndividualsTable

PAGE_SLOTS: Final = 2**16
"""The slots of a page. Memory by slot is held in whole pages, up to an eighth more of them than are in use."""
SHARD_CAPACITY_MIN: Final = 2**20
"""A dataset of capacity n has at most n / 2^20 shards, rounded up."""
ROWS_SHARE: Final = Fraction(5, 4)
"""The factor by which a shard may have more rows of events than its part of the table's `rows_capacity`.

No public number says how events are spread over people, and the price of a query is that of the fullest shard.
"""
_PAGE_BITS: Final = PAGE_SLOTS.bit_length() - 1


@dataclass(frozen=True, slots=True)
class ShardPlace:
    """Shard `number` of `count`. Raises ValueError unless 0 <= number < count."""

    number: int
    count: int

    def __post_init__(self) -> None:
        """Refuse a number that is not from 0 to `count` - 1."""
        if not 0 <= self.number < self.count:
            raise ValueError(f"there is no shard {self.number} of {self.count}")

    def holds(self, slots: Integers) -> Mask:
        """The mask (k,) of those slots (k,) of the dataset that are on this shard."""
        here: Mask = (slots >> _PAGE_BITS) % self.count == self.number
        return here

    def own(self, slots: Integers) -> Integers:
        """The shard's own numbers (k,) of slots (k,) of the dataset, which are on this shard."""
        pages = slots >> _PAGE_BITS
        return slots - ((pages - pages // self.count) << _PAGE_BITS)

    def of_dataset(self, slots: Integers) -> Integers:
        """The slots (k,) of the dataset that have these numbers (k,) on the shard."""
        return slots + ((((slots >> _PAGE_BITS) * (self.count - 1)) + self.number) << _PAGE_BITS)

    def page_of_dataset(self, page: int) -> int:
        """The number in the dataset of a page that has this number on the shard."""
        return page * self.count + self.number

    def slots(self, slots: int) -> int:
        """The number of slots on the shard that hold its part of the dataset's slots 0 to `slots` - 1."""
        if slots == 0:
            return 0
        last_page, in_last = (slots - 1) >> _PAGE_BITS, (slots - 1) % PAGE_SLOTS + 1
        before = max(-(-(last_page - self.number) // self.count), 0)
        return before * PAGE_SLOTS + (in_last if last_page % self.count == self.number else 0)


UNDIVIDED: Final = ShardPlace(0, 1)


def at_each_shard(slots: Integers, shards: int) -> Integers:
    """The number of these slots (k,) on each of `shards` shards, (shards,)."""
    return np.bincount((slots >> _PAGE_BITS) % shards, minlength=shards)


def shards_for(capacity: int, *, shards_max: int) -> int:
    """The number of shards of a dataset of at most `capacity` individuals; the operator admits at most `shards_max`."""
    return max(min(shards_max, -(-capacity // SHARD_CAPACITY_MIN)), 1)


def people_at_fullest(capacity: int, shards: int) -> int:
    """The most individuals on one of `shards` shards."""
    pages = -(-capacity // PAGE_SLOTS)
    return min(capacity, -(-pages // shards) * PAGE_SLOTS)


def rows_at_fullest(table: IndividualsTable | EventsTable, capacity: int, shards: int) -> int:
    """The most rows of a table on one of `shards` shards."""
    rows = table.rows_max(capacity)
    if shards == 1:
        return rows
    return min(ceil(rows * ROWS_SHARE / shards), table.rows_max(people_at_fullest(capacity, shards)))
