"""Files of all accounts of a dataset, as CSV or Parquet, made piece by piece as they are read.

A file holds only its current page of accounts, and with Parquet its current row group. One thread of low priority makes
the pieces of all files of a process, one piece of each file in turn. So many files at once take no more time from
queries than one file does.
"""

import io
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, Literal

from service.background import handing_over_soon, lower_priority
from service.ledger.model.spreadsheets import csv_text
from service.ledger.model.views import BudgetRow

if TYPE_CHECKING:
    import pyarrow as pa

FileForm = Literal["csv", "parquet"]
PAGE_ROWS: Final = 1024
"""The number of accounts that are read and encoded at a time: some milliseconds of work."""
GROUP_ROWS_MAX: Final = 65_536
"""The rows of a row group of Parquet. Only the last group, and groups with long keys, have fewer."""
GROUP_BYTES_MAX: Final = 2**24
"""A row group ends with the page that brings its columns to this many bytes."""
COLUMNS: Final = tuple(each.name for each in fields(BudgetRow))

Pages = Iterable[list[BudgetRow]]


class AccountFiles:
    """Makes the pieces of files on one thread, in the order in which the pieces are asked for. Thread-safe."""

    def __init__(self) -> None:
        """Make no thread yet: it starts with the first piece."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="account-files", initializer=lower_priority)

    def close(self) -> None:
        """Make no further piece; a piece that is being made is finished."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def begin(self, pages: Pages, form: FileForm) -> "AccountFile":
        """A file of the accounts in `pages`, which are read as its pieces are asked for."""
        return AccountFile(csv_pieces(pages) if form == "csv" else parquet_pieces(pages), self._thread)


class AccountFile:
    """One file that is being read. A piece may be asked for once the piece before it is there."""

    def __init__(self, pieces: Iterator[bytes], thread: ThreadPoolExecutor) -> None:
        self._pieces, self._thread = pieces, thread

    def next_piece(self) -> "Future[bytes | None]":
        """The next bytes, which may be empty; None at the end of the file. Raises what reading a page raises."""
        return self._thread.submit(self._made)

    def _made(self) -> bytes | None:
        with handing_over_soon():
            return next(self._pieces, None)


def csv_pieces(pages: Pages) -> Iterator[bytes]:
    """CSV with a header, a page at a time."""
    header: list[tuple[str, ...]] = [COLUMNS]
    for rows in pages:  # a refusal of the first comes before anything is sent
        yield csv_text([*header, *([getattr(row, name) for name in COLUMNS] for row in rows)]).encode()
        header = []


def parquet_pieces(pages: Pages) -> Iterator[bytes]:
    """Parquet, a row group at a time. A page that completes no row group gives an empty piece."""
    import pyarrow as pa  # noqa: PLC0415 - a start does not need it
    import pyarrow.parquet as pq  # noqa: PLC0415

    schema, sink = _schema(), _Sink()
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        group: list[pa.RecordBatch] = []
        for rows in pages:
            held = sum(batch.num_rows for batch in group)
            if held + len(rows) > GROUP_ROWS_MAX or sum(batch.nbytes for batch in group) >= GROUP_BYTES_MAX:
                writer.write_table(pa.Table.from_batches(group, schema))
                group = []
            group.append(pa.record_batch({name: [getattr(row, name) for row in rows] for name in COLUMNS}, schema))
            yield sink.taken()
        if group:
            writer.write_table(pa.Table.from_batches(group, schema))
            yield sink.taken()
    yield sink.taken()


class _Sink(io.RawIOBase):
    """A file in memory, which keeps the bytes that a writer has written until they are taken."""

    def __init__(self) -> None:
        self._written: list[bytes] = []
        self._place = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def write(self, data: Any) -> int:  # noqa: ANN401 - whatever has bytes
        self._written.append(bytes(data))
        self._place += len(self._written[-1])
        return len(self._written[-1])

    def taken(self) -> bytes:
        written, self._written = self._written, []
        return b"".join(written)


def _schema() -> "pa.Schema":
    import pyarrow as pa  # noqa: PLC0415

    types = {"spent_units": pa.int64(), "budget_units": pa.int64(), "paused": pa.bool_()}
    types |= dict.fromkeys(["queries_charged", "queries_left_out"], pa.int64())
    return pa.schema([(name, types.get(name, pa.string())) for name in COLUMNS])
