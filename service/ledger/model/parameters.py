"""Parameters that are kept for the analyst who sent them, because an entry has only their hash.

They are the analyst's numbers and say nothing of any individual. The transaction of the first answer that names them
stores them, and they are kept as long as the dataset, so that the query can be planned again. No other analyst can use
them.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from service.query.language import Query
from service.query.parameters_ast import HASHES_MAX, PARAMETERS_MAX, is_unknown, with_kept


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptParameters:
    """Numbers of one analyst in one dataset, as little-endian doubles, row by row, in the `shape` first sent."""

    principal_id: UUID
    sha256: str
    shape: tuple[int, ...]
    numbers: bytes

    @property
    def are_themselves(self) -> bool:
        """Tell whether `sha256` is the hash of the numbers."""
        return hashlib.sha256(self.numbers).hexdigest() == self.sha256


LEAST_BYTES: Final = 4096
"""The fewest bytes that an array counts as, however short, because its database row takes space too."""


def bytes_kept(numbers: bytes) -> int:
    """The number of bytes that an array counts as in the bound on an analyst's stored parameters."""
    return max(len(numbers), LEAST_BYTES)


def hashes_in(query: Query) -> tuple[str, ...]:
    """The hashes in a query for which the query has no numbers, each once."""
    return tuple(dict.fromkeys(each.sha256 for each in query.hashed if is_unknown(each)))


def with_numbers(query: Query, kept_of: Callable[[str], KeptParameters | None]) -> Query:
    """The query with the numbers that are kept under its hashes. Numbers that do not match their hash are left out.

    At most as many arrays and numbers are read as a query may have; a query with more gets no plan anyway.
    """
    found: dict[str, tuple[tuple[int, ...], bytes]] = {}
    for digest in hashes_in(query)[:HASHES_MAX]:
        kept = kept_of(digest)
        if kept is not None and kept.are_themselves:
            found[digest] = kept.shape, kept.numbers
        if sum(len(numbers) for _, numbers in found.values()) > 8 * PARAMETERS_MAX:
            break
    numbered: Query = with_kept(query, found)
    return numbered
