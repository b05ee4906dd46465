"""NDJSON: one object a line, every declared column in each, `null` for no value.

Arrow's own JSON reader would be faster, but it guesses types across rows, silently keeps the last of two members of the
same name, and does not say which row is wrong. The JSON type of a value is checked, and after that the value is handled
as text, so that CSV and NDJSON mean the same.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import BinaryIO

import orjson
import pyarrow as pa

from service.engine.ingest.names import ColumnNames, Names
from service.engine.ingest.problems import Problems, RowsProblem
from service.engine.ingest.upload_size import PIECE_BYTES, PIECE_ROWS
from service.engine.ingest.vectors import listed_numbers

LINE_BYTES_MAX = 2**23
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NAMES = {str: "text", int: "an integer", float: "a number", bool: "a boolean", list: "a list", dict: "an object"}

JsonTypes = frozenset[type]
"""The JSON types a column takes, as Python reads them; null is always taken."""


def ndjson_batches(
    source: BinaryIO, types: Mapping[str, JsonTypes], problems: Problems, columns: ColumnNames = MappingProxyType({})
) -> Iterator[pa.RecordBatch]:
    """Batches of columns of text, or of lists, named as in `types`. `columns` maps members with other names.

    A wrong value in a row is noted and becomes NULL.
    """
    rows_before = 0
    names = Names(types.keys(), columns)
    for chunk in _chunks(_lines(source)):
        rows = [_row(line, names, problems, rows_before + at) for at, line in enumerate(chunk, start=1)]
        yield _batch(rows, types, problems, rows_before)
        rows_before += len(chunk)


def _chunks(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    """The lines, in chunks with the rows or the bytes of a piece: objects take several times as much as their text."""
    chunk: list[bytes] = []
    taken = 0
    for line in lines:
        chunk.append(line)
        taken += len(line)
        if len(chunk) == PIECE_ROWS or taken >= PIECE_BYTES:
            yield chunk
            chunk, taken = [], 0
    if chunk:
        yield chunk


def _lines(source: BinaryIO) -> Iterator[bytes]:
    """The lines that are not blank. Raises RowsProblem on a line that is too long to be a row."""
    for number, line in enumerate(iter(partial(source.readline, LINE_BYTES_MAX), b""), start=1):
        if len(line) == LINE_BYTES_MAX:
            raise RowsProblem.of(f"line {number} of the file is longer than {LINE_BYTES_MAX} bytes")
        stripped = (line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line).strip()
        if stripped:
            yield stripped


def _row(line: bytes, names: Names, problems: Problems, row: int) -> Mapping[str, object]:
    """The members of one line's object, by declared name; none where the line is no such object."""
    try:
        members = orjson.loads(line)
    except orjson.JSONDecodeError:
        problems.add("not JSON", row=row)
        return {}
    if not isinstance(members, dict):
        problems.add("not an object", row=row)
        return {}
    try:
        named = names.renamed(members)
    except ValueError as error:
        problems.add(str(error), row=row)
        return {}
    if named.keys() == names.declared and line.count(b":") == len(members):
        return named
    return _inspected(line, named, names.declared, problems, row)


def _inspected(
    line: bytes, members: Mapping[str, object], names: Collection[str], problems: Problems, row: int
) -> Mapping[str, object]:
    """Note what is wrong in a row with unexpected members or colons, and return its members.

    A member may be missing, unknown or repeated. A colon in a value is not wrong.
    """
    for name in members.keys() - names:
        problems.add("the column is not declared", row=row, column=name)
    for name in names:
        if name not in members:
            problems.add("the column is missing; write null for no value", row=row, column=name)
    if _repeats(line):
        problems.add("a member appears more than once", row=row)
    return members


def _repeats(line: bytes) -> bool:
    repeated = False

    def checked(pairs: list[tuple[str, object]]) -> None:
        nonlocal repeated
        repeated = repeated or len({name for name, _ in pairs}) < len(pairs)

    json.loads(line, object_pairs_hook=checked)
    return repeated


def _batch(
    rows: Sequence[Mapping[str, object]], types: Mapping[str, JsonTypes], problems: Problems, rows_before: int
) -> pa.RecordBatch:
    columns = []
    for name, taken in types.items():
        values = [members.get(name) for members in rows]
        refused = set(map(type, values)) - taken - {type(None)}
        if refused:
            for at, value in enumerate(values):
                if type(value) in refused:
                    problems.add(
                        f"{_NAMES[type(value)]} is not what the column holds", row=rows_before + at + 1, column=name
                    )
                    values[at] = None
        if list not in taken:
            columns.append(pa.array(_texts(values), type=pa.string()))
            continue
        listed, wrong = listed_numbers(values)
        for at in wrong:
            problems.add("the list holds something other than numbers", row=rows_before + at + 1, column=name)
        columns.append(listed)
    return pa.RecordBatch.from_arrays(columns, names=list(types))


def _texts(values: Sequence[object]) -> list[str | None]:
    return [value if type(value) is str else _TEXT_OF.get(type(value), _no_text)(value) for value in values]


def _no_text(_: object) -> None:
    return None


def _boolean(value: object) -> str:
    return "true" if value else "false"


_TEXT_OF: Mapping[type, Callable[[object], str | None]] = {int: str, float: repr, bool: _boolean}
