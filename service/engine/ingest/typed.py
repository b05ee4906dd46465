"""Parquet files and Arrow streams: columns that carry types of their own.

Both are foreign memory layouts, so every array is validated in full before anything reads it.
"""

import re
from collections.abc import Collection, Iterator
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from service.engine.ingest.header import check_header
from service.engine.ingest.problems import RowsProblem

BATCH_ROWS = 2**16
_INDEX = re.compile(r"__index_level_[0-9]+__")
_UTF8_PROBLEM = re.compile(r"Invalid UTF8 sequence at string index (\d+)")


def parquet_batches(source: BinaryIO, names: Collection[str]) -> Iterator[pa.RecordBatch]:
    """Batches of the columns `names`. Raises RowsProblem when the file, its columns or its text cannot be read."""
    try:
        file = pq.ParquetFile(source)
        found = _without_index(file.schema_arrow.names, names)
        check_header(found, names)
        yield from _checked(file.iter_batches(batch_size=BATCH_ROWS, columns=found))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise RowsProblem.of("the body is not a readable Parquet file") from error


def arrow_batches(source: BinaryIO, names: Collection[str]) -> Iterator[pa.RecordBatch]:
    """The same from an Arrow IPC stream."""
    try:
        reader = pa.ipc.open_stream(source)
        found = _without_index(reader.schema.names, names)
        check_header(found, names)
        yield from _checked(batch.select(found) for batch in reader)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise RowsProblem.of("the body is not a readable Arrow stream") from error


def _without_index(found: Collection[str], declared: Collection[str]) -> list[str]:
    """The names without those that pandas gives to an index without a name."""
    return [name for name in found if name in declared or _INDEX.fullmatch(name) is None]


def _checked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows_before = 0
    for batch in batches:
        columns = [_valid(batch.column(at), name, rows_before) for at, name in enumerate(batch.schema.names)]
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
        rows_before += batch.num_rows


def _valid(array: pa.Array, name: str, rows_before: int) -> pa.Array:
    """The array as a plain one, checked down to its last offset and byte."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        found = _UTF8_PROBLEM.fullmatch(str(error))
        row = None if found is None else rows_before + int(found.group(1)) + 1
        raise RowsProblem.of("not valid UTF-8" if found else "a malformed array", row=row, column=name) from error
    return _plain(array)


def _plain(array: pa.Array) -> pa.Array:
    """Without dictionary or run-length layout, and text in one layout."""
    if pa.types.is_dictionary(array.type):
        array = pa.DictionaryArray.from_arrays(array.indices, _plain(array.dictionary)).dictionary_decode()
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    is_text = pa.types.is_string_view(array.type) or pa.types.is_large_string(array.type)
    return array.cast(pa.string()) if is_text else array
