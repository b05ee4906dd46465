"""Rows as mappings from column to value: dicts, and the rows of cursors, such as sqlite3.Row or those of SQLAlchemy."""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from sparing._columns import Columns, chosen_columns
from sparing._wire import json_of, record_of

Record = Mapping[str, object]


def are_records(data: object) -> bool:
    """Tell whether some data may be rows: a list, a cursor or another iterable, but not text, bytes or an open file."""
    return isinstance(data, Iterable) and not (
        isinstance(data, str | bytes | bytearray | memoryview | Mapping) or hasattr(data, "read")
    )


def records_of(data: object) -> list[Record]:
    """The rows as mappings from column to value. Raises TypeError for other data; the message says what is taken."""
    if not are_records(data):
        raise TypeError(f"rows are a list of mappings from column to value, or a data frame, not a {_kind(data)}")
    return [_record(number, row) for number, row in enumerate(cast("Iterable[object]", data), start=1)]


def ndjson_of(records: Sequence[Record], columns: Columns, declared: Sequence[str]) -> bytes:
    """The declared columns of rows as NDJSON; NaN and columns that a row lacks become NULL.

    Raises ColumnsError if the columns are not the declared ones, and ValueError for a value that JSON cannot hold.
    """
    found = list(dict.fromkeys(name for record in records for name in record)) if records else list(declared)
    names = chosen_columns(found, columns if records else {}, declared)
    return b"".join(_line(number, record, names) for number, record in enumerate(records, start=1))


def _record(number: int, row: object) -> Record:
    """One row: a mapping, a row with `keys` such as sqlite3.Row, or a named tuple such as a row of SQLAlchemy."""
    as_dict = getattr(row, "_asdict", None)
    named = as_dict() if as_dict is not None else row
    if not hasattr(named, "keys"):
        raise TypeError(f"row {number} is a {_kind(row)}; rows are mappings from column to value")
    return {str(name): value for name, value in dict(cast("Mapping[object, object]", named)).items()}


def _line(number: int, record: Record, names: Mapping[str, str]) -> bytes:
    try:
        return json_of(record_of({target: record.get(name) for name, target in names.items()})) + b"\n"
    except (TypeError, ValueError):
        raise ValueError(f"row {number}: {_unsendable(record, names)} has no form in a file") from None


def _unsendable(record: Record, names: Mapping[str, str]) -> str:
    """The first column whose value cannot be sent, and the kind of the value."""
    for name in names:
        try:
            json_of(record_of({name: record.get(name)}))
        except (TypeError, ValueError):
            return f"the {_kind(record.get(name))} in the column {name!r}"
    return "it"


def _kind(value: object) -> str:
    return type(value).__name__
