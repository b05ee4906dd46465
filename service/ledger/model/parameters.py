"""Parameters that are kept for the analyst who sent them: of a query, an entry has their hash alone.

They are the analyst's numbers and say nothing of any individual. They are kept in the transaction of the first answer
that names them, and for as long as the dataset, so that the query can be planned again; nobody else can use them.
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
    """Numbers of one analyst in one dataset: doubles, little-endian, row by row, in the shape that they first had."""

    principal_id: UUID
    sha256: str
    shape: tuple[int, ...]
    numbers: bytes

    @property
    def are_themselves(self) -> bool:
        """Tell whether the numbers give the hash."""
        return hashlib.sha256(self.numbers).hexdigest() == self.sha256


LEAST_BYTES: Final = 4096
"""An array counts as so many bytes at least: a row of its own has a price too."""


def bytes_kept(numbers: bytes) -> int:
    """The bytes that an array of parameters counts as where it is kept."""
    return max(len(numbers), LEAST_BYTES)


def hashes_in(query: Query) -> tuple[str, ...]:
    """The hashes whose numbers a query lacks, each once."""
    return tuple(dict.fromkeys(each.sha256 for each in query.hashed if is_unknown(each)))


def with_numbers(query: Query, kept_of: Callable[[str], KeptParameters | None]) -> Query:
    """The query with the numbers that are kept by hash, but for those that are not what was kept.

    No more are asked for than a query may name: it has no plan with more of them.
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
