"""Released answers in binary: npy with the values alone, npz and Arrow with everything that the JSON says but labels.

All are made from the stored bytes. The labels of a binary answer are its `axes`, which name a million coordinates in a
few lines.
"""

import io
import zipfile
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from service.workflows.model.analyst_views import StoredAnswer

__all__ = ["ARROW", "ENCODERS", "NPY", "NPZ"]

NPY: Final = "application/x-npy"
NPZ: Final = "application/x-npz"
ARROW: Final = "application/vnd.apache.arrow.stream"

_VALUES: Final = b'"values":['
_NUMBERS: Final = ("sigma", "grid", "half_width_95")


def _facts(body: bytes) -> dict[str, Any]:
    """The members of a stored answer but for values and labels; values are numbers and end at the first bracket."""
    before, begin, after = body.partition(_VALUES)
    facts: dict[str, Any] = orjson.loads(before + begin + after[after.index(b"]") :])
    return {name: fact for name, fact in facts.items() if name not in {"values", "labels"}}


def _npy(answer: StoredAnswer) -> bytes:
    return _array(answer.values())


def _npz(answer: StoredAnswer) -> bytes:
    """`values`; `sigma`, `grid` and `half_width_95` as arrays of no dimension; and `answer`, the facts as JSON text."""
    facts = _facts(answer.body)
    members = {"values": answer.values(), **{name: np.float64(facts[name]) for name in _NUMBERS}}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:  # not np.savez, which writes the time of day into it
        for name, array in members.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), _array(np.asarray(array)))
        archive.writestr(zipfile.ZipInfo("answer.npy"), _array(np.array(orjson.dumps(facts).decode())))
    return file.getvalue()


def _array(values: NDArray[np.generic]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, values, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def _arrow(answer: StoredAnswer) -> bytes:
    """One column, `value`; the schema's metadata has the numbers and `axes` by name, and all facts as `answer`."""
    import pyarrow as pa  # noqa: PLC0415 - a start does not need it; `service.run.serve` imports it when it is over

    facts = _facts(answer.body)
    metadata = {name: orjson.dumps(facts[name]) for name in (*_NUMBERS, "axes")} | {"answer": orjson.dumps(facts)}
    table = pa.table({"value": pa.array(answer.values())}).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


ENCODERS: Final[Mapping[str, Callable[[StoredAnswer], bytes]]] = {NPY: _npy, NPZ: _npz, ARROW: _arrow}
"""By media type."""
