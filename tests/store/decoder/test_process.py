"""Uploads read in processes of their own: the same rows, bounded memory, and nothing that a broken body breaks."""

import io
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from service.engine.ingest import Duplicates, Rows, RowsProblem
from service.engine.ingest.columnar import BATCHES
from service.engine.ingest.first_rows import CSV_BYTES_MAX, ROWS_MAX, read_first_rows
from service.engine.ingest.reader import read_rows
from service.engine.ingest.rows import USUAL_FORM
from service.engine.ingest.upload_size import UploadBounds
from service.ledger.model.errors import Unavailable
from service.ledger.ports.row_reader import FirstRowsRequest, ReadRequest
from service.query.schema import Table
from service.store.decoder.fork_server import decoded
from service.store.decoder.messages import REQUEST, Failed
from service.store.decoder.process import DecoderProcess
from tests.e2e.processes import peak_bytes
from tests.engine.ingest.bombs import BOMBS, Bomb
from tests.engine.ingest.uploads import (
    ARROW,
    BUDGET,
    CSV,
    NDJSON,
    PARQUET,
    PEOPLE,
    VISITS,
    arrow,
    csv,
    ndjson,
    parquet,
    with_limits,
)
from tests.waiting import PATIENCE_S, until

MEMORY_BYTES = 256 * 2**20
BASE_BYTES = 160 * 2**20
"""The memory of a decoder with nothing to decode: the interpreter and its libraries, with those of the tests."""
COLUMNS = {"id": ["a", "b"], "country": ["NO", None], "age": [7, 300], "spend": [0.5, 2.0], "member": [True, None]}
SMALL = csv("a,1", header="id,item")


@pytest.fixture(scope="module")
def decoder() -> Iterator[DecoderProcess]:
    """One for all tests: nothing that one upload does may matter to the next."""
    with closing(DecoderProcess()) as decoder:
        decoder.open()
        yield decoder


def request_for(
    content_type: str, table: Table = PEOPLE, *, duplicates: Duplicates = "keep", memory_bytes: int = MEMORY_BYTES
) -> ReadRequest:
    """How a test wants its upload read."""
    bounds = UploadBounds(memory_bytes=memory_bytes)
    return ReadRequest(
        content_type=content_type,
        table=table,
        budget_units=BUDGET,
        form=USUAL_FORM,
        duplicates=duplicates,
        bounds=bounds,
    )


def told(rows: Rows) -> object:
    """Everything in some rows, to compare."""
    arrays = {name: (codes.dtype, codes.tolist()) for name, codes in rows.codes.items()}
    limits, places = (None if each is None else each.tolist() for each in (rows.limits, rows.places))
    counts = rows.clipped, rows.out_of_domain, rows.nulls, rows.repeated
    return list(rows.keys), arrays, limits, places, counts


def check_reads(decoder: DecoderProcess) -> None:
    """A small upload is read."""
    assert list(decoder.read(io.BytesIO(SMALL), request_for(CSV, VISITS)).keys) == ["a"]


@contextmanager
def bounded(decoder: DecoderProcess, *, ours_bytes: int) -> Iterator[None]:
    """The peaks of the resident memory of both processes stay within bounds, and the next upload is read."""
    decoder.peak_bytes = 0
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the peak
    before = peak_bytes(os.getpid())
    yield
    assert 0 < decoder.peak_bytes < MEMORY_BYTES + BASE_BYTES
    assert peak_bytes(os.getpid()) - before < ours_bytes
    check_reads(decoder)


@contextmanager
def long_read(decoder: DecoderProcess) -> Iterator[tuple[Future[Rows], int]]:
    """An upload that takes seconds to read, under way, and the process that decodes it."""
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(decoder.read, io.BytesIO(long_body()), request_for(CSV, VISITS, memory_bytes=2**33))
        until(lambda: len(children_of(decoder.pid)) == 1)
        (child,) = children_of(decoder.pid)
        yield reading, child


@cache
def long_body() -> bytes:
    """Keys that take seconds to read."""
    return b"id,item\n" + b"".join(b"%d,\n" % number for number in range(3_000_000))


@pytest.mark.parametrize(
    ("content_type", "body", "table", "duplicates"),
    [
        (CSV, csv("a,NO,7,0.5,true", "01,,300,2,"), PEOPLE, "keep"),
        (CSV, csv("a,3", "a,3", "b,", header="id,item"), VISITS, "drop"),
        (CSV, csv(header="id,item"), VISITS, "keep"),
        (CSV, csv("a,0.5", "b,", header="id,rho"), with_limits(), "keep"),
        (NDJSON, ndjson(("a", "NO", 1, 0.5, True)), PEOPLE, "keep"),
        (PARQUET, parquet(COLUMNS), PEOPLE, "keep"),
        (ARROW, arrow(COLUMNS), PEOPLE, "keep"),
    ],
)
def test_the_rows_are_those_that_are_read_here(
    decoder: DecoderProcess, content_type: str, body: bytes, table: Table, duplicates: Duplicates
) -> None:
    """With all counts, and the places of rows that are left where some were dropped."""
    here = read_rows(io.BytesIO(body), content_type, table, budget_units=BUDGET, duplicates=duplicates)
    asked = request_for(content_type, table, duplicates=duplicates)
    assert told(decoder.read(io.BytesIO(body), asked)) == told(here)


def test_a_refusal_has_the_same_errors_and_counts(decoder: DecoderProcess) -> None:
    """A refusal that is made here has the same ones."""
    body = csv("a,NO,x,0.5,true", ",,300,2,")
    with pytest.raises(RowsProblem) as here:
        read_rows(io.BytesIO(body), CSV, PEOPLE, budget_units=BUDGET)
    with pytest.raises(RowsProblem) as there:
        decoder.read(io.BytesIO(body), request_for(CSV))
    assert (there.value.errors, there.value.counts) == (here.value.errors, here.value.counts)


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=list(BOMBS))
def test_a_body_that_stands_for_gigabytes_is_refused_in_bounded_memory(decoder: DecoderProcess, bomb: Bomb) -> None:
    """By the peak of both processes; the next upload is read."""
    body = io.BytesIO(bomb.body())
    with bounded(decoder, ours_bytes=16 * 2**20), pytest.raises(RowsProblem, match=bomb.speaks_of):
        decoder.read(body, request_for(bomb.content_type, VISITS))


def test_blank_lines_take_no_more_memory_the_more_they_are(decoder: DecoderProcess) -> None:
    """A gigabyte of them is a megabyte of gzip; each block of text that is read left a gap in the memory."""
    body = b"id,item\n" + b"\n" * 2**27
    assert len(decoder.read(io.BytesIO(body), request_for(CSV, VISITS, memory_bytes=96 * 2**20)).keys) == 0
    check_reads(decoder)


def test_as_many_rows_as_are_admitted_are_read_in_their_memory(decoder: DecoderProcess) -> None:
    """Events twice each, which takes the most work for a row."""
    memory_bytes, rows = 176 * 2**20, 1_000_000
    keys = pa.array(np.arange(rows) // 2).cast(pa.string())
    body = arrow_of({"id": keys, "item": pa.array(np.zeros(rows, dtype=np.int64))})
    decoder.peak_bytes = 0
    with pytest.raises(RowsProblem, match="rows or more"):
        decoder.read(io.BytesIO(body), request_for(ARROW, VISITS, memory_bytes=memory_bytes * 7 // 8))
    read = decoder.read(io.BytesIO(body), request_for(ARROW, VISITS, memory_bytes=memory_bytes))
    assert (len(read.keys), read.repeated) == (rows, rows // 2)
    assert decoder.peak_bytes < memory_bytes + BASE_BYTES


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGALRM])
def test_a_decoder_that_is_killed_is_a_clear_refusal(decoder: DecoderProcess, number: signal.Signals) -> None:
    """The upload is refused if it may be at fault, and else for the moment; the next upload is read."""
    with long_read(decoder) as (reading, child):
        os.kill(child, number)
        with pytest.raises(Unavailable if number == signal.SIGKILL else RowsProblem):
            reading.result(PATIENCE_S)
    check_reads(decoder)


def test_another_takes_the_place_of_the_process_that_forks(caplog: pytest.LogCaptureFixture) -> None:
    """An upload under way is refused for the moment, and its decoder ends too; the next one is read."""
    with closing(DecoderProcess()) as decoder:
        decoder.open()
        first = decoder.pid
        with long_read(decoder) as (reading, child):
            os.kill(first or 0, signal.SIGKILL)
            with pytest.raises(Unavailable):
                reading.result(PATIENCE_S)
        until(lambda: not Path(f"/proc/{child}").exists())
        check_reads(decoder)
        assert decoder.pid != first
    assert "is gone" in caplog.text


def test_signals_that_end_a_service_leave_uploads_alone(decoder: DecoderProcess) -> None:
    """SIGTERM to all processes of a service begins a drain, in which uploads are finished."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(decoder.pid or 0, number)
    check_reads(decoder)


def test_everything_ends_with_its_owner() -> None:
    """Also a decoder at work."""
    decoder = DecoderProcess()
    decoder.open()
    pid = decoder.pid
    with long_read(decoder) as (reading, child):
        decoder.close()
        with pytest.raises(Unavailable):
            reading.result(PATIENCE_S)
    until(lambda: not Path(f"/proc/{child}").exists() and not Path(f"/proc/{pid}").exists())


def test_a_stopped_decoder_is_ended_and_no_other(monkeypatch: pytest.MonkeyPatch, decoder: DecoderProcess) -> None:
    """Its upload can be sent again; it would never notice its limit of time."""
    monkeypatch.setattr("service.store.decoder.process.LOOK_S", 0.05)
    forking = decoder.pid
    with long_read(decoder) as (reading, child):
        os.kill(child, signal.SIGSTOP)
        with pytest.raises(Unavailable):
            reading.result(PATIENCE_S)
    check_reads(decoder)
    assert decoder.pid == forking


def test_a_stopped_process_that_forks_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """And does not hold up the end of its owner."""
    monkeypatch.setattr("service.store.decoder.process.LOOK_S", 0.05)
    with closing(DecoderProcess()) as decoder:
        decoder.open()
        first = decoder.pid or 0
        os.kill(first, signal.SIGSTOP)
        with pytest.raises(Unavailable):
            decoder.read(io.BytesIO(SMALL), request_for(CSV, VISITS))
        check_reads(decoder)
        second = decoder.pid or 0
        os.kill(second, signal.SIGSTOP)
        until(lambda: Path(f"/proc/{second}/stat").read_text(encoding="ascii").split()[2] == "T")
        monkeypatch.setattr("service.store.decoder.process._ENDING_S", 600.0)
    assert decoder.pid is None


def test_uploads_are_read_beside_each_other(decoder: DecoderProcess) -> None:
    """Eight at a time, and none gets the rows of another."""
    bodies = [csv(*[f"p{number},{row}" for row in range(number)], header="id,item") for number in range(1, 25)]
    with ThreadPoolExecutor(8) as pool:
        read = pool.map(lambda body: decoder.read(io.BytesIO(body), request_for(CSV, VISITS)), bodies)
        assert [set(rows.keys) for rows in read] == [{f"p{number}"} for number in range(1, 25)]


def test_an_error_of_the_program_is_told_by_kind_and_place(tmp_path: Path) -> None:
    """Not by its text, which may quote a record: here of a content type that the API refuses."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(SMALL)
    target.write_bytes(REQUEST.dump_json(request_for("text/secret")))
    child = os.fork()  # whose limits are for good
    if child == 0:
        with source.open("rb") as bytes_of, target.open("r+b") as rows:
            said = decoded(bytes_of, rows)
        is_told = isinstance(said, Failed) and said.error == "builtins.ValueError" and "reader._batches" in said.place
        os._exit(0 if is_told else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def arrow_of(columns: dict[str, pa.Array]) -> bytes:
    """A stream of one batch."""
    sink = io.BytesIO()
    table = pa.table(columns)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def children_of(pid: int | None) -> list[int]:
    """The processes that a process has forked."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def first_of(content_type: str) -> FirstRowsRequest:
    """How a test wants a file looked at."""
    return FirstRowsRequest(content_type=content_type, bounds=UploadBounds(memory_bytes=MEMORY_BYTES))


@pytest.mark.parametrize(("content_type", "body"), [(PARQUET, parquet(COLUMNS)), (ARROW, arrow(COLUMNS))])
def test_the_first_rows_are_those_that_are_read_here(decoder: DecoderProcess, content_type: str, body: bytes) -> None:
    """With the types and the columns that are left out."""
    assert decoder.read_first(io.BytesIO(body), first_of(content_type)) == read_first_rows(
        io.BytesIO(body), content_type
    )


@pytest.mark.parametrize("name", [name for name, each in BOMBS.items() if each.content_type in BATCHES])
def test_the_first_rows_of_a_body_that_stands_for_gigabytes_take_bounded_memory(
    decoder: DecoderProcess, name: str
) -> None:
    """By the peak of both processes: no more than the beginning is read, and one that takes more is refused."""
    bomb = BOMBS[name]
    body = io.BytesIO(bomb.body())
    with bounded(decoder, ours_bytes=32 * 2**20):
        if name == "shared_prefixes":  # its rows are decoded at once
            with pytest.raises(RowsProblem, match="bytes of memory"):
                decoder.read_first(body, first_of(bomb.content_type))
        else:
            found = decoder.read_first(body, first_of(bomb.content_type))
            assert (0 < found.rows <= ROWS_MAX, found.is_whole) == (True, False)
            assert len(found.csv.encode()) <= CSV_BYTES_MAX


def test_a_file_that_is_none_is_refused_as_an_upload_is(decoder: DecoderProcess) -> None:
    """By the words of the reader."""
    with pytest.raises(RowsProblem, match="the body is not a readable Parquet file"):
        decoder.read_first(io.BytesIO(b"PAR1"), first_of(PARQUET))
