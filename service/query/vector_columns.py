"""Columns of vectors and their public integer codings.

A vector is held as a row of small unsigned integers. The first is 1, or 0 where the individual has no vector. Then come
the codes of its numbers. So a number may have any code that fits a byte, and a slot without a record is a row of zeros.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from service.arrays import Codes, narrowest
from service.query.schema import Column, DataColumn, VectorColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorCoding:
    """The rule that a number is `(code + offset) * 2**step_log2` for `0 <= code <= span`."""

    length: int
    offset: int  # steps; the place of code 0
    span: int  # the largest code
    step_log2: int

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """The type of a code, of one byte or two."""
        return narrowest(self.span)

    @property
    def width(self) -> int:
        """The number of integers in a row."""
        return self.length + 1

    @property
    def row_bytes(self) -> int:
        """The bytes of a row."""
        return self.width * self.dtype.itemsize

    @property
    def largest(self) -> int:
        """The largest size of a number, in steps."""
        return max(abs(self.offset), abs(self.offset + self.span))

    def missing(self, count: int) -> Codes:
        """The rows (count, width) of individuals without a vector."""
        return np.zeros((count, self.width), dtype=self.dtype)


def vector_coding(column: VectorColumn) -> VectorCoding:
    """The coding of a declared column."""
    return VectorCoding(
        length=column.length, offset=column.lower, span=column.upper - column.lower, step_log2=column.step_log2
    )


def vectors_of(columns: Mapping[str, Column] | Mapping[str, DataColumn]) -> dict[str, VectorCoding]:
    """The codings of the vector columns among these columns."""
    return {name: vector_coding(column) for name, column in columns.items() if isinstance(column, VectorColumn)}


def numbers_of(coding: VectorCoding, row: Codes) -> list[int] | None:
    """The numbers of a row (width,) in steps; None where there is no vector."""
    if row[0] == 0:
        return None
    numbers: list[int] = (row[1:].astype(np.int64) + coding.offset).tolist()
    return numbers
