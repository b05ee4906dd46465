"""The predictions of linear models for blocks of rows: links of exact arguments, and the columns that are predicted.

An argument is a sum of whole numbers in doubles below 2^53, and so it is the same in any order of its additions. It is
rounded to 2^-10 and looked up in a table. So one row's prediction is a function of that row alone.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from service.arrays import Codes, Integers, Reals
from service.engine.features import FeatureReader
from service.engine.rows import RowView, TableRows
from service.engine.vectors import VectorView
from service.query.columns import Coding, QueryColumn
from service.query.predictions import PROBABILITY_LOG2, Predicted
from service.query.product_plan import rows_in_products

ARGUMENT_BITS: Final = 10
_LARGEST: Final = 32 * 2**ARGUMENT_BITS
"""Arguments beyond 32 count as 32: e^-32 is less than any step of an error."""
_EXPONENTIALS: Final = np.exp(np.arange(_LARGEST + 1) / -(2.0**ARGUMENT_BITS))
_LOGISTIC: Final = np.concatenate([_EXPONENTIALS[:0:-1] / (1 + _EXPONENTIALS[:0:-1]), 1 / (1 + _EXPONENTIALS)])


def logistic(arguments: Reals, unit_log2: int) -> Reals:
    """The probabilities (p,) of arguments (p,), which are in steps of 2**unit_log2."""
    scaled = arguments * 2.0 ** (unit_log2 + ARGUMENT_BITS)
    return _LOGISTIC.take(np.clip(np.rint(scaled), -_LARGEST, _LARGEST).astype(np.int64) + _LARGEST)


def softmax(arguments: Reals, unit_log2: int) -> Reals:
    """The probabilities (classes, p), added up class by class, so that each row's are a function of that row alone."""
    scaled = arguments * 2.0 ** (unit_log2 + ARGUMENT_BITS)
    below = np.minimum(np.rint(scaled.max(axis=0) - scaled), _LARGEST).astype(np.int64)
    weights: Reals = _EXPONENTIALS.take(below)
    total = weights[0].copy()
    for each in weights[1:]:
        total += each
    weights /= total
    return weights


class PredictionReader:
    """The predictions of a model, made ready for many blocks of a table."""

    def __init__(
        self,
        formula: Predicted,
        coding: Coding,
        columns: Mapping[str, QueryColumn],
        tables: Mapping[str, Codes],
        vectors: Mapping[str, VectorView],
    ) -> None:
        """Make the model ready; `vectors` are the vectors of the table's individuals, by column."""
        self._formula, self._coding = formula, coding
        self._features = FeatureReader(formula.features, columns, tables, vectors)
        self._parameters = formula.parameters.astype(np.float64)

    def codes(self, table: TableRows, rows: slice | Integers) -> Codes:
        """The codes (k,) of k rows; NULL where a feature needs a value and has none."""
        parts = [self._of(RowView(table, part), part) for part in self._parts(rows)]
        return np.concatenate(parts) if parts else np.empty(0, dtype=self._coding.dtype)

    def _parts(self, rows: slice | Integers) -> Iterator[slice | Integers]:
        """The rows in blocks that fit into the cache of a processor."""
        rows_max = rows_in_products(self._parameters.shape[1] + self._formula.classes)
        first, stop = (rows.start, rows.stop) if isinstance(rows, slice) else (0, rows.size)
        for start in range(first, stop, rows_max):
            end = min(start + rows_max, stop)
            yield slice(start, end) if isinstance(rows, slice) else rows[start:end]

    def _of(self, view: RowView, rows: slice | Integers) -> Codes:
        features, known = self._features.read(view, rows)
        arguments = self._parameters @ features
        codes: Codes = self._linked(arguments).astype(self._coding.dtype)
        codes[~known] = self._coding.null_code
        return codes

    def _linked(self, arguments: Reals) -> Integers:
        """The codes (p,) of arguments (classes, p)."""
        if self._formula.link == "softmax":
            places: Integers = np.argmax(arguments, axis=0)
            return places
        if self._formula.link == "logistic":
            probabilities = logistic(arguments[0], self._formula.unit_log2)
            return (probabilities * 2.0**-PROBABILITY_LOG2 + 0.5).astype(np.int64)
        steps: Integers = arguments[0].astype(np.int64)
        return steps - self._coding.offset
