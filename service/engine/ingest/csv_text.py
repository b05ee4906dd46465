"""Batches of an upload's columns: from CSV after RFC 4180, whose fields are bytes, and from Parquet and Arrow streams.

In CSV the declared columns say what a field means, and nothing is guessed. Parquet and Arrow carry types of their own;
both are foreign memory layouts, so every array is validated in full before anything reads it. The names of the columns
are the declared ones, in any order.
"""

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from io import TextIOWrapper
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from service.engine.ingest.problems import Problems, RowsProblem

ROW_BYTES_MAX = 2**23  # the parser needs a whole row in one block
DELIMITERS = {",": "','", ";": "';'", "\t": "a tab", "|": "'|'"}
"""The marks that may stand between fields, as messages show them."""
_QUOTE = b'"'
BATCH_ROWS = 2**16
_INDEX = re.compile(r"__index_level_[0-9]+__")
_UTF8_PROBLEM = re.compile(r"Invalid UTF8 sequence at string index (\d+)")


def csv_batches(
    source: BinaryIO, names: Collection[str], problems: Problems, *, delimiter: str = ","
) -> Iterator[pa.RecordBatch]:
    """Batches of binary columns named `names`, an empty field as NULL. Broken rows are noted and skipped.

    Raises RowsProblem when the header or the file as a whole cannot be read.
    """
    watched = _Watched(source)
    try:
        reader = pa_csv.open_csv(
            watched,
            read_options=pa_csv.ReadOptions(use_threads=False, block_size=ROW_BYTES_MAX),
            parse_options=pa_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=_Noting(problems)
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.binary()), null_values=[""], strings_can_be_null=True
            ),
        )
        _check_delimiter(reader.schema.names, names)
        check_header(reader.schema.names, names)
        yield from reader
    except UnicodeDecodeError as error:
        raise RowsProblem.of("the header is not UTF-8") from error
    except pa.ArrowInvalid as error:
        if not problems.is_hopeless:
            raise RowsProblem.of(_reason(error, watched)) from error
    if watched.quotes % 2 == 1:
        # The parser takes the end of the file for the closing mark, so that a cut upload would look whole.
        raise RowsProblem.of("a quotation mark is not closed")


def lines_of_rows(source: BinaryIO, rows: Collection[int], *, delimiter: str = ",") -> dict[int, int]:
    """The line (from 1) on which each of `rows` (data rows from 1) begins; what cannot be found again is left out."""
    if not source.seekable() or not rows:
        return {}
    source.seek(0)
    text = TextIOWrapper(source, encoding="latin-1", newline="")
    try:
        return dict(_starts(text, rows, delimiter))
    except csv.Error:
        return {}
    finally:
        text.detach()


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
    """As `parquet_batches`, from an Arrow IPC stream."""
    try:
        reader = pa.ipc.open_stream(source)
        found = _without_index(reader.schema.names, names)
        check_header(found, names)
        yield from _checked(batch.select(found) for batch in reader)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise RowsProblem.of("the body is not a readable Arrow stream") from error


def check_header(found: Sequence[str], declared: Collection[str]) -> None:
    """Raises RowsProblem naming every duplicate, unknown and missing column."""
    problems = Problems()
    for name, count in Counter(found).items():
        if count > 1:
            problems.add("the column appears more than once", column=name)
        if name not in declared:
            problems.add("the column is not declared", column=name)
    for name in declared:
        if name not in found:
            problems.add("the column is missing", column=name)
    problems.raise_if_any()


def _starts(text: TextIOWrapper, rows: Collection[int], delimiter: str) -> Iterator[tuple[int, int]]:
    reader = csv.reader(text, delimiter=delimiter)
    row, last, line = -1, max(rows), 1
    for fields in reader:
        if fields:
            row += 1
            if row in rows:
                yield row, line
            if row >= last:
                return
        line = reader.line_num + 1


def _check_delimiter(found: Sequence[str], declared: Collection[str]) -> None:
    """Raises RowsProblem where the only name of a header is several names between other marks."""
    if len(found) != 1 or found[0] in declared:
        return
    for mark, shown in DELIMITERS.items():
        if mark in found[0]:
            raise RowsProblem.of(f"the header looks delimited by {shown}: state it as the parameter `delimiter`")


class _Watched:
    """The file as the parser reads it: counts quotation marks, fills every block, and ends the last line if it is open.

    The parser takes a short block for a whole one, and calls a file empty whose header comes without its line end.
    """

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._last = b"\n"
        self.quotes = 0
        self.closed = False

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, fewer only at the end, where a byte of room is kept for a line end; then empty."""
        pieces, left = [], size - 1
        while left > 0 and (piece := self._source.read(left)):
            pieces.append(piece)
            left -= len(piece)
        data = b"".join(pieces)
        self.quotes += data.count(_QUOTE)
        self._last = data[-1:] or self._last
        if left > 0 and self._last != b"\n":
            self._last = b"\n"
            return data + b"\n"
        return data

    def close(self) -> None:
        """The source belongs to the caller and stays open."""
        self.closed = True


class _Noting:
    """Called by the parser for each row with the wrong number of fields."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems

    def __call__(self, row: pa_csv.InvalidRow) -> str:
        message = f"{row.actual_columns} fields where the header has {row.expected_columns}"
        self._problems.add_broken_row(message, row.number - 1)
        return "error" if self._problems.is_hopeless else "skip"


def _reason(error: pa.ArrowInvalid, watched: _Watched) -> str:
    if watched.quotes % 2 == 1:
        return "a quotation mark is not closed"
    if "Empty CSV" in str(error):
        return "the file is empty: a header line is required"
    if "straddling" in str(error):
        return f"a row is longer than {ROW_BYTES_MAX} bytes"
    return "the file cannot be read as CSV (RFC 4180)"


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
