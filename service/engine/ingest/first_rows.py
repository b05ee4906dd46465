"""The first rows of a Parquet file or an Arrow stream as CSV, for a look at its columns; no table is needed for it.

As many rows as fit are read, and nothing after them. Values have the form that they have in an upload's CSV: numbers as
the shortest decimal, whole ones without a point; `true` and `false`; dates and times (UTC) in ISO 8601. A missing
value, NaN and an empty text become an empty field. An infinity becomes a number beyond all doubles.
"""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc

from service.engine.ingest.columnar import BATCHES, INDEX, is_unread
from service.engine.ingest.csv_text import COLUMNS_MAX
from service.engine.ingest.names import Names
from service.engine.ingest.problems import RowsProblem
from service.engine.ingest.rows import FirstRows
from service.engine.ingest.upload_size import Counter

ROWS_MAX: Final = 100_000
CSV_BYTES_MAX: Final = 2**22
"""The most bytes that the first rows take as CSV, with the header."""
NAMES_BYTES_MAX: Final = 2**18
"""The most bytes that the names of all columns take together."""

_ROWS_AT_ONCE: Final = 2**10
_WHOLE_MAX: Final = 2**53  # a double beyond this is no count of anything
_INFINITY: Final = "1e999"
_DAYS: Final = (-719_162, 2_932_896)  # 0001-01-01 and 9999-12-31: ISO 8601 writes years with four digits
_DAY_SECONDS: Final = 86_400
_INT64_MAX: Final = 2**63 - 1
_UNITS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # in a second
_OTHER: Final = "it holds neither numbers, nor text, nor booleans"
_TIMES_OF_DAY: Final = "it holds times of day or durations: write them as numbers"
_UNNAMED: Final = "it is an index without a name"


def read_first_rows(source: BinaryIO, content_type: str) -> FirstRows:
    """The first rows of a file. Raises RowsProblem when it cannot be read, KeyError for a type not in BATCHES."""
    look = _Look()
    is_whole = all(map(look.add, BATCHES[content_type](source, look.choose, look)))
    return FirstRows(
        csv="".join(look.lines),
        rows=len(look.lines) - 1,
        text_columns=tuple(look.text_columns),
        left_out=look.left_out,
        is_whole=is_whole,
    )


class _Look(Counter):
    """The lines so far, the header first. It counts them itself, and so takes a file of any size.

    Rows that do not fit are not read, and no more than a piece is expanded at a time.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.text_columns: list[str] = []
        self.left_out: dict[str, str] = {}
        self._csv_bytes = 0
        self._line = io.StringIO()
        self._writer = csv.writer(self._line)

    def choose(self, schema: pa.Schema) -> Mapping[str, str]:
        """The columns that have one value in each row and can be written as text. Raises RowsProblem."""
        names = schema.names
        if len(names) > COLUMNS_MAX:
            raise RowsProblem.of(f"the file has {len(names)} columns: at most {COLUMNS_MAX} are read")
        if sum(len(name.encode()) for name in names) > NAMES_BYTES_MAX:
            raise RowsProblem.of(f"the names of the columns take more than {NAMES_BYTES_MAX} bytes")
        Names(names).read(names)
        found = []
        for name in names:
            kind = _value_type(schema.field(name).type)
            obstacle = _UNNAMED if INDEX.fullmatch(name) else _obstacle(kind)
            if obstacle:
                self.left_out[name] = obstacle
                continue
            found.append(name)
            if _is_text(kind):
                self.text_columns.append(name)
        if not found:
            raise RowsProblem.of("no column holds numbers, text, booleans or times")
        self._put(found)
        return {name: name for name in found}

    def add(self, batch: pa.RecordBatch) -> bool:
        """Add rows; False when no more rows fit. Raises RowsProblem if even the first row does not fit."""
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            part = batch.slice(start, _ROWS_AT_ONCE)
            for row in zip(*map(_texts, part.columns), strict=True):
                if len(self.lines) > ROWS_MAX:
                    return False
                if not self._put(row):
                    if len(self.lines) == 1:
                        raise RowsProblem.of(f"the first row takes more than {CSV_BYTES_MAX} bytes as CSV")
                    return False
        return True

    def _put(self, fields: Sequence[str | None]) -> bool:
        self._line.seek(0)
        self._line.truncate()
        self._writer.writerow(fields)
        line = self._line.getvalue()
        self._csv_bytes += len(line.encode())
        if self._csv_bytes > CSV_BYTES_MAX:
            return False
        self.lines.append(line)
        return True


def _value_type(kind: pa.DataType) -> pa.DataType:
    is_encoded = pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind)
    return _value_type(kind.value_type) if is_encoded else kind


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _obstacle(kind: pa.DataType) -> str | None:
    """The reason why no column of this type is read; None if such columns are read."""
    if pa.types.is_time(kind) or pa.types.is_duration(kind) or pa.types.is_interval(kind):
        return _TIMES_OF_DAY
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    is_time = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    is_read = is_number or is_time or _is_text(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)
    return None if is_read and not is_unread(kind) else _OTHER


def _texts(array: pa.Array) -> list[str | None]:
    """The values (n,) of a plain array as CSV has them."""
    kind = array.type
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return [None if value is None else _number(float(value)) for value in array.to_pylist()]
    if pa.types.is_date(kind):
        days = array.cast(pa.date32()).cast(pa.int32())
        array = _within(days, *_DAYS).cast(pa.int32()).cast(pa.date32())
    elif pa.types.is_timestamp(kind):
        unit = _UNITS[kind.unit]
        first, last = (_DAYS[0] * _DAY_SECONDS * unit, (_DAYS[1] + 1) * _DAY_SECONDS * unit - 1)
        instants = _within(array.cast(pa.int64()), max(first, -_INT64_MAX), min(last, _INT64_MAX))
        written = instants.cast(pa.timestamp(kind.unit)).cast(pa.string())
        array = pc.binary_join_element_wise(pc.replace_substring(written, " ", "T"), "Z", "")
    texts: list[str | None] = array.cast(pa.string()).to_pylist()
    return texts


def _number(value: float) -> str | None:
    if math.isnan(value):
        return None
    if math.isinf(value):
        return _INFINITY if value > 0 else f"-{_INFINITY}"
    return str(int(value)) if value.is_integer() and abs(value) < _WHOLE_MAX else repr(value)


def _within(values: pa.Array, lower: int, upper: int) -> pa.Array:
    """The values, with a bound in place of each value beyond it."""
    wide = values.cast(pa.int64())
    low, high = (pa.scalar(each, pa.int64()) for each in (lower, upper))
    return pc.min_element_wise(pc.max_element_wise(wide, low, skip_nulls=False), high, skip_nulls=False)
