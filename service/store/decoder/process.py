"""Uploads read by decoders, which are processes of their own: a body made to break its reader breaks nothing else.

The rows come back in a nameless file that is mapped once the decoder has ended. This is for Linux only, and so are the
limits of a decoder.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa
from pydantic import ValidationError

from service.engine.ingest import FirstRows, Rows, RowsProblem
from service.incidents import report_incident
from service.ledger.model.errors import DiskFull, Unavailable
from service.ledger.ports.row_reader import FirstRowsRequest, ReadRequest
from service.store.decoder.messages import (
    FIRST_ROWS,
    FIRST_ROWS_BYTES_MAX,
    LINE_BYTES_MAX,
    MESSAGE,
    REQUEST,
    Ended,
    Failed,
    Message,
    Read,
    Refused,
    Request,
    Told,
)
from service.store.decoder.rows_file import mapped_rows
from service.writer.admission.spools import refusing_a_full_disk

VARIABLES_KEPT: Final = ("LD_LIBRARY_PATH", "PATH", "TMPDIR")
"""The variables that the process gets from our environment; the others may hold secrets."""
VARIABLES: Final = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # the other pools reserve addresses by the gigabyte, which the limit counts
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # a thread from the import on, and a fork must have but one
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "1048576",  # one that grows leaves gaps between blocks, as many bytes as the upload has
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
_PROGRAM: Final = """
import json, sys
sys.path[:] = json.loads(sys.argv[2])
from service.store.decoder.fork_server import main
main(int(sys.argv[1]))
"""
LOOK_S: Final = 1.0
"""The seconds between looks at the processes. A decoder that is stopped at two looks is killed."""
_ENDING_S: Final = 1.0
_TRIES: Final = 2
_OF_THE_SERVICE: Final = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
"""Signals that do not come from decoding: an operator sends them, or the kernel when the machine's memory is full."""


class DecoderFault(Exception):
    """A decoder met an error of the program. The text has the error's kind and its places in the code."""


class DecoderProcess:
    """Reads each upload in a process that is forked for it. Thread-safe."""

    def __init__(self) -> None:
        """Start nothing: the process starts with `open` or with the first upload."""
        self.peak_bytes = 0  # the largest resident memory of a decoder
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """The process that forks decoders; None before it is started."""
        return None if self._server is None else self._server.pid

    def open(self) -> None:
        """Start the process that forks decoders."""
        with self._lock:
            self._started()

    def close(self) -> None:
        """End the process that forks decoders, and any decoder that is running."""
        with self._lock:
            self._end()

    def read(self, source: BinaryIO, request: ReadRequest) -> Rows:
        """All rows of an upload. Raises RowsProblem if it is wrong or too large, and Unavailable for a fault of ours.

        Raises DecoderFault for an error of the program.
        """
        with self._decoded(source, request) as (outcome, rows):
            if not isinstance(outcome, Read):
                raise DecoderFault("a decoder has read what it was not asked for")
            try:
                return mapped_rows(rows, outcome.counts, request.table)
            except (pa.ArrowException, StopIteration) as error:
                raise DecoderFault("the rows of a decoder cannot be read") from error

    def read_first(self, source: BinaryIO, request: FirstRowsRequest) -> FirstRows:
        """The first rows of a file that does not belong to a table yet. Raises what `read` raises."""
        with self._decoded(source, request) as (_, rows):
            rows.seek(0)
            try:
                return FIRST_ROWS.validate_json(rows.read(FIRST_ROWS_BYTES_MAX))
            except ValidationError as error:
                raise DecoderFault("the first rows of a decoder cannot be read") from error

    @contextmanager
    def _decoded(self, source: BinaryIO, request: Request) -> Iterator[tuple[Message, BinaryIO]]:
        """The message of a decoder that has read the request, and the file with the rows."""
        with ExitStack() as stack:
            with refusing_a_full_disk():
                rows = stack.enter_context(tempfile.TemporaryFile())
                rows.write(REQUEST.dump_json(request))
                rows.seek(0)
                file = _file_of(source, stack)
            ours, theirs = socket.socketpair()
            with ours:
                with theirs:
                    self._hand_over([file.fileno(), rows.fileno(), theirs.fileno()])
                outcome, ended = _heard(ours, self._end_stopped)
            self.peak_bytes = max(self.peak_bytes, ended.peak_bytes)
            if outcome is None or outcome.kind not in {"read", "read first"} or ended.exit_code != 0:
                raise _refusal(outcome, ended, request)
            yield outcome, rows

    def _hand_over(self, descriptors: list[int]) -> None:
        """Send the descriptors to the process that forks a decoder for the upload. Raises Unavailable."""
        with self._lock:
            for _ in range(_TRIES):
                try:
                    socket.send_fds(self._started(), [b"."], descriptors)
                except OSError as error:  # it was killed, and another takes its place
                    report_incident(error, "the process that forks decoders is gone")
                    self._end()
                else:
                    return
        raise Unavailable

    def _end_stopped(self, before: frozenset[int]) -> frozenset[int]:
        """Kill processes that were stopped `before` and still are, and return the others that are stopped now.

        A stopped process ends neither at its limit of time nor with its owner.
        """
        server = self.pid
        watched = () if server is None else (server, *_children_of(server))
        stopped = frozenset(pid for pid in watched if _is_stopped(pid))
        for pid in stopped & before:
            with suppress(OSError):  # it has ended meanwhile
                os.kill(pid, signal.SIGKILL)
        return stopped - before

    def _started(self) -> socket.socket:
        if self._control is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                kept = {name: os.environ[name] for name in VARIABLES_KEPT if name in os.environ}
                self._server = subprocess.Popen(
                    [sys.executable, "-I", "-c", _PROGRAM, str(theirs.fileno()), json.dumps(sys.path)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,  # a library that aborts may quote a record
                    pass_fds=[theirs.fileno()],
                    env={**kept, **VARIABLES, "LC_ALL": "C.UTF-8", "TZ": "UTC"},
                    cwd="/",
                    start_new_session=True,  # a terminal's Ctrl-C is for us
                )
            self._control = ours
        return self._control

    def _end(self) -> None:
        server, control = self._server, self._control
        self._server = self._control = None
        if control is not None:
            control.close()
        if server is not None:
            if _is_stopped(server.pid):
                server.kill()
            try:
                server.wait(_ENDING_S)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _file_of(source: BinaryIO, stack: ExitStack) -> BinaryIO:
    """The source as a file that has a descriptor, with all its bytes written."""
    try:
        source.fileno()
    except OSError:
        whole = source
        source = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        shutil.copyfileobj(whole, source)
    source.flush()
    return source


def _heard(
    reply: socket.socket, end_stopped: Callable[[frozenset[int]], frozenset[int]]
) -> tuple[Message | None, Ended]:
    """The decoder's first message, and how the decoder ended. Raises Unavailable if the end is not reported."""
    outcome: Message | None = None
    for line in _lines(reply, end_stopped):
        message = MESSAGE.validate_json(line)
        if isinstance(message, Ended):
            return outcome, message
        outcome = outcome or message
    report_incident(DecoderFault(), "the process that forks decoders is gone, and a decoder with it")
    raise Unavailable


def _lines(reply: socket.socket, end_stopped: Callable[[frozenset[int]], frozenset[int]]) -> Iterator[bytes]:
    """The whole lines that arrive. While none arrives, `end_stopped` looks for stopped processes."""
    said, stopped = b"", frozenset[int]()
    reply.settimeout(LOOK_S)
    while len(said) < LINE_BYTES_MAX:
        try:
            piece = reply.recv(LINE_BYTES_MAX)
        except TimeoutError:
            stopped = end_stopped(stopped)
            continue
        if not piece:
            return
        *lines, said = (said + piece).split(b"\n")
        yield from lines


def _children_of(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except OSError:
        return []


def _is_stopped(pid: int) -> bool:
    """Tell whether a signal has stopped the process."""
    try:
        stated = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stated.rpartition(")")[2].split()[0] == "T"


def _refusal(outcome: Message | None, ended: Ended, request: Request) -> Exception:
    """The error of an upload that gave no rows."""
    match outcome:
        case Refused():
            return RowsProblem(outcome.errors, outcome.counts)
        case Told(kind="out of memory"):
            return _too_large(request)
        case Told(kind="no room"):
            return DiskFull()
        case Failed():
            fault = DecoderFault(f"{outcome.error} at {outcome.place}")
            report_incident(fault, f"decoding an upload: {outcome.error} at {outcome.place}")
            return Unavailable() if outcome.is_passing else fault
        case _:
            return _of_signal(-ended.exit_code, request)


def _of_signal(number: int, request: Request) -> Exception:
    if number in _OF_THE_SERVICE:
        report_incident(DecoderFault(), f"a decoder was ended by signal {number}")
        return Unavailable()
    if number == signal.SIGALRM:
        return RowsProblem.of("reading the upload takes too long: split it")
    # Some libraries end the process where they get no memory, instead of saying so.
    return _too_large(request)


def _too_large(request: Request) -> RowsProblem:
    memory_bytes = request.bounds.memory_bytes
    return RowsProblem.of(f"reading the upload takes more than {memory_bytes} bytes of memory: split it")
