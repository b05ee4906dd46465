"""Small bodies that stand for gigabytes: each with the text that must be in its refusal, and whether it decodes."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.engine.ingest.uploads import ARROW, CSV, NDJSON, PARQUET, stream

HEADER = "id,item"
DECODED, MEMORY, ROWS = "once decoded", "bytes of memory", "rows or more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bomb:
    """A body for the table of visits, and what its refusal speaks of."""

    content_type: str
    body: Callable[[], bytes]
    speaks_of: str


def _parquet(table: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def _runs(value: object, rows: int, kind: pa.DataType) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), pa.array([value], kind))


def one_value_of_64_kb() -> bytes:
    """2.2 KB of Parquet: a dictionary of one value, 65,000 times."""
    keys = pa.DictionaryArray.from_arrays(pa.array(np.zeros(65_000, dtype=np.int32)), pa.array(["k" * 65_536]))
    return _parquet(pa.table({"id": keys, "item": np.zeros(65_000, dtype=np.int8)}), compression="zstd")


def runs_of_300_million() -> bytes:
    """1.3 KB of Arrow."""
    columns = {"id": _runs("a", 300_000_000, pa.string()), "item": _runs(1, 300_000_000, pa.int8())}
    return stream(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))


def runs_of_500_kb() -> bytes:
    """A run of 4,000 values of 500 KB each."""
    columns = {"id": _runs("k" * 500_000, 4_000, pa.string()), "item": _runs(1, 4_000, pa.int8())}
    return stream(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))


def dictionary_of_one() -> bytes:
    """70,000 rows of Arrow with one value of 64 KB."""
    keys = pa.DictionaryArray.from_arrays(pa.array(np.zeros(70_000, dtype=np.int8)), pa.array(["k" * 65_536]))
    return stream(pa.RecordBatch.from_arrays([keys, pa.array(np.zeros(70_000, dtype=np.int8))], names=["id", "item"]))


def views_of_one() -> bytes:
    """70,000 rows of Arrow that are views of one value of 64 KB."""
    value = b"k" * 65_536
    view = np.zeros((70_000, 4), dtype=np.int32)
    view[:, 0] = len(value)
    view[:, 1] = int.from_bytes(value[:4], "little")
    buffers = [None, pa.py_buffer(view.tobytes()), pa.py_buffer(value)]
    keys = pa.Array.from_buffers(pa.string_view(), len(view), buffers)
    return stream(pa.RecordBatch.from_arrays([keys, pa.array(np.zeros(70_000, dtype=np.int8))], names=["id", "item"]))


def rows_of_one_key() -> bytes:
    """20 million rows of one key."""
    rows = 20_000_000
    keys = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int8)), pa.array(["ann"]))
    return _parquet(pa.table({"id": keys, "item": np.zeros(rows, dtype=np.int8)}), compression="zstd")


def shared_prefixes() -> bytes:
    """Values of 64 KB that each repeat the one before, by an encoding without a dictionary."""
    table = pa.table({"id": ["k" * 65_536] * 6_000, "item": np.zeros(6_000, dtype=np.int8)})
    encoding = {"id": "DELTA_BYTE_ARRAY", "item": "PLAIN"}
    return _parquet(table, use_dictionary=False, column_encoding=encoding, compression="zstd", write_statistics=False)


def lines_of_one_key() -> bytes:
    """The most rows that CSV can have in 60 MB, all of one key."""
    return b"id,item\n" + b"a,\n" * 20_000_000


def wide_header() -> bytes:
    """A header of four million columns."""
    return b"," * 4_000_000 + b"\n"


def nested_json() -> bytes:
    """Lines that are a hundred times as large as objects as they are as text."""
    return (b'{"id":"a","item":' + b"[" + b"[],{}," * 1_300_000 + b"1]}\n") * 2


BOMBS = {
    each.body.__name__: each
    for each in (
        Bomb(content_type=PARQUET, body=one_value_of_64_kb, speaks_of=DECODED),
        Bomb(content_type=PARQUET, body=rows_of_one_key, speaks_of=ROWS),
        Bomb(content_type=PARQUET, body=shared_prefixes, speaks_of=MEMORY),
        Bomb(content_type=ARROW, body=runs_of_300_million, speaks_of=ROWS),
        Bomb(content_type=ARROW, body=runs_of_500_kb, speaks_of=DECODED),
        Bomb(content_type=ARROW, body=dictionary_of_one, speaks_of=DECODED),
        Bomb(content_type=ARROW, body=views_of_one, speaks_of=DECODED),
        Bomb(content_type=CSV, body=lines_of_one_key, speaks_of=ROWS),
        Bomb(content_type=CSV, body=wide_header, speaks_of="columns"),
        Bomb(content_type=NDJSON, body=nested_json, speaks_of="a list is not|bytes of memory"),
    )
}

DATASET: dict[str, Any] = {
    "name": "bombs",
    "guarantee": {"rho": "1"},
    "capacity": 1000,
    "tables": {
        "people": {"kind": "individuals", "key": "id", "columns": {"age": {"type": "integer", "lower": 0, "upper": 9}}},
        "visits": {
            "kind": "events",
            "key": "id",
            "unknown_individuals": "create",
            "columns": {"item": {"type": "category", "size": 9}},
        },
    },
}
PATH = "/v1/datasets/bombs/tables/visits/rows"
"""The dataset that takes them in its table of visits, at this path."""
