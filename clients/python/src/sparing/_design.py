"""The features of a linear model for the rows of a frame, worked out as the service works them out for records.

Numbers are clipped to their declared bounds, as in an upload, and a missing number is replaced by its feature's `fill`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._frames import Frame
from sparing._labels import edges_of_width, interval_names
from sparing._learning_items import Feature

Doubles = NDArray[np.float64]
Columns = Mapping[str, Any]
"""The columns of a table, as registered."""

_CALCULATED: Mapping[str, Callable[..., Doubles]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "abs": np.abs,
    "clip": np.clip,
}


_UNFRAMED: Mapping[str, str] = {"own": "own events", "predict": "predictions of another model"}
"""Values that only the service can work out, by kind."""


@dataclass(frozen=True, slots=True)
class Levels:
    """The possible values of a column or its bins; `places` gives the index of each row's value, -1 for none."""

    names: Sequence[object]
    places: Callable[[Frame], NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Design:
    """Features of individuals, with the columns of their table as the public schema declares them."""

    features: Sequence[Feature]
    columns: Columns

    def __post_init__(self) -> None:
        """Raise ValueError, which names the column, for an undeclared column or a feature that a frame cannot have."""
        for each in self.features:
            _part(each, self.columns)

    def matrix(self, frame: Frame) -> Doubles:
        """The features (rows, numbers) of a frame's rows. Raises ValueError for a missing number without a fill."""
        return np.hstack([_part(each, self.columns)(frame) for each in self.features])

    @property
    def one_hots(self) -> list[slice]:
        """The places of each one-hot feature's numbers, which add up to 1 for everybody with one of the values."""
        ends = list(accumulate((_size(each, self.columns) for each in self.features), initial=0))
        parts = zip(self.features, pairwise(ends), strict=True)
        return [slice(*part) for each, part in parts if "one_hot" in each.json]


def individuals_of(tables: Mapping[str, Any]) -> Columns:
    """The columns of the table of individuals."""
    found: Columns = next(table["columns"] for table in tables.values() if table["kind"] == "individuals")
    return found


def levels_of(key: object, columns: Columns) -> Levels:
    """The possible values of a column, or the intervals of bins. Raises ValueError if a frame cannot have them."""
    if isinstance(key, str):
        return _levels_of_column(key, _declared(key, columns))
    ((kind, cut),) = dict(key).items()  # type: ignore[call-overload]
    value, edges = _binned(kind, cut, columns)

    def places(frame: Frame) -> NDArray[np.int64]:
        values = np.asarray(_calculated(value, frame, columns), dtype="float64")
        found = np.searchsorted(edges, values, side="right").astype("int64") - 1
        found[values == edges[-1]] = len(edges) - 2
        found[~((values >= edges[0]) & (values <= edges[-1]))] = -1
        return found

    return Levels(interval_names(edges.tolist()), places)


def _binned(kind: str, cut: Mapping[str, Any], columns: Columns) -> tuple[object, Doubles]:
    """The value that is cut into bins, and the edges of the bins."""
    value: Any = cut["of"] if "of" in cut else {"col": cut["column"]}
    numbers = [_declared(name, columns)["type"] in ("integer", "real", "boolean") for name in _mentioned(value)]
    if kind != "bin" or not all(numbers):
        raise ValueError(
            f"{cut.get('column', value)}: classes and one-hot features are of columns or of bins of numbers"
        )
    if "edges" in cut:
        return value, np.array(cut["edges"], dtype="float64")
    if "of" in cut:
        raise ValueError("bins of a calculated value need edges in a model; a width has no bounds to begin at")
    bounds = columns[cut["column"]]
    return value, np.array(edges_of_width(cut["width"], bounds["lower"], bounds["upper"]), dtype="float64")


def _levels_of_column(name: str, declared: Mapping[str, Any]) -> Levels:
    match declared:
        case {"type": "boolean"}:
            names: Sequence[object] = [False, True]
        case {"type": "category", "categories": [*categories]}:
            names = categories
        case {"type": "category", "size": int(size)}:
            names = range(size)
        case {"type": "integer", "lower": lower, "upper": upper}:
            return Levels(range(lower, upper + 1), lambda frame: _whole(_column(name, frame, {name: declared}), lower))
        case _:
            raise ValueError(
                f"{name}: classes and one-hot features are of categories, booleans, integers and bins of numbers"
            )
    known = {str(each): place for place, each in enumerate(names)}

    def places(frame: Frame) -> NDArray[np.int64]:
        return np.array([known.get(_text(value), -1) for value in _listed(name, frame)], dtype="int64")

    return Levels(names, places)


def _whole(values: Doubles, lower: int) -> NDArray[np.int64]:
    return np.nan_to_num(values - lower, nan=-1).astype("int64")


def _text(value: object) -> str:
    """The text by which categories are compared; whole doubles count as integers, and booleans of numpy as Python's."""
    value = value.item() if hasattr(value, "item") else value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _size(given: Feature, columns: Columns) -> int:
    """The number of a feature's numbers."""
    if "one_hot" in given.json:
        return len(levels_of(given.json["one_hot"], columns).names)
    return int(_declared(str(given.json["vector"]), columns)["length"]) if "vector" in given.json else 1


def _part(given: Feature, columns: Columns) -> Callable[[Frame], Doubles]:
    if "one_hot" in given.json:
        levels = levels_of(given.json["one_hot"], columns)
        return lambda frame: (levels.places(frame)[:, None] == np.arange(len(levels.names))).astype("float64")
    if "vector" in given.json:
        return _vector_part(str(given.json["vector"]), columns)
    value: Any = given.json["of"]
    fill: Any = given.json.get("fill")
    for name in _mentioned(value):
        _declared(name, columns)

    def number(frame: Frame) -> Doubles:
        found: Doubles = np.array(_calculated(value, frame, columns), dtype="float64")
        missing = np.isnan(found)
        if fill is None and missing.any():
            names = ", ".join(dict.fromkeys(_mentioned(value)))
            raise ValueError(f"row {int(missing.argmax()) + 1} has no value of {names}, and the feature no fill")
        found[missing] = fill
        return found[:, None]

    return number


def _vector_part(name: str, columns: Columns) -> Callable[[Frame], Doubles]:
    declared = _declared(name, columns)
    if declared["type"] != "vector":
        raise ValueError(f"{name!r} is no column of vectors")
    lower, upper, step = int(declared["lower"]), int(declared["upper"]), 2.0 ** int(declared.get("step_log2", 0))

    def numbers(frame: Frame) -> Doubles:
        rows = list(_listed(name, frame))
        for place, row in enumerate(rows, start=1):
            if row is None or len(row) != declared["length"]:
                raise ValueError(f"row {place} has no list of {declared['length']} numbers in {name!r}")
        found: Doubles = np.array(rows, dtype="float64").reshape(-1, int(declared["length"]))
        return np.clip(found, lower, upper) * step

    return numbers


def _mentioned(value: object) -> list[str]:
    """The names of the columns in a value."""
    if not isinstance(value, dict):
        return [name for each in value for name in _mentioned(each)] if isinstance(value, list) else []
    ((kind, body),) = value.items()
    if kind in _UNFRAMED:
        return []
    return [body] if kind == "col" else _mentioned(body)


def _calculated(value: object, frame: Frame, columns: Columns) -> Any:  # noqa: ANN401 - an array, or a number
    if not isinstance(value, dict):
        return value
    ((kind, body),) = value.items()
    if kind in _UNFRAMED:
        raise ValueError(f"{_UNFRAMED[kind]} are in no frame: ask the service, with model.as_value() in a query")
    if kind == "col":
        return _column(body, frame, columns)
    arguments = body if isinstance(body, list) else [body]
    return _CALCULATED[kind](*[_calculated(each, frame, columns) for each in arguments])


def _column(name: str, frame: Frame, columns: Columns) -> Doubles:
    """A column's numbers, clipped to their declared bounds; booleans are 0 or 1, and missing values NaN."""
    declared = _declared(name, columns)
    found: Doubles = np.array([np.nan if _is_missing(value) else float(value) for value in _listed(name, frame)])
    if declared["type"] in ("integer", "real"):
        found = np.clip(found, float(declared["lower"]), float(declared["upper"]))
    return found


def _declared(name: str, columns: Columns) -> Mapping[str, Any]:
    if name not in columns:
        raise ValueError(f"the table of individuals has no column {name!r}")
    found: Mapping[str, Any] = columns[name]
    return found


def _listed(name: str, frame: Frame) -> Iterable[Any]:
    """The values of a column of a frame, which is of pandas, polars or pyarrow, or a mapping from names to lists."""
    try:
        column = frame[name]
    except Exception as error:
        raise ValueError(f"the frame has no column {name!r}") from error
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


def _is_missing(value: object) -> bool:
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 - NaN
    except TypeError:  # pandas.NA
        return True
