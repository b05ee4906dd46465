"""The budget column: decimal rho to whole units, rounded down, so that no limit is above what was written."""

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from service.core.units import rho_of_units, units_down
from service.engine.ingest.columns import Report, text_of

DATASET_BUDGET = -1
"""Stands for the dataset's own budget, where an individual brings no limit."""

_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_CHARACTERS_MAX = 100


class _WrongLimit(ValueError):
    """The text is no limit; the message says why."""


class LimitReader:
    """Reads limits; each text is worked out once, as most individuals share theirs."""

    def __init__(self, budget_units: int) -> None:
        self._budget_units = budget_units
        self._known: dict[str, int] = {}

    def units(self, array: pa.Array, report: Report) -> NDArray[np.int64]:
        """Units (n,) of a batch of text or numbers, DATASET_BUDGET where missing. Raises WrongType."""
        encoded = _written(array).dictionary_encode()
        places = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
        units, wrong = [], {}
        for place, text in enumerate(encoded.dictionary.to_pylist()):
            try:
                units.append(self._of(text))
            except _WrongLimit as reason:
                wrong[place] = str(reason)
                units.append(DATASET_BUDGET)
        for place, message in wrong.items():
            report(places == place, message)
        units_at = np.array([*units, DATASET_BUDGET], dtype=np.int64)
        return units_at[np.asarray(places, dtype=np.int64)]

    def _of(self, text: str) -> int:
        if text not in self._known:
            self._known[text] = _units(text, self._budget_units)
        return self._known[text]


def _units(text: str, budget_units: int) -> int:
    """Whole units of a decimal. Huge exponents are compared, never expanded."""
    try:
        rho = Decimal(text) if len(text) <= _CHARACTERS_MAX and _DECIMAL.fullmatch(text) else None
    except InvalidOperation:
        rho = None
    if rho is None:
        raise _WrongLimit("not a decimal number of rho")
    if rho < 0:
        raise _WrongLimit("a limit must not be negative")
    if rho >= rho_of_units(budget_units + 1):
        raise _WrongLimit("the limit is above the dataset's budget")
    return 0 if rho < rho_of_units(1) else units_down(Fraction(rho))


def _written(array: pa.Array) -> pa.Array:
    """Numbers as the shortest decimal that reads back as the same number, which is what was written."""
    if pa.types.is_floating(array.type) or pa.types.is_decimal(array.type):
        return array.cast(pa.string())
    return text_of(array)
