"""An upload from bytes to checked codes: all of it or nothing. Arrow holds its keys."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.arrays import Codes, Integers, Mask
from service.engine.ingest.columnar import BATCHES, declared
from service.engine.ingest.columns import Coded, LimitReader, Report, WrongType, code_column, nulls_of, text_of
from service.engine.ingest.csv_text import csv_batches, lines_of_rows
from service.engine.ingest.keys import ArrowKeys, compared_keys
from service.engine.ingest.names import Names
from service.engine.ingest.ndjson import JsonTypes, ndjson_batches
from service.engine.ingest.problems import Problems, RowsProblem
from service.engine.ingest.repeats import repeated_rows, told_apart
from service.engine.ingest.rows import USUAL_FORM, DecimalMark, Duplicates, FileForm, Rows
from service.engine.ingest.upload_size import BOUNDS, UploadBounds, UploadSize
from service.engine.ingest.vectors import code_vectors
from service.query.columns import codings_of
from service.query.keys import KEY_CHARACTERS_MAX, KeyComparison
from service.query.schema import (
    BooleanColumn,
    BudgetColumn,
    CategoryColumn,
    Column,
    DateColumn,
    DatetimeColumn,
    IntegerColumn,
    RealColumn,
    Table,
    VectorColumn,
)
from service.query.vector_columns import vectors_of

CSV = "text/csv"
NDJSON = "application/x-ndjson"
CONTENT_TYPES = (CSV, NDJSON, *BATCHES)
_KEY_TYPES: JsonTypes = frozenset({str, int})


def read_rows(
    source: BinaryIO,
    content_type: str,
    table: Table,
    *,
    budget_units: int,
    keys: KeyComparison = "exact",
    form: FileForm = USUAL_FORM,
    duplicates: Duplicates = "keep",
    bounds: UploadBounds = BOUNDS,
) -> Rows:
    """Read a whole upload for `table`. `budget_units` is the dataset's budget, which no individual's limit may exceed.

    `keys` says how the dataset compares keys. A row that is the same as an earlier row is counted, and kept, dropped or
    reported according to `duplicates`. `bounds` are those of the whole upload. Raises RowsProblem naming rows and
    columns, and ValueError for a content type that is not one of CONTENT_TYPES.
    """
    problems = Problems()
    size = UploadSize(table, bounds)
    upload = _Upload(table, budget_units, problems, size, keys=keys, decimal=form.decimal)
    is_text = content_type in {CSV, NDJSON}
    for batch in _batches(source, content_type, table, problems, size, form):
        upload.add(batch, is_text=is_text)
    repeated = upload.check_rows(duplicates)
    if content_type == CSV:
        rows = {error.row for error in problems.first() if error.row is not None}
        problems.raise_if_any(lines=lines_of_rows(source, rows, delimiter=form.delimiter))
    problems.raise_if_any()
    read = replace(upload.rows(), repeated=int(repeated.sum()))
    return read.only(~repeated) if duplicates == "drop" and read.repeated else read


def _batches(
    source: BinaryIO, content_type: str, table: Table, problems: Problems, size: UploadSize, form: FileForm
) -> Iterator[pa.RecordBatch]:
    names = Names([table.key, *table.columns], form.columns)
    vectors = vectors_of(table.columns)
    if content_type == CSV:
        for name in vectors:
            raise RowsProblem.of("CSV holds no vectors: send NDJSON, Arrow or Parquet", column=name)
        return csv_batches(source, names, problems, delimiter=form.delimiter)
    if content_type == NDJSON:
        types = {table.key: _KEY_TYPES} | {name: _json_types(column) for name, column in table.columns.items()}
        return ndjson_batches(source, types, problems, form.columns)
    if content_type in BATCHES:
        return BATCHES[content_type](source, declared(names, vectors), size)
    raise ValueError(f"the content type must be one of {', '.join(CONTENT_TYPES)}")


class _Upload:
    """The rows read so far."""

    def __init__(
        self,
        table: Table,
        budget_units: int,
        problems: Problems,
        size: UploadSize,
        *,
        keys: KeyComparison,
        decimal: DecimalMark,
    ) -> None:
        self._table, self._size, self._comparison, self._decimal = table, size, keys, decimal
        self._problems = problems
        self._limit_reader = LimitReader(budget_units)
        self._keys: list[pa.Array] = []
        self._count = 0
        self._limits: list[Integers] = []
        self._codes: dict[str, list[Codes]] = {
            name: [_none_of(column)] for name, column in table.columns.items() if not isinstance(column, BudgetColumn)
        }
        self._clipped = dict.fromkeys(self._codes, 0)
        self._out_of_domain = dict.fromkeys(self._codes, 0)
        self._nulls = dict.fromkeys(self._codes, 0)
        self._nearest = {name: Counter[str]() for name in self._codes}
        self._without_zone: set[str] = set()

    def add(self, batch: pa.RecordBatch, *, is_text: bool) -> None:
        """Code one more batch."""
        self._size.announce(batch.num_rows)
        for name, column in self._table.columns.items():
            self._add_column(name, column, batch, is_text=is_text)
        self._add_keys(self._array(batch, self._table.key))

    def check_rows(self, duplicates: Duplicates) -> Mask:
        """The mask (n,) of rows that repeat an earlier row. Notes repeated keys in the table of individuals."""
        if self._table.kind == "individuals" and not self._has_doubles():
            return np.zeros(self._count, dtype=np.bool_)
        columns = [each if each.ndim == 1 else told_apart(each) for each in self._all_codes().values()]
        repeated = repeated_rows(self._all_keys(), [*columns, *self._limits_in_one()])
        if self._table.kind == "individuals":
            self._check_keys(repeated & (duplicates == "drop"))
        elif duplicates == "reject":
            self._problems.add_where(repeated, "the same row as an earlier one", column=None)
        return repeated

    def _check_keys(self, dropped: Mask) -> None:
        encoded = self._all_keys().combine_chunks().dictionary_encode()
        places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        numbers, firsts = np.unique(places, return_index=True)
        first_of = firsts[np.searchsorted(numbers, places)]
        self._problems.add_where(
            (first_of != np.arange(places.size)) & (places >= 0) & ~dropped,
            "the same key as in an earlier row",
            column=self._table.key,
            of_row=lambda row: f"the same key as in row {int(first_of[row]) + 1}",
        )

    def _has_doubles(self) -> bool:
        """Tell whether a key comes twice, without the GIL: a set of a million strings would hold the GIL for 0.1 s."""
        keys = self._all_keys().drop_null()
        return bool(pc.count_distinct(keys).as_py() < len(keys))

    def _all_keys(self) -> pa.ChunkedArray:
        return pa.chunked_array(self._keys, type=pa.string())

    def rows(self) -> Rows:
        """The checked rows and their counts; call this only if nothing is wrong with the upload."""
        return Rows(
            keys=ArrowKeys(self._all_keys()),
            codes=self._all_codes(),
            limits=next(iter(self._limits_in_one()), None),
            clipped=self._clipped,
            out_of_domain=self._out_of_domain,
            nulls=self._nulls,
            nearest={name: dict(found) for name, found in self._nearest.items() if found},
            without_zone=tuple(sorted(self._without_zone)),
        )

    def _all_codes(self) -> dict[str, Codes]:
        return {name: np.concatenate(parts) for name, parts in self._codes.items()}

    def _limits_in_one(self) -> list[Integers]:
        """One array of the limits (n,), if the table has a column of limits; else no array."""
        if not any(isinstance(column, BudgetColumn) for column in self._table.columns.values()):
            return []
        return [np.concatenate([np.empty(0, np.int64), *self._limits])]

    def _add_column(self, name: str, column: Column, batch: pa.RecordBatch, *, is_text: bool) -> None:
        array, report = self._array(batch, name), self._report(name)
        try:
            if self._decimal == "," and isinstance(column, BudgetColumn | IntegerColumn | RealColumn):
                array = _with_points(array)
            if isinstance(column, BudgetColumn):
                self._limits.append(self._limit_reader.units(array, report))
                return
            if isinstance(column, VectorColumn):
                coded = code_vectors(column, array, report)
            else:
                coded = code_column(column, array, report, is_text=is_text)
        except WrongType as error:
            raise RowsProblem.of(str(error), column=name) from error
        self._codes[name].append(coded.codes)
        self._clipped[name] += coded.clipped
        self._out_of_domain[name] += coded.out_of_domain
        self._nulls[name] += coded.nulls
        if isinstance(coded, Coded):
            self._nearest[name].update(coded.nearest)
            self._without_zone |= {name} if coded.has_no_zone else set()

    def _add_keys(self, array: pa.Array) -> None:
        report = self._report(self._table.key)
        try:
            keys = text_of(array)
        except WrongType as error:
            raise RowsProblem.of(str(error), column=self._table.key) from error
        length = pc.utf8_length(keys).fill_null(0).to_numpy(zero_copy_only=False)
        report(length == 0, "the key is empty")
        report(length > KEY_CHARACTERS_MAX, f"the key is longer than {KEY_CHARACTERS_MAX} characters")
        report(_where(pc.match_substring(keys, "\0")), "the key holds a NUL character")
        is_padded = pc.not_equal(keys, pc.utf8_trim_whitespace(keys))
        report(_where(is_padded) & (length > 0), "the key begins or ends with a blank")
        keys = compared_keys(keys, self._comparison, report)
        self._size.keep(len(keys), int(pc.sum(pc.binary_length(keys)).as_py() or 0))
        self._keys.append(_compact(keys))
        self._count += len(keys)

    def _array(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        """The column; bytes that the format left undecoded are decoded to text."""
        array = batch.column(name)
        if not pa.types.is_binary(array.type):
            return array
        try:
            return array.cast(pa.string())
        except pa.ArrowInvalid:
            values = [None if value is None else _decoded(value) for value in array.to_pylist()]
            text = pa.array(values, type=pa.string())
            self._report(name)(nulls_of(text) & ~nulls_of(array), "not valid UTF-8")
            return text

    def _report(self, column: str) -> Report:
        rows_before = self._count

        def report(wrong: Mask, message: str) -> None:
            self._problems.add_where(wrong, message, column=column, rows_before=rows_before)

        return report


def _none_of(column: Column) -> Codes:
    """The codes of a column without rows."""
    columns = {"": column}
    none: list[Codes] = [np.empty(0, coding.dtype) for coding in codings_of(columns).values()]
    return (none or [coding.missing(0) for coding in vectors_of(columns).values()])[0]


def _with_points(text: pa.Array) -> pa.Array:
    """Numbers with a comma before the fraction, written with a point. A number that has a point already stays wrong."""
    return pc.replace_substring(pc.replace_substring(text, ".", "'"), ",", ".")


def _compact(keys: pa.Array) -> pa.Array:
    """Keys that keep at most twice their own bytes in memory: a mere slice keeps its whole block or message."""
    return pa.concat_arrays([keys[:0], keys]) if keys.get_total_buffer_size() > 2 * keys.nbytes else keys


def _where(condition: pa.Array) -> Mask:
    return np.asarray(condition.fill_null(fill_value=False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _json_types(column: Column) -> JsonTypes:
    match column:
        case CategoryColumn(categories=None) | IntegerColumn():
            return frozenset({int, float})  # a frame with missing values writes its whole numbers as 99.0
        case CategoryColumn():
            return frozenset({str, int, float})
        case DateColumn() | DatetimeColumn():
            return frozenset({str})
        case RealColumn():
            return frozenset({int, float})
        case BooleanColumn():
            return frozenset({bool, int, float})
        case VectorColumn():
            return frozenset({list})
        case BudgetColumn():
            return frozenset({str, int, float})
