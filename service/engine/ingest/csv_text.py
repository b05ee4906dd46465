"""Batches of an upload's columns from CSV after RFC 4180, whose fields are bytes.

The declared columns say what a field means, and nothing is guessed. The columns of a file may be in any order.
"""

import csv
import re
from collections.abc import Collection, Iterator, Sequence
from io import TextIOWrapper
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv as pa_csv

from service.engine.ingest.names import Names
from service.engine.ingest.problems import Problems, RowsProblem
from service.engine.ingest.upload_size import PIECE_ROWS

ROW_BYTES_MAX = 2**20  # the parser needs a whole row in one block, and takes some forty times the block
DELIMITERS = {",": "','", ";": "';'", "\t": "a tab", "|": "'|'"}
"""The marks that may stand between fields, as messages show them."""
_QUOTE = b'"'
_LINE_END = re.compile(rb"\r|\n")
COLUMNS_MAX = 2**12  # undeclared ones, so that a header is refused before the parser builds an array for each


def csv_batches(
    source: BinaryIO, names: Names, problems: Problems, *, delimiter: str = ","
) -> Iterator[pa.RecordBatch]:
    """Batches of binary columns by their declared names, an empty field as NULL. Broken rows are noted and skipped.

    Raises RowsProblem when the header or the file as a whole cannot be read.
    """
    known = [*names.declared, *names.in_file]
    watched = _Watched(source, delimiter, len(names.declared) + COLUMNS_MAX)
    try:
        reader = pa_csv.open_csv(
            watched,
            read_options=pa_csv.ReadOptions(use_threads=False, block_size=ROW_BYTES_MAX),
            parse_options=pa_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=_Noting(problems)
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(known, pa.binary()), null_values=[""], strings_can_be_null=True
            ),
        )
        _check_delimiter(reader.schema.names, known)
        read = names.read(reader.schema.names)
        for batch in reader:
            named = batch.select(list(read)).rename_columns(list(read.values()))
            for start in range(0, batch.num_rows, PIECE_ROWS):
                yield named.slice(start, PIECE_ROWS)
    except UnicodeDecodeError as error:
        raise RowsProblem.of("the header is not UTF-8") from error
    except pa.ArrowInvalid as error:
        if not problems.is_hopeless:
            raise RowsProblem.of(_reason(error, watched)) from error
    if watched.quotes % 2 == 1:
        # The parser takes the end of the file for the closing mark, so that a cut upload would look whole.
        raise RowsProblem.of("a quotation mark is not closed")


def lines_of_rows(source: BinaryIO, rows: Collection[int], *, delimiter: str = ",") -> dict[int, int]:
    """The line (from 1) on which each of `rows` (data rows from 1) begins; rows not found again are left out."""
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
    """Raise RowsProblem for a header whose only name looks like several names with another delimiter."""
    if len(found) != 1 or found[0] in declared:
        return
    for mark, shown in DELIMITERS.items():
        if mark in found[0]:
            raise RowsProblem.of(f"the header looks delimited by {shown}: state it as the parameter `delimiter`")


class _Watched:
    """The file as the parser reads it: counts quotation marks, fills every block, and ends the last line if it is open.

    To the parser a short block is complete, and a file is empty if its header has no line end.
    """

    def __init__(self, source: BinaryIO, delimiter: str, columns_max: int) -> None:
        self._source, self._mark, self._columns_max = source, delimiter.encode(), columns_max
        self._last = b"\n"
        self._is_first = True
        self.quotes = 0
        self.closed = False

    def read(self, size: int) -> bytes:
        """Read `size` - 1 bytes; at the end of the file the rest, with a line end if it has none; then no bytes.

        Raises RowsProblem for a header with too many columns.
        """
        pieces, left = [], size - 1
        while left > 0 and (piece := self._source.read(left)):
            pieces.append(piece)
            left -= len(piece)
        data = b"".join(pieces)
        if self._is_first:
            self._is_first = False
            self._check_width(_LINE_END.split(data, maxsplit=1)[0])
        self.quotes += data.count(_QUOTE)
        self._last = data[-1:] or self._last
        if left > 0 and self._last != b"\n":
            self._last = b"\n"
            return data + b"\n"
        return data

    def _check_width(self, header: bytes) -> None:
        found = header.count(self._mark) + 1
        if found > self._columns_max:
            raise RowsProblem.of(f"the header has {found} columns: at most {self._columns_max} are read")

    def close(self) -> None:
        """Note the end; the source belongs to the caller and stays open."""
        self.closed = True


class _Noting:
    """Notes each row with the wrong number of fields; the parser calls this."""

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
