"""Files whose columns are renamed for an upload: their rows with only the declared columns, under declared names.

CSV and NDJSON are rewritten row by row, Parquet and Arrow as whole tables, with pyarrow.
"""

import csv
import importlib
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from sparing._columns import Columns, chosen_columns
from sparing._files import ARROW, CSV, NDJSON, PARQUET, Opened
from sparing._frames import ours, parquet_of_arrow, pyarrow
from sparing._requests import Content

_ROWS_AT_ONCE = 1024


def renamed(
    opened: Opened, content_type: str, columns: Columns, declared: Sequence[str], delimiter: str
) -> tuple[Callable[[], Content], str]:
    """A function that reads the rows under their declared names, for each try of an upload; and their content type.

    Raises ColumnsError if the columns are not the declared ones; for NDJSON, those of the first row decide.
    """
    if content_type in {PARQUET, ARROW}:
        content = _of_typed(opened, content_type, columns, declared)
        return lambda: content, PARQUET
    with opened() as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        if content_type == CSV:
            header = next(csv.reader(text, delimiter=delimiter), [])
        else:
            header = list(_members(next((line for line in text if line.strip()), "{}")))
    names = chosen_columns(header, columns, declared)
    if content_type == CSV:
        return lambda: _csv_rows(opened, header, names, delimiter), CSV
    return lambda: _ndjson_rows(opened, columns), NDJSON


def _of_typed(opened: Opened, content_type: str, columns: Columns, declared: Sequence[str]) -> bytes:
    arrow = pyarrow("a Parquet file or Arrow stream with other names")
    with opened() as file:
        source = io.BytesIO(file.read())
    with ours("the file cannot be read"):
        if content_type == PARQUET:
            table = importlib.import_module("pyarrow.parquet").read_table(source)
        else:
            table = arrow.ipc.open_stream(source).read_all()
    return parquet_of_arrow(table, columns, declared)


def _members(line: str | bytes) -> dict[str, object]:
    """A row of NDJSON as a mapping. Raises ValueError for other lines."""
    found = json.loads(line)
    if not isinstance(found, dict):
        raise ValueError("a row of NDJSON must be an object")  # noqa: TRY004 - as of text that is no JSON
    return found


def _csv_rows(opened: Opened, header: Sequence[str], names: Mapping[str, str], delimiter: str) -> Iterator[bytes]:
    """The rows with only the chosen fields. A row of another length is kept whole, so that the service reports it."""
    places = [header.index(name) for name in names]
    with opened() as file:
        rows = csv.reader(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""), delimiter=delimiter)
        next(rows, None)
        written = io.StringIO()
        writer = csv.writer(written, delimiter=delimiter, lineterminator="\n")
        writer.writerow(names.values())
        for number, row in enumerate(filter(None, rows), start=1):
            whole = len(row) == len(header)
            writer.writerow([row[place] for place in places] if whole else [*row, *[""] * len(header)])
            if number % _ROWS_AT_ONCE == 0:
                yield written.getvalue().encode()
                written.seek(0)
                written.truncate()
        yield written.getvalue().encode()


def _ndjson_rows(opened: Opened, columns: Columns) -> Iterator[bytes]:
    with opened() as file:
        for line in file:
            if line.strip():
                members = _members(line)
                names = {name: columns.get(name, name) for name in members}
                kept = {target: members[name] for name, target in names.items() if target is not None}
                yield json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
