"""The program that decodes uploads: it imports all that decoding needs, and then forks a process for each upload.

A fork takes milliseconds, whereas a start takes most of a second. This process, the server, reads no byte of an upload,
so that no upload can affect the next. It has one thread (a fork of a process with several would inherit their locks),
no secret, and no descriptor except those that it is handed. It ends when its owner's end of the socket is closed, for
whatever reason. Signals that end a service are for the owner, which finishes its uploads first.
"""

import errno
import gc
import io
import os
import resource
import selectors
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

import pyarrow as pa
import pyarrow.csv as pa_csv

from service.embedded.launch import end_with, ignore_signals
from service.engine.ingest.problems import RowsProblem
from service.engine.ingest.reader import NDJSON, read_rows
from service.incidents import kind_of, places_of
from service.ledger.ports.row_reader import ReaderHere, ReadRequest
from service.query.schema import IndividualsTable
from service.store.decoder.messages import FIRST_ROWS, REQUEST, Ended, Failed, Message, Read, Refused, Told, line_of
from service.store.decoder.rows_file import write_rows

SECONDS_MAX: Final = 900
"""The most seconds that decoding one upload may take; after that the kernel ends the process."""
DESCRIPTORS: Final = 3
"""The files of each upload: its bytes; one with the request, which the rows replace; and a socket for the messages."""
_NICENESS: Final = 10
_KIB: Final = 1024


def main(descriptor: int) -> None:
    """Serve the owner at the other end of this socket until it is closed."""
    ignore_signals()
    os.nice(_NICENESS)
    _prepare()
    gc.freeze()  # a collection in a fork would copy every page with an object of a module
    with socket.socket(fileno=descriptor) as control:
        ForkServer(control).run()


class ForkServer:
    """Forks a decoder for each upload, and reports how the decoder has ended."""

    def __init__(self, control: socket.socket) -> None:
        self._control, self._pid = control, os.getpid()
        self._selector = selectors.DefaultSelector()
        self._children: dict[int, tuple[int, socket.socket]] = {}  # process and socket by its descriptor

    def run(self) -> None:
        """Run until the owner has gone. Decoders that still run then are killed."""
        self._selector.register(self._control, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is not self._control:
                    self._bury(key.fd)
                elif not self._take():
                    self._end()
                    return

    def _take(self) -> bool:
        """Fork for one upload; False when the owner has gone."""
        word, descriptors, _, _ = socket.recv_fds(self._control, 1, DESCRIPTORS)
        if not word:
            return False
        source, target, said = descriptors
        reply = socket.socket(fileno=said)
        try:
            pid = os.fork()
        except OSError as error:
            _say(reply, failed(error, is_passing=True))
            _say(reply, Ended(exit_code=-1, peak_bytes=0))
            reply.close()
        else:
            if pid == 0:
                self._become_decoder(source, target, reply)
            child = os.pidfd_open(pid)
            self._children[child] = pid, reply
            self._selector.register(child, selectors.EVENT_READ)
        os.close(source)
        os.close(target)
        return True

    def _become_decoder(self, source: int, target: int, reply: socket.socket) -> NoReturn:
        exit_code = 1
        try:
            end_with(self._pid, signal.SIGKILL)
            self._control.close()
            self._selector.close()
            for child, (_, other) in self._children.items():
                os.close(child)
                other.close()
            with os.fdopen(source, "rb") as bytes_of, os.fdopen(target, "r+b") as rows:
                _say(reply, decoded(bytes_of, rows))
            exit_code = 0
        finally:
            os._exit(exit_code)  # nothing that the server would do at its end is done here

    def _bury(self, child: int) -> None:
        pid, reply = self._children.pop(child)
        self._selector.unregister(child)
        os.close(child)
        _, status, used = os.wait4(pid, 0)
        _say(reply, Ended(exit_code=os.waitstatus_to_exitcode(status), peak_bytes=used.ru_maxrss * _KIB))
        reply.close()

    def _end(self) -> None:
        for pid, _ in self._children.values():
            os.kill(pid, signal.SIGKILL)


def decoded(source: io.BufferedReader, target: io.BufferedRandom) -> Message:
    """Decode under the limits of the request in `target`, replace the request by the rows, and return the outcome."""
    request = REQUEST.validate_json(target.read())
    target.seek(0)
    target.truncate()
    source.seek(0)
    try:
        limit(request.bounds.memory_bytes, SECONDS_MAX)
        if isinstance(request, ReadRequest):
            return Read(counts=write_rows(ReaderHere().read(source, request), target))
        target.write(FIRST_ROWS.dump_json(ReaderHere().read_first(source, request)))
        target.flush()
        return Told(kind="read first")
    except RowsProblem as problem:
        return Refused(errors=problem.errors, counts=problem.counts)
    except (MemoryError, SystemError):  # the latter from libraries that get no memory and do not say so
        return Told(kind="out of memory")
    except OSError as error:  # of the two files; what an upload makes of reading it is a RowsProblem
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return Told(kind="no room")
        return Told(kind="out of memory") if error.errno == errno.EFBIG else failed(error, is_passing=True)
    except Exception as error:  # noqa: BLE001 - the owner hears of it
        return failed(error, is_passing=False)


def limit(memory_bytes: int, seconds: int) -> None:
    """Limit this process to `memory_bytes` of further address space, as many bytes in a file, and `seconds` of time."""
    _begin_threads()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    _lower(resource.RLIMIT_AS, pages * resource.getpagesize() + memory_bytes)
    _lower(resource.RLIMIT_FSIZE, memory_bytes)
    _lower(resource.RLIMIT_CORE, 0)  # a core would hold records
    signal.alarm(seconds)
    Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")  # before the service and its database


def failed(error: BaseException, *, is_passing: bool) -> Failed:
    """The kind of an error and its places in the code, not a word of what it said."""
    return Failed(error=kind_of(error), place=places_of(error), is_passing=is_passing)


def _prepare() -> None:
    """Have libraries make now, without a thread, what they make at their first use."""
    ReaderHere().open()
    table = IndividualsTable.model_validate(
        {"kind": "individuals", "key": "key", "columns": {"real": {"type": "real", "lower": 0, "upper": 1}}}
    )
    read_rows(io.BytesIO(b'{"key": "a", "real": 0.5}'), NDJSON, table, budget_units=1)


def _begin_threads() -> None:
    """Have Arrow start its threads now: under the limit this could fail, and a reader would then wait for ever."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    pa_csv.read_csv(io.BytesIO(b"a\n1\n"))


def _lower(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (bound, bound))


def _say(reply: socket.socket, message: Message) -> None:
    with suppress(OSError):  # nobody waits for it any more
        reply.sendall(line_of(message))
