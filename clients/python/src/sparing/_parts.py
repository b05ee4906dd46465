"""The parts of a long upload of a data frame or a file: equal numbers of rows, and the same parts in every call."""

import csv
import importlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar, cast

from sparing._files import ARROW, NDJSON, PARQUET, Opened, Source, opened_of
from sparing._frames import Frame, check_lengths, is_frame, library_of, ours, pyarrow
from sparing._records import are_records

Row = TypeVar("Row")
Part = tuple[Frame | bytes, str | None]
"""A data frame and None, or the bytes of a file and its content type."""

_ROWS_READ = 65_536


def parts_of(source: Frame | Source, content_type: str | None, rows: int, delimiter: str = ",") -> Iterator[Part]:
    """The parts of a source, of `rows` rows each but the last; a source without rows is one empty part.

    A frame in memory is cut without copies; files and Arrow streams are read part by part. CSV and NDJSON are cut
    between rows, byte for byte, and every part of CSV has the header. Raises OSError if a path cannot be read,
    ImportError if pyarrow is needed and not installed, and ValueError if CSV cannot be cut.
    """
    if is_frame(source) or isinstance(source, Mapping):
        return ((part, None) for part in _of_frame(source, rows))
    if are_records(source):
        return ((part, None) for part in _of_records(cast("Iterable[object]", source), rows))
    opened, inferred, _ = opened_of(source)
    kind = content_type or inferred
    form = kind.partition(";")[0].strip().lower()
    if form in {PARQUET, ARROW}:
        return ((part, None) for part in _of_typed(opened, form, rows))
    parts = _of_ndjson(opened, rows) if form == NDJSON else _of_csv(opened, rows, delimiter)
    return ((part, kind) for part in parts)


def _of_frame(frame: Frame, rows: int) -> Iterator[Frame]:
    library = library_of(frame)
    if library == "polars":
        frame = frame.collect() if hasattr(frame, "collect") else frame
        return (frame.slice(start, rows) for start in range(0, max(frame.height, 1), rows))
    if library == "pandas":
        return (frame.iloc[start : start + rows] for start in range(0, max(len(frame), 1), rows))
    if isinstance(frame, Mapping):
        check_lengths(frame)
        length = max((len(values) for values in frame.values()), default=0)
        starts = range(0, max(length, 1), rows)
        return ({name: values[start : start + rows] for name, values in frame.items()} for start in starts)
    arrow = pyarrow("an Arrow table")
    return _of_batches(arrow, arrow.RecordBatchReader.from_stream(frame), rows)


def _of_records(data: Iterable[Row], rows: int) -> Iterator[list[Row]]:
    """Lists of `rows`, of which there is one where there is nothing."""
    waiting = iter(data)
    yield list(itertools.islice(waiting, rows))
    while part := list(itertools.islice(waiting, rows)):
        yield part


def _of_typed(opened: Opened, content_type: str, rows: int) -> Iterator[Frame]:
    arrow = pyarrow("a Parquet file or Arrow stream in parts")
    with opened() as file, ours("the file cannot be read"):
        if content_type == ARROW:
            yield from _of_batches(arrow, arrow.ipc.open_stream(file), rows)
            return
        parquet = importlib.import_module("pyarrow.parquet").ParquetFile(file)
        batches = parquet.iter_batches(batch_size=min(rows, _ROWS_READ))
        yield from _of_batches(arrow, arrow.RecordBatchReader.from_batches(parquet.schema_arrow, batches), rows)


def _of_batches(arrow: Any, reader: Any, rows: int) -> Iterator[Frame]:  # noqa: ANN401 - a module, and a reader of it
    """Tables of `rows` rows each, whatever the size of the reader's batches."""
    waiting: list[Any] = []
    count, is_first = 0, True
    for batch in reader:
        waiting.append(batch)
        count += batch.num_rows
        if count < rows:
            continue
        table = arrow.Table.from_batches(waiting, reader.schema)
        for start in range(0, count - rows + 1, rows):
            yield table.slice(start, rows)
        is_first, count = False, count % rows
        waiting = table.slice(table.num_rows - count).to_batches()
    if count or is_first:
        yield arrow.Table.from_batches(waiting, reader.schema)


def _of_csv(opened: Opened, rows: int, delimiter: str) -> Iterator[bytes]:
    with opened() as file:
        records = _records(file, delimiter)
        header = next(records, b"")
        yield from (header + b"".join(part) for part in _of_records(records, rows))


def _of_ndjson(opened: Opened, rows: int) -> Iterator[bytes]:
    with opened() as file:
        yield from map(b"".join, _of_records(file, rows))


def _records(lines: Iterable[bytes], delimiter: str) -> Iterator[bytes]:
    """The records of CSV: lines, joined if a quoted field spans several. Raises ValueError for unreadable CSV."""
    record: list[bytes] = []

    def taken() -> Iterator[str]:
        for line in lines:
            record.append(line)
            yield line.decode(errors="surrogateescape")

    reader = csv.reader(taken(), delimiter=delimiter)
    try:
        for _ in reader:
            yield b"".join(record)
            record.clear()
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num} of the CSV: {error}") from None
