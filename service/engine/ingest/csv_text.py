"""CSV after RFC 4180: a header line, fields of bytes. What they mean the declared columns say; nothing is guessed."""

import csv
from collections.abc import Collection, Iterator, Sequence
from io import TextIOWrapper
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv as pa_csv

from service.engine.ingest.header import check_header
from service.engine.ingest.problems import Problems, RowsProblem

ROW_BYTES_MAX = 2**23  # the parser needs a whole row in one block
DELIMITERS = {",": "','", ";": "';'", "\t": "a tab", "|": "'|'"}
"""The marks that may stand between fields, as messages show them."""
_QUOTE = b'"'


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
