"""The parts of a long upload: so many rows each, of a data frame or a file, and the same ones each time."""

import csv
import importlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from sparing._files import ARROW, NDJSON, PARQUET, Opened, Source, opened_of
from sparing._frames import Frame, check_lengths, is_frame, library_of, ours, pyarrow
from sparing._records import are_records

Part = tuple[Frame | bytes, str | None]
"""Rows as a data frame, or as a file of the content type."""

_ROWS_READ = 65_536


def parts_of(source: Frame | Source, content_type: str | None, rows: int, delimiter: str = ",") -> Iterator[Part]:
    """The rows of a source in parts of `rows`, and the rest in the last; one part without rows where there are none.

    A frame that has its rows already is cut without copies; a file and a stream of Arrow are read as parts are asked
    for. CSV and NDJSON are cut between rows, byte for byte, and CSV has its header in every part. Raises OSError where
    a path cannot be read, ImportError where pyarrow is needed and not installed, ValueError where CSV cannot be cut.
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


def _of_records(data: Iterable[object], rows: int) -> Iterator[Frame]:
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
    """Tables of `rows` rows, however these come."""
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


def _of_lines(lines: Iterator[bytes], rows: int) -> Iterator[bytes]:
    yield b"".join(itertools.islice(lines, rows))
    while part := b"".join(itertools.islice(lines, rows)):
        yield part


def _of_csv(opened: Opened, rows: int, delimiter: str) -> Iterator[bytes]:
    with opened() as file:
        records = _records(file, delimiter)
        header = next(records, b"")
        for part in _of_lines(records, rows):
            yield header + part


def _of_ndjson(opened: Opened, rows: int) -> Iterator[bytes]:
    with opened() as file:
        yield from _of_lines(iter(file), rows)


def _records(lines: Iterable[bytes], delimiter: str) -> Iterator[bytes]:
    """The lines of CSV, joined where a quoted field goes on in the next. Raises ValueError where none can be read."""
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
