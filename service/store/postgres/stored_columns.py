"""The columns of a dataset's own tables: their SQL types, and their values in COPY and in packed replies."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from service.query.columns import Coding, coding_of
from service.query.schema import Column, VectorColumn
from service.query.vector_columns import VectorCoding, vector_coding


@dataclass(frozen=True, slots=True)
class WireOut:
    """A fixed width at which values come back: the SQL type, and the function that gives such a value's bytes."""

    dtype: np.dtype[np.generic]
    sql_type: str
    sql_bytes: str

    def holds(self, value: int) -> bool:
        """Tell whether a whole number fits."""
        reach = 1 << (8 * self.dtype.itemsize - 1)
        return -reach <= value < reach


_WHOLE: Final = (
    WireOut(np.dtype(">i2"), "smallint", "int2send"),
    WireOut(np.dtype(">i4"), "integer", "int4send"),
    WireOut(np.dtype(">i8"), "bigint", "int8send"),
)
_DOUBLE: Final = WireOut(np.dtype(">f8"), "double precision", "float8send")


_SQL_TYPES: Final = {
    "category": "integer",
    "boolean": "boolean",
    "integer": "bigint",
    "date": "integer",
    "datetime": "bigint",
    "real": "double precision",
}


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """One column of a records table."""

    name: str
    kind: str
    coding: Coding

    @property
    def sql_type(self) -> str:
        """The SQL type, in which values are exact: double for reals, which are on a power-of-two grid, else whole."""
        return _SQL_TYPES[self.kind]

    @property
    def wire(self) -> np.dtype[np.generic]:
        """The big-endian form in which COPY carries a value."""
        return np.dtype({"boolean": "u1", "integer": ">i4", "bigint": ">i8", "double precision": ">f8"}[self.sql_type])

    @property
    def out(self) -> np.dtype[np.generic]:
        """The form in which values come back."""
        return self._out.dtype

    @property
    def packed(self) -> sql.Composed:
        """The values of several rows packed in one value, with a stand-in for NULL."""
        name = sql.Identifier(self.name)
        value = sql.SQL("{}::integer").format(name) if self.kind == "boolean" else name
        stand_in = sql.SQL("coalesce({}, {})::{}").format(value, sql.SQL(self._null_out), sql.SQL(self._out.sql_type))
        return packed(self._out.sql_bytes, stand_in)

    @property
    def _out(self) -> WireOut:
        """The narrowest width that holds the domain and the stand-in for NULL."""
        if self.kind == "real":
            return _DOUBLE
        lowest, null = self.coding.offset, self.coding.offset + self.coding.null_code
        return next(out for out in _WHOLE if out.holds(lowest) and out.holds(null))

    @property
    def _null_out(self) -> str:
        """The stand-in for NULL when values come back at fixed width: an SQL literal outside the domain."""
        return "'NaN'" if self.kind == "real" else str(self.coding.offset + self.coding.null_code)

    def is_null(self, codes: NDArray[np.unsignedinteger]) -> NDArray[np.bool_]:
        """The mask of the codes (n,) that stand for NULL."""
        is_null: NDArray[np.bool_] = codes == self.coding.null_code
        return is_null

    def values(self, codes: NDArray[np.unsignedinteger]) -> NDArray[np.generic]:
        """The values, in wire form, of codes that are not NULL."""
        steps = codes.astype(np.int64) + self.coding.offset
        if self.kind == "real":
            return np.ldexp(steps.astype(np.float64), self.coding.step_log2).astype(self.wire)
        return steps.astype(self.wire)

    def codes(self, values: NDArray[np.generic]) -> NDArray[np.unsignedinteger]:
        """The codes of values in the form in which they come back, with a stand-in for NULL."""
        if self.kind != "real":
            return (values.astype(np.int64) - self.coding.offset).astype(self.coding.dtype)
        steps = np.ldexp(values.astype(np.float64), -self.coding.step_log2)
        is_null = np.isnan(steps)
        return np.where(
            is_null, self.coding.null_code, np.where(is_null, 0, steps).astype(np.int64) - self.coding.offset
        ).astype(self.coding.dtype)


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """A column of vectors: one `bytea` for each, with one or two bytes for each code, the lower byte first.

    The bytes are not compressed: compressing images takes three times as long as writing them.
    """

    name: str
    coding: VectorCoding

    sql_type = "bytea STORAGE EXTERNAL"

    @property
    def wire(self) -> np.dtype[np.generic]:
        """The form in which COPY carries a vector: its bytes."""
        return np.dtype((np.void, self.coding.length * self.coding.dtype.itemsize))

    @property
    def out(self) -> np.dtype[np.generic]:
        """The form in which a vector comes back: the bytes of a row of codes."""
        return np.dtype((np.void, self.coding.row_bytes))

    @property
    def packed(self) -> sql.Composed:
        """The rows of codes of several rows, packed in one value."""
        size = self.coding.dtype.itemsize
        return sql.SQL("string_agg(coalesce({} || {}, decode(repeat('00', {}), 'hex')), ''::bytea)").format(
            sql.Literal((1).to_bytes(size, "little")), sql.Identifier(self.name), sql.Literal(self.coding.row_bytes)
        )

    def is_null(self, codes: NDArray[np.unsignedinteger]) -> NDArray[np.bool_]:
        """The mask (n,) of the rows of codes (n, width) that hold no vector."""
        is_null: NDArray[np.bool_] = codes[:, 0] == 0
        return is_null

    def values(self, codes: NDArray[np.unsignedinteger]) -> NDArray[np.generic]:
        """Vectors in wire form (n,), from rows of codes (n, width) that all hold a vector."""
        return np.ascontiguousarray(codes[:, 1:].astype(self._little)).view(self.wire).reshape(-1)

    def codes(self, values: NDArray[np.generic]) -> NDArray[np.unsignedinteger]:
        """Rows of codes (n, width), from values (n,) in the form in which they come back."""
        return values.view(self._little).reshape(-1, self.coding.width).astype(self.coding.dtype, copy=False)

    @property
    def _little(self) -> np.dtype[np.unsignedinteger]:
        return self.coding.dtype.newbyteorder("<")


AnyStored = StoredColumn | StoredVectors


def stored(name: str, column: Column) -> AnyStored:
    """The stored form of a declared column."""
    if isinstance(column, VectorColumn):
        return StoredVectors(name, vector_coding(column))
    return StoredColumn(name, column.type, coding_of(column))


def packed(sql_bytes: str, value: sql.Composable) -> sql.Composed:
    """The SQL that joins the bytes of a value of every row, one after the other."""
    return sql.SQL("string_agg({}({}), ''::bytea)").format(sql.SQL(sql_bytes), value)
