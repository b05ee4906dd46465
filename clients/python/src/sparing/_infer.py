"""A proposal for a schema, made where the data is: on the curator's own machine, and never by the service.

A schema is public. A domain that is read off the data (bounds, categories, rows of one individual) can tell about an
individual, such as the oldest, so every such domain carries a member `confirm` that says so. The service refuses a
registration with it: the curator has to replace the domain by one known from elsewhere, or accept it, column by column.
"""

import csv
import io
import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparing._domains import Seen, plain_name
from sparing._files import ARROW, CSV, Source, opened_of
from sparing._frames import Frame, is_frame, pyarrow

CONFIRM_ROWS = "rows_per_individual was read off the data: state a bound that holds for any data"
KEY_NAMES = ("id", "key", "person", "individual", "customer", "patient", "user")
MARKS = (",", ";", "\t", "|")


def infer_schema(
    data: Frame | Source, *, table: str | None = None, key: str | None = None, kind: str | None = None
) -> dict[str, Any]:
    """Propose the schema of one table from a data frame or a file. Nothing is sent anywhere.

    Args:
        data: as `client.datasets.upload` takes it.
        table: the table's name; by default that of the file.
        key: the column that names the individual; by default the first one that sounds like it.
        kind: `individuals` (one row each) or `events`; by default whether a key repeats.

    Returns:
        `tables`, the proposal; `columns`, the mapping for an upload where names had to change; `left_out`, columns for
        which no declaration fits, with reasons; `delimiter` of a CSV file where it is not a comma. Every domain read
        off the data is marked by a member `confirm` beside it, with which no registration is accepted.

    Raises:
        ValueError: the data is empty, has no such key, or `kind` is neither of the two.
    """
    if kind not in {None, "individuals", "events"}:
        raise ValueError("kind must be 'individuals' or 'events'")
    delimiter, found = _seen(data)
    named = _names(found)
    chosen = _key_of(found, key)
    left_out = {name: reason for name, seen in found.items() if name != chosen and (reason := seen.obstacle())}
    kept = {named[name]: seen.column() for name, seen in found.items() if name != chosen and name not in left_out}
    declared = _table(found[chosen], named[chosen], kept, kind)
    proposal: dict[str, Any] = {"tables": {plain_name(table or _stem(data)): declared}}
    renamed = {
        name: None if name in left_out else new for name, new in named.items() if name != new or name in left_out
    }
    stated = {"columns": renamed, "left_out": left_out, "delimiter": delimiter if delimiter != "," else None}
    return proposal | {name: value for name, value in stated.items() if value}


def _table(key: Seen, name: str, columns: Mapping[str, object], kind: str | None) -> dict[str, Any]:
    most = max(key.counts.values(), default=1)
    if (kind or ("individuals" if most == 1 else "events")) == "individuals":
        return {"kind": "individuals", "key": name, "columns": columns}
    bound = 2 ** math.ceil(math.log2(most))
    return {"kind": "events", "key": name, "columns": columns, "rows_per_individual": bound, "confirm": CONFIRM_ROWS}


def _key_of(found: Mapping[str, Seen], key: str | None) -> str:
    if key is not None and key not in found:
        raise ValueError(f"there is no column {key!r}; there are {', '.join(map(repr, found))}")
    likely = [name for word in KEY_NAMES for name in found if plain_name(name).endswith(word)]
    return key or (likely or list(found))[0]


def _names(found: Iterable[str]) -> dict[str, str]:
    """Names that a schema takes: lower case, letters, digits and underscores, each once."""
    taken: Counter[str] = Counter()
    named = {}
    for name in found:
        plain = plain_name(name)
        taken[plain] += 1
        named[name] = plain if taken[plain] == 1 else f"{plain}_{taken[plain]}"
    return named


def _stem(data: Frame | Source) -> str:
    return Path(data).name.partition(".")[0] if isinstance(data, str | os.PathLike) else "people"


def _seen(data: Frame | Source) -> tuple[str, dict[str, Seen]]:
    """The delimiter, and what was seen of every column."""
    delimiter, columns = ",", {}
    if is_frame(data):
        columns = {name: Seen(values, is_text=False) for name, values in _of_frame(data)}
    else:
        opened, content_type, _ = opened_of(data)
        if content_type not in {CSV, "application/x-ndjson"}:
            with opened() as file:
                return _seen(_read_arrow(file.read(), content_type))
        with opened() as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            delimiter, rows = (
                _csv_rows(text) if content_type == CSV else (",", map(json.loads, filter(str.strip, text)))
            )
            columns = _by_column(rows, is_text=content_type == CSV)
    if not columns:
        raise ValueError("there is no column")
    return delimiter, columns


def _by_column(rows: Iterable[Mapping[str, object]], *, is_text: bool) -> dict[str, Seen]:
    columns: dict[str, Seen] = {}
    for row in rows:
        for name, value in row.items():
            columns.setdefault(name, Seen((), is_text=is_text)).add(value)
    return columns


def _csv_rows(text: io.TextIOWrapper) -> tuple[str, Iterator[dict[str, object]]]:
    """The delimiter, by the header, and the rows; a row of another length is left out."""
    first = text.readline()
    delimiter = max(MARKS, key=first.count)
    header = next(csv.reader([first], delimiter=delimiter), [])
    rows = (row for row in csv.reader(text, delimiter=delimiter) if len(row) == len(header))
    return delimiter, (dict(zip(header, row, strict=True)) for row in rows)


def _of_frame(frame: Frame) -> Iterator[tuple[str, Sequence[object]]]:
    library = type(frame).__module__.partition(".")[0]
    if library == "polars":
        frame = frame.collect() if hasattr(frame, "collect") else frame
        yield from ((name, frame[name].to_list()) for name in frame.columns)
    elif library == "pandas":
        yield from ((str(name), values.tolist()) for name, values in frame.items())
    else:
        table = pyarrow("an Arrow table").table(frame)
        yield from ((name, table.column(name).to_pylist()) for name in table.column_names)


def _read_arrow(content: bytes, content_type: str) -> Frame:
    arrow = pyarrow("a Parquet file or Arrow stream")
    if content_type == ARROW:
        return arrow.ipc.open_stream(io.BytesIO(content)).read_all()
    import pyarrow.parquet as pq  # noqa: PLC0415 - only where a Parquet file is read

    return pq.read_table(io.BytesIO(content))
