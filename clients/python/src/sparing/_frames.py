"""Data frames as Parquet: those of pandas, polars and pyarrow, objects that give an Arrow stream, and columns by name.

Only libraries that the frame needs are imported: polars writes Parquet by itself, all other frames need pyarrow.
"""

import contextlib
import importlib
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparing._columns import Columns, chosen_columns

Frame = Any
"""A data frame, of a library that this client does not depend on."""


def is_frame(data: object) -> bool:
    """Tell whether some data is a data frame, and not a path, bytes or an open file."""
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
            check_lengths(frame)
            table = arrow.table({str(name): _column(arrow, str(name), values) for name, values in frame.items()})
            return parquet_of_arrow(table, columns, declared)
        case _:
            return parquet_of_arrow(pyarrow("an Arrow table").table(frame), columns, declared)


def parquet_of_arrow(table: Any, columns: Columns, declared: Sequence[str]) -> bytes:  # noqa: ANN401 - see Frame
    """The declared columns of a pyarrow table as a Parquet file."""
    names = chosen_columns(table.column_names, columns, declared)
    sink = io.BytesIO()
    writer = importlib.import_module("pyarrow.parquet")
    writer.write_table(table.select(list(names)).rename_columns(list(names.values())), sink)
    return sink.getvalue()


@contextlib.contextmanager
def ours(what: str) -> Iterator[None]:
    """A context that turns errors of pyarrow and polars into a ValueError; its text begins with `what`."""
    try:
        yield
    except Exception as error:
        if library_of(error) not in {"pyarrow", "polars"}:
            raise
        raise ValueError(f"{what}: {', '.join(map(str, error.args))}") from error


def check_lengths(columns: Mapping[object, Any]) -> None:
    """Raise ValueError if the columns of a mapping differ in length, and TypeError if a column is no list."""
    for name, values in columns.items():
        if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
            raise TypeError(f"the column {name!r} must be a list or an array, not a {type(values).__name__}")
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"the columns have different lengths: {', '.join(f'{name!r} {length}' for name, length in lengths.items())}"
        )


def pyarrow(data: str) -> Any:  # noqa: ANN401 - a module
    """The module pyarrow, which `data` needs. Raises ImportError, which says what to install."""
    try:
        return importlib.import_module("pyarrow")
    except ImportError:
        raise ImportError(f"{data} is sent as Parquet, which needs pyarrow: pip install pyarrow") from None


def _of_polars(frame: Frame, columns: Columns, declared: Sequence[str]) -> bytes:
    frame = _whole(frame)
    names = chosen_columns(frame.columns, columns, declared)
    sink = io.BytesIO()
    with ours("the frame cannot be sent as Parquet"):
        frame.select(list(names)).rename(names).write_parquet(sink)
    return sink.getvalue()


def _of_pandas(frame: Frame, columns: Columns, declared: Sequence[str]) -> bytes:
    arrow, frame = pyarrow("a pandas frame"), _whole(frame)
    levels = [name for name in frame.index.names if name in columns]
    frame = frame.reset_index(level=levels) if levels else frame
    names = chosen_columns([str(name) for name in frame.columns], columns, declared)
    chosen = frame.set_axis([str(name) for name in frame.columns], axis=1)[list(names)]
    with ours("the frame cannot be sent as Parquet"):
        table = arrow.Table.from_pandas(chosen, preserve_index=False)
    return parquet_of_arrow(table, names, declared)


def _whole(frame: Frame) -> Frame:
    """The data frame that a lazy frame or a series stands for; other frames unchanged."""
    for method in ("collect", "to_frame"):
        if not hasattr(frame, "write_parquet") and hasattr(frame, method):
            frame = getattr(frame, method)()
    return frame


def _column(arrow: Any, name: str, values: Any) -> Any:  # noqa: ANN401 - a list or an array of any library
    """The Arrow array of a column, in which NaN is NULL; an array of two dimensions becomes a column of vectors."""
    if getattr(values, "ndim", 1) == 1:
        with ours(f"the column {name!r} cannot be sent as Parquet"):
            return arrow.array(values, from_pandas=True)
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(f"a column has one dimension, or two for vectors; it has the shape {values.shape}")
    return arrow.FixedSizeListArray.from_arrays(arrow.array(values.reshape(-1)), values.shape[1])


def library_of(data: object) -> str:
    """The name of the package that defines an object's type."""
    return type(data).__module__.partition(".")[0]
