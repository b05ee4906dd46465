"""Checked rows in a file, as one batch of Arrow: a decoder writes them, and the service maps and checks them again."""

import mmap
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from service.engine.ingest.keys import ArrowKeys
from service.engine.ingest.rows import RowCounts, Rows
from service.query.columns import codings_of
from service.query.schema import BudgetColumn, EventsTable, IndividualsTable
from service.query.vector_columns import vectors_of

_KEY, _LIMIT, _PLACE = "key", "limit", "place"


def write_rows(rows: Rows, file: BinaryIO) -> RowCounts:
    """Write the rows to the file, from its present position; return their counts."""
    keys = rows.keys if isinstance(rows.keys, ArrowKeys) else ArrowKeys(pa.chunked_array([list(rows.keys)]))
    columns = [(_KEY, keys.in_one())]
    columns += [(f"code {number}", _column(codes)) for number, codes in enumerate(rows.codes.values())]
    columns += [] if rows.limits is None else [(_LIMIT, pa.array(rows.limits))]
    columns += [] if rows.places is None else [(_PLACE, pa.array(rows.places))]
    batch = pa.RecordBatch.from_arrays([array for _, array in columns], names=[name for name, _ in columns])
    with pa.ipc.new_stream(file, batch.schema) as writer:
        writer.write_batch(batch)
    file.flush()
    return RowCounts(**rows.by_name)


def mapped_rows(file: BinaryIO, counts: RowCounts, table: IndividualsTable | EventsTable) -> Rows:
    """The rows of a whole file, mapped and not copied. Nobody may write to the file any more. Raises pa.ArrowInvalid.

    The content is checked like bytes from a stranger, because the decoder has read such bytes.
    """
    held = {name: pa.from_numpy_dtype(coding.dtype) for name, coding in codings_of(table.columns).items()}
    held |= {name: _rows_type(coding.dtype, coding.width) for name, coding in vectors_of(table.columns).items()}
    names = [name for name, column in table.columns.items() if not isinstance(column, BudgetColumn)]
    buffer = pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    batch = pa.ipc.open_stream(buffer).read_next_batch()
    batch.validate(full=True)
    types = {_KEY: pa.string()}
    types |= {f"code {number}": held[name] for number, name in enumerate(names)}
    types |= {_LIMIT: pa.int64()} if len(table.columns) > len(names) else {}
    types |= {_PLACE: pa.int64()} if _PLACE in batch.schema.names else {}
    if batch.schema != pa.schema(list(types.items())) or any(map(_has_nulls, batch.columns)):
        raise pa.ArrowInvalid("the rows are not those of the table")
    values = {name: _values(batch.column(name)) for name in types if name != _KEY}
    return Rows(
        keys=ArrowKeys(pa.chunked_array([batch.column(_KEY)])),
        codes={name: values[f"code {number}"] for number, name in enumerate(names)},
        limits=values.get(_LIMIT),
        places=values.get(_PLACE),
        **counts.by_name,
    )


def _column(codes: NDArray[np.unsignedinteger]) -> pa.Array:
    """Codes (n,) or rows of codes (n, width) as an array of Arrow."""
    if codes.ndim == 1:
        return pa.array(codes)
    return pa.FixedSizeListArray.from_arrays(pa.array(codes.reshape(-1)), type=_rows_type(codes.dtype, codes.shape[1]))


def _rows_type(dtype: np.dtype[np.unsignedinteger], width: int) -> pa.DataType:
    return pa.list_(pa.from_numpy_dtype(dtype), width)


def _has_nulls(array: pa.Array) -> bool:
    values = array.flatten() if pa.types.is_fixed_size_list(array.type) else array
    return bool(array.null_count or values.null_count)


def _values(array: pa.Array) -> NDArray[Any]:
    """The values of a column without NULL, mapped: (n,), or for vectors (n, width)."""
    if not pa.types.is_fixed_size_list(array.type):
        return np.asarray(array)
    return np.asarray(array.flatten()).reshape(-1, array.type.list_size)
