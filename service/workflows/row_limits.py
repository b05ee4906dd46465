"""Rows of an individual beyond `rows_per_individual`: refused by name, or dropped by a rule about its own rows alone.

Truncation keeps neighbouring datasets neighbours. The guarantee compares datasets that differ in all rows of one
individual. Which rows of an individual are stored depends on the contents of its own rows in the upload and on the
number of its own rows stored before: not on their order in the upload, on the rows of others, or on chance. Without one
individual's rows, every other individual has exactly the same stored rows, so that the stored datasets still differ in
one individual. A rule such as "the first rows of the file" would be as safe only if the order of the file never
depended on others; a rule such as "until the table is full" would let the rows of one decide about those of another.

The rows that come first in the order of their columns, as declared, are kept, and missing values come last. That is no
random sample: sums and counts over later columns are biased where rows are dropped.
"""

from collections.abc import Mapping

import numpy as np

from service.core.arrays import Codes, Integers, Mask
from service.engine.ingest import Keys
from service.workflows.model.errors import OverLimit, PersonOverLimit

PEOPLE_MAX = 20


def rows_to_keep(slots: Integers, codes: Mapping[str, Codes], held: Integers, limit: int) -> Mask:
    """Which of n rows (n,) an upload stores when each individual may hold `limit` rows.

    `slots` and `codes` are those of the rows; `held` is, for each row, the number of rows that its individual would
    hold with all of them.
    """
    over = np.flatnonzero(held > limit)
    contents = [codes[name][over] for name in reversed(list(codes))]
    ordered = over[np.lexsort([*contents, slots[over]])]
    _, starts, sizes = np.unique(slots[ordered], return_index=True, return_counts=True)
    place = np.arange(ordered.size) - np.repeat(starts, sizes)
    stored_before = held[ordered] - np.repeat(sizes, sizes)
    kept: Mask = np.ones(slots.size, dtype=np.bool_)
    kept[ordered[place >= limit - stored_before]] = False
    return kept


def people_over(keys: Keys, slots: Integers, held: Integers, limit: int) -> OverLimit:
    """The individuals with more than `limit` rows, in the order of their first rows; the first of them by key."""
    over = np.flatnonzero(held > limit)
    _, firsts = np.unique(slots[over], return_index=True)
    rows = over[np.sort(firsts)]
    people = tuple(
        PersonOverLimit(key=keys[row], rows=int(held[row]), excess=int(held[row]) - limit)
        for row in rows[:PEOPLE_MAX].tolist()
    )
    return OverLimit(individuals=rows.size, excess=int((held[rows] - limit).sum()), first=people)
