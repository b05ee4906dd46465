"""Files of accounts: row groups of a bounded size, pieces while pages come, one thread for all."""

import csv
import io
import os
import threading
from collections.abc import Iterator
from contextlib import closing

import pyarrow.parquet as pq
import pytest

from service.background import NICENESS
from service.ledger.model.views import BudgetRow
from service.reads.account_files import (
    COLUMNS,
    GROUP_BYTES_MAX,
    GROUP_ROWS_MAX,
    PAGE_ROWS,
    AccountFiles,
    FileForm,
    csv_pieces,
    parquet_pieces,
)
from tests.waiting import PATIENCE_S


def page(number: int, *, rows: int = PAGE_ROWS, key: str = "key") -> list[BudgetRow]:
    """Accounts whose keys tell the page and the row."""
    return [
        BudgetRow(
            key=f"{key}-{number}-{row}",
            budget_rho="1",
            spent_rho="0.25",
            remaining_rho="0.75",
            spent_units=2**38,
            budget_units=2**40,
            paused=row % 2 == 0,
            queries_charged=row,
            queries_left_out=0,
        )
        for row in range(rows)
    ]


def test_a_row_group_leaves_before_the_page_after_it_is_asked_for_twice() -> None:
    """It has 65,536 rows, and the last one what is left; all rows come in their order."""
    pages = 2 * GROUP_ROWS_MAX // PAGE_ROWS + 3
    asked = 0

    def counted() -> Iterator[list[BudgetRow]]:
        nonlocal asked
        for number in range(pages):
            asked += 1
            yield page(number)

    written, first_group_after = bytearray(), 0
    for piece in parquet_pieces(counted()):
        written += piece
        if len(written) > len(b"PAR1") and not first_group_after:
            first_group_after = asked
    assert first_group_after == GROUP_ROWS_MAX // PAGE_ROWS + 1
    file = pq.ParquetFile(io.BytesIO(bytes(written)))
    groups = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
    assert groups == [GROUP_ROWS_MAX, GROUP_ROWS_MAX, 3 * PAGE_ROWS]
    keys = file.read(["key"]).column("key").to_pylist()
    assert keys == [row.key for number in range(pages) for row in page(number)]


def test_a_row_group_with_long_keys_has_fewer_rows() -> None:
    """Its columns hold GROUP_BYTES_MAX and a page at most."""
    pages = [page(number, key="k" * 1000) for number in range(40)]
    file = pq.ParquetFile(io.BytesIO(b"".join(parquet_pieces(pages))))
    assert file.metadata.num_rows == 40 * PAGE_ROWS
    assert file.metadata.num_row_groups == 3
    assert all(
        file.read_row_group(number).nbytes < GROUP_BYTES_MAX + 2**21 for number in range(file.metadata.num_row_groups)
    )


@pytest.mark.parametrize("rows", [0, 1])
def test_a_file_of_few_accounts_has_its_columns(rows: int) -> None:
    """Also of none."""
    table = pq.read_table(io.BytesIO(b"".join(parquet_pieces([page(0, rows=rows)]))))
    assert (table.num_rows, table.column_names) == (rows, list(COLUMNS))
    lines = list(csv.reader(io.StringIO(b"".join(csv_pieces([page(0, rows=rows)])).decode())))
    assert (len(lines), lines[0]) == (rows + 1, list(COLUMNS))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_many_files_are_made_in_turns_on_one_low_thread(form: FileForm) -> None:
    """A page of each, so that none waits for another's end; the first is not read ahead."""
    read: list[tuple[int, int]] = []
    threads: set[tuple[int, int]] = set()

    def pages(file: int) -> Iterator[list[BudgetRow]]:
        for number in range(3):
            read.append((number, file))
            native = threading.get_native_id()
            threads.add((native, os.getpriority(os.PRIO_PROCESS, native)))
            yield page(number, rows=10)

    with closing(AccountFiles()) as files:
        begun = [files.begin(pages(number), form) for number in range(4)]
        for _ in range(3):
            pieces = [each.next_piece() for each in begun]
            assert None not in [each.result(timeout=PATIENCE_S) for each in pieces]
    assert read == [(number, file) for number in range(3) for file in range(4)]
    assert [priority for _, priority in threads] == [max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0))]


def test_what_reading_a_page_raises_is_raised_by_its_piece() -> None:
    """Before the first byte, where it is the first page."""

    def broken() -> Iterator[list[BudgetRow]]:
        yield from (page(1 // number) for number in [0])

    with closing(AccountFiles()) as files:
        for form in ("csv", "parquet"):
            with pytest.raises(ZeroDivisionError):
                files.begin(broken(), form).next_piece().result(timeout=PATIENCE_S)
