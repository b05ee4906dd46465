"""Data frames as Parquet: pandas, polars, pyarrow, everything that hands out an Arrow stream, and columns by name.

No library is imported that the frame does not need: polars writes Parquet by itself, all others need pyarrow.
"""

import importlib
import io
from collections.abc import Mapping, Sequence
from typing import Any

from sparing._columns import Columns, chosen_columns

Frame = Any
"""A data frame of a library that this one does not depend on."""


def is_frame(data: object) -> bool:
    """Tell whether it is a data frame, and not a path, bytes or an open file."""
    return library_of(data) == "polars" or hasattr(data, "__arrow_c_stream__") or library_of(data) == "pandas"


def parquet_of(frame: Frame, columns: Columns, declared: Sequence[str]) -> bytes:
    """The declared columns of a frame as a Parquet file. An index of pandas is left out, unless `columns` names it.

    Raises:
        ColumnsError: the frame does not have the declared columns.
        ImportError: pyarrow is needed and not installed.
    """
    match library_of(frame):
        case "polars":
            return _of_polars(frame, columns, declared)
        case "pandas":
            return _of_pandas(frame, columns, declared)
        case _ if isinstance(frame, Mapping):
            arrow = pyarrow("a mapping of columns")
            table = arrow.table({name: _column(arrow, values) for name, values in frame.items()})
            return parquet_of_arrow(table, columns, declared)
        case _:
            return parquet_of_arrow(pyarrow("an Arrow table").table(frame), columns, declared)


def parquet_of_arrow(table: Any, columns: Columns, declared: Sequence[str]) -> bytes:  # noqa: ANN401 - see Frame
    """The same of a pyarrow table."""
    names = chosen_columns(table.column_names, columns, declared)
    sink = io.BytesIO()
    writer = importlib.import_module("pyarrow.parquet")
    writer.write_table(table.select(list(names)).rename_columns(list(names.values())), sink)
    return sink.getvalue()


def pyarrow(data: str) -> Any:  # noqa: ANN401 - a module
    """The library, or an ImportError that says what to install."""
    try:
        return importlib.import_module("pyarrow")
    except ImportError:
        raise ImportError(f"{data} is sent as Parquet, which needs pyarrow: pip install pyarrow") from None


def _of_polars(frame: Frame, columns: Columns, declared: Sequence[str]) -> bytes:
    frame = frame.collect() if hasattr(frame, "collect") else frame
    names = chosen_columns(frame.columns, columns, declared)
    sink = io.BytesIO()
    frame.select(list(names)).rename(names).write_parquet(sink)
    return sink.getvalue()


def _of_pandas(frame: Frame, columns: Columns, declared: Sequence[str]) -> bytes:
    arrow = pyarrow("a pandas frame")
    levels = [name for name in frame.index.names if name in columns]
    frame = frame.reset_index(level=levels) if levels else frame
    names = chosen_columns([str(name) for name in frame.columns], columns, declared)
    chosen = frame.set_axis([str(name) for name in frame.columns], axis=1)[list(names)]
    return parquet_of_arrow(arrow.Table.from_pandas(chosen, preserve_index=False), names, declared)


def _column(arrow: Any, values: Any) -> Any:  # noqa: ANN401 - a list or an array of any library
    """The array of a column; one of two dimensions has a vector in each row."""
    if getattr(values, "ndim", 1) == 1:
        return arrow.array(values)
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(f"a column has one dimension, or two for vectors; it has the shape {values.shape}")
    return arrow.FixedSizeListArray.from_arrays(arrow.array(values.reshape(-1)), values.shape[1])


def library_of(data: object) -> str:
    """The name of the package that an object's type is of."""
    return type(data).__module__.partition(".")[0]
