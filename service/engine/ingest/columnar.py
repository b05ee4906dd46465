"""Batches of an upload's columns from Parquet and from Arrow streams, decoded in pieces of bounded size.

Both formats have types of their own and memory layouts that others have written. So names and types are checked before
any column is decoded, and every array is validated in full before anything reads it. A value that stands once in a body
may be in any number of its rows (dictionaries, run ends, views). So rows are counted first, then the bytes of a piece,
and only then is the piece expanded to a plain array.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from service.arrays import Integers
from service.engine.ingest.names import Names
from service.engine.ingest.problems import Problems, RowsProblem
from service.engine.ingest.upload_size import PIECE_BYTES, PIECE_ROWS, Counter
from service.engine.ingest.vectors import is_listed

_BUFFER_BYTES: Final = 2**20  # of a column of Parquet, read at a time
_LENGTH_BYTES: Final = 4  # before each value of text in Parquet, unless it is in a dictionary
INDEX: Final = re.compile(r"__index_level_[0-9]+__")
"""The names that pandas gives to an index that has no name."""
_UTF8_PROBLEM: Final = re.compile(r"Invalid UTF8 sequence at string index (\d+)$")
_TOO_LONG: Final = f"the values of {PIECE_ROWS} rows or fewer take more than 2147483646 bytes in one column"
# What Arrow raises for bodies that are not what they say; a lack of memory is none of these.
_UNREADABLE: Final = (
    pa.ArrowInvalid,
    pa.ArrowNotImplementedError,
    pa.ArrowTypeError,
    pa.ArrowKeyError,
    pa.ArrowIndexError,
    pa.ArrowSerializationError,
    OSError,
    OverflowError,
    UnicodeDecodeError,
)


Choose = Callable[[pa.Schema], Mapping[str, str]]
"""Gives, for a file's schema, the columns to read: by the name in the file, the name to use. Raises RowsProblem."""


def declared(names: Names, vectors: Collection[str] = ()) -> Choose:
    """Chooses all columns, which have to be those of `names`; pandas' index columns without a name are left out.

    Lists of numbers are read only in the columns `vectors`.
    """

    def choose(schema: pa.Schema) -> Mapping[str, str]:
        known = {*names.declared, *names.in_file}
        found = names.read([name for name in schema.names if name in known or INDEX.fullmatch(name) is None])
        problems = Problems()
        for name, read_as in found.items():
            kind = schema.field(name).type
            if is_unread(kind) and not (read_as in vectors and is_listed(kind)):
                problems.add("the column's type is not read: it is a list, a structure or an extension", column=name)
        problems.raise_if_any()
        return found

    return choose


def parquet_batches(source: BinaryIO, choose: Choose, size: Counter) -> Iterator[pa.RecordBatch]:
    """Pieces of the chosen columns, plain arrays. Raises RowsProblem when file, columns or text cannot be read."""
    try:
        metadata = pq.read_metadata(source)
        schema = metadata.schema.to_arrow_schema()
        found = choose(schema)
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        size.announce(sum(group.num_rows for group in groups), sum(group.total_byte_size for group in groups))
        listed = [_listed_bytes(group, schema) for group in groups]
        size.announce(0, sum(listed))
        file = pq.ParquetFile(
            source, metadata=metadata, buffer_size=_BUFFER_BYTES, read_dictionary=_repetitive(groups, found)
        )
        rows_before = 0
        for number, group in enumerate(groups):
            rows = min(max(group.num_rows * PIECE_BYTES // max(listed[number], 1), 1), PIECE_ROWS)
            batches = file.iter_batches(rows, row_groups=[number], columns=list(found), use_threads=False)
            for batch in batches:
                yield from _pieces(_named(batch, found), rows_before, size)
                rows_before += batch.num_rows
    except pa.ArrowCapacityError as error:
        raise RowsProblem.of(_TOO_LONG) from error
    except _UNREADABLE as error:
        raise RowsProblem.of("the body is not a readable Parquet file") from error


def arrow_batches(source: BinaryIO, choose: Choose, size: Counter) -> Iterator[pa.RecordBatch]:
    """Pieces of the chosen columns of an Arrow IPC stream, as `parquet_batches` gives them."""
    try:
        reader = pa.ipc.open_stream(source)
        found = choose(reader.schema)
        rows_before = 0
        for batch in reader:
            size.announce(batch.num_rows)
            yield from _pieces(_named(batch, found), rows_before, size)
            rows_before += batch.num_rows
    except pa.ArrowCapacityError as error:
        raise RowsProblem.of(_TOO_LONG) from error
    except _UNREADABLE as error:
        raise RowsProblem.of("the body is not a readable Arrow stream") from error


BATCHES: Final = {
    "application/vnd.apache.parquet": parquet_batches,
    "application/vnd.apache.arrow.stream": arrow_batches,
}
"""How the files are read, by media type."""


def _named(batch: pa.RecordBatch, found: Mapping[str, str]) -> pa.RecordBatch:
    return batch.select(list(found)).rename_columns(list(found.values()))


def is_unread(kind: pa.DataType) -> bool:
    """Tell whether values of the type are never read: lists, structures, extensions."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return is_unread(kind.value_type)
    return isinstance(kind, pa.BaseExtensionType) or bool(pa.types.is_nested(kind))


def _listed_bytes(group: pq.RowGroupMetaData, schema: pa.Schema) -> int:
    """The bytes of all numbers in lists after decoding; a few bytes of Parquet may stand for many numbers."""
    taken = 0
    for number in range(group.num_columns):
        column = group.column(number)
        place = schema.get_field_index(column.path_in_schema.partition(".")[0])
        if place >= 0 and is_listed(schema.field(place).type):
            taken += column.num_values * _bytes_of(schema.field(place).type.value_type)
    return taken


def _repetitive(groups: Sequence[pq.RowGroupMetaData], found: Collection[str]) -> list[str]:
    """The columns of text that take fewer bytes than all their values would take, and so must repeat values.

    These columns are read as dictionaries, which are expanded under a bound. For other columns a dictionary would take
    longer.
    """
    rows = sum(group.num_rows for group in groups)
    taken = dict.fromkeys(found, 0)
    for group in groups:
        for number in range(group.num_columns):
            column = group.column(number)
            if "." in column.path_in_schema:
                taken.pop(column.path_in_schema.partition(".")[0], None)  # a list is no text
            elif column.path_in_schema in taken:
                is_text = column.physical_type == "BYTE_ARRAY" and "RLE_DICTIONARY" in column.encodings
                taken[column.path_in_schema] += column.total_uncompressed_size if is_text else _LENGTH_BYTES * rows
    return [name for name, count in taken.items() if count < _LENGTH_BYTES * rows]


def _pieces(batch: pa.RecordBatch, rows_before: int, size: Counter) -> Iterator[pa.RecordBatch]:
    """The batch in pieces; the bytes of each piece are counted before it is expanded."""
    names = batch.schema.names
    columns = [_valid(batch.column(at), name, rows_before) for at, name in enumerate(names)]
    for column in columns:
        if pa.types.is_dictionary(column.type):
            size.announce(len(column.dictionary))
    for start in range(0, batch.num_rows, PIECE_ROWS):
        rows = min(PIECE_ROWS, batch.num_rows - start)
        parts = [column.slice(start, rows) for column in columns]
        taken = np.zeros(rows, dtype=np.int64)
        for part in parts:
            taken += _value_bytes(part)
        size.decode(int(taken.sum()))
        for first, last in _cuts(taken):
            plain = [_plain(part.slice(first, last - first)) for part in parts]
            yield pa.RecordBatch.from_arrays(plain, names=names)


def _cuts(taken: Integers) -> Iterator[tuple[int, int]]:
    """The first row and the end of each piece; `taken` (n,) is how many bytes each row takes."""
    ends = np.cumsum(taken)
    first = 0
    while first < ends.size:
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + PIECE_BYTES, side="right")), first + 1)
        yield first, last
        first = last


def _value_bytes(array: pa.Array) -> Integers:
    """The bytes that each value (n,) takes in a plain array."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        values = np.append(_value_bytes(array.dictionary), 0)
        of_row: Integers = values[
            array.indices.cast(pa.int64()).fill_null(values.size - 1).to_numpy(zero_copy_only=False)
        ]
        return of_row
    if pa.types.is_run_end_encoded(kind):
        first, count = array.find_physical_offset(), array.find_physical_length()
        ends = array.run_ends.slice(first, count).to_numpy().astype(np.int64) - array.offset
        return np.repeat(_value_bytes(array.values.slice(first, count)), np.diff(ends.clip(max=len(array)), prepend=0))
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        views = np.frombuffer(array.buffers()[1], dtype=np.int32).reshape(-1, 4)
        present = array.is_valid().to_numpy(zero_copy_only=False)
        return np.where(present, views[array.offset : array.offset + len(array), 0], 0).astype(np.int64)
    if is_listed(kind):
        counts = pc.list_value_length(array).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        listed: Integers = counts * _bytes_of(kind.value_type)
        return listed
    if _is_text(kind):
        lengths: Integers = pc.binary_length(array).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return lengths
    return np.full(len(array), 0 if pa.types.is_null(kind) else _bytes_of(kind), dtype=np.int64)


def _bytes_of(kind: pa.DataType) -> int:
    """The bytes of a value of fixed width."""
    return -(-int(kind.bit_width) // 8)


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def _valid(array: pa.Array, name: str, rows_before: int) -> pa.Array:
    """The array, after a check of all its offsets and bytes. Raises RowsProblem."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        found = _UTF8_PROBLEM.search(str(error))
        row = None if found is None else _first_row(array, int(found.group(1)))
        place = None if row is None else rows_before + row + 1
        raise RowsProblem.of("not valid UTF-8" if found else "a malformed array", row=place, column=name) from error
    return array


def _first_row(array: pa.Array, value: int) -> int | None:
    """The first row (from 0) with the value at index `value` of array, dictionary or runs; None if no row has it."""
    if pa.types.is_dictionary(array.type):
        row = pc.index(array.indices, value).as_py()
        return None if row < 0 else row
    if pa.types.is_run_end_encoded(array.type):
        return int(array.run_ends[value - 1].as_py()) if value else 0
    return value


def _plain(array: pa.Array) -> pa.Array:
    """The array without dictionary or run-length layout, and with text in one layout."""
    if pa.types.is_dictionary(array.type):
        array = pa.DictionaryArray.from_arrays(array.indices, _plain(array.dictionary)).dictionary_decode()
    if pa.types.is_run_end_encoded(array.type):
        array = _plain(pc.run_end_decode(array))
    is_text = pa.types.is_string_view(array.type) or pa.types.is_large_string(array.type)
    return array.cast(pa.string()) if is_text else array
