"""Shards in processes of their own beside the coordinator: a socket for each lane, and no file and no port."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from service.incidents import report_incident
from service.query.division import ShardPlace
from service.store.shards.messages import ConnectionEnded, receive, send
from service.workflows.model.rows import DatasetRecord
from service.workflows.ports.shards import Lane, ShardChannel, ShardLost

ANSWER_S: Final = 120.0
"""The longest that a shard may work on one batch: far beyond every request's deadline."""
CALL_S: Final = 900.0
"""The longest that it may work on anything else, such as the rows of a load."""
_ENDING_S: Final = 5.0
_LANES: Final[tuple[Lane, ...]] = ("queries", "records", "accounts")
_VARIABLES_KEPT: Final = ("LD_LIBRARY_PATH", "PATH", "TMPDIR")
"""The rest of our environment may hold secrets."""
_PROGRAM: Final = """
import json, sys
sys.path[:] = json.loads(sys.argv[2])
from service.store.shards.worker import main
main(json.loads(sys.argv[1]), int(sys.argv[3]))
"""


class ProcessShard:
    """The channel to a shard in a process of its own. One caller at a time on each lane.

    The process starts at the first call of the lane of queries, and ends with the thread that makes it: the kernel
    ties a process to a thread, and that one is the writer's.
    """

    def __init__(self, record: DatasetRecord, place: ShardPlace) -> None:
        """Nothing is started yet."""
        self._record, self._place = record, place
        self._process: subprocess.Popen[bytes] | None = None
        self._sockets: dict[Lane, socket.socket] = {}
        self._locks = {lane: threading.Lock() for lane in _LANES}
        self._is_ready = False

    @property
    def pid(self) -> int | None:
        """The process; None where there is none."""
        return None if self._process is None else self._process.pid

    def begin(self, lane: Lane, call: str, *arguments: object, **named: object) -> Callable[[], Any]:
        """Send a call; what is returned waits for the reply. Both raise ShardLost."""
        lock = self._locks[lane]
        lock.acquire()
        try:
            if self._process is None and lane == "queries":
                self._start()
            connection = self._sockets[lane]
            connection.settimeout(ANSWER_S if call == "answer_part" else CALL_S)
            send(connection, (call, arguments, named))
        except (ConnectionEnded, OSError, KeyError) as error:
            lock.release()
            raise self._lost(error) from None
        except BaseException:
            lock.release()
            raise

        def result() -> Any:  # noqa: ANN401 - of any method of a shard
            try:
                if not self._is_ready:
                    receive(connection)
                    self._is_ready = True
                is_done, outcome = receive(connection)
            except (ConnectionEnded, OSError) as error:
                raise self._lost(error) from None
            finally:
                lock.release()
            if not is_done:
                raise outcome
            return outcome

        return result

    def restart(self) -> None:
        """End the process; the next call of the lane of queries starts another."""
        self.close()

    def close(self) -> None:
        """End the process: it ends when its sockets are closed, and is killed where it does not."""
        for connection in self._sockets.values():
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._sockets, process, self._process = {}, self._process, None
        if process is not None:
            process.kill()
            process.wait(_ENDING_S)

    def _start(self) -> None:
        ours, theirs = zip(*(socket.socketpair() for _ in _LANES), strict=True)
        self._sockets, self._is_ready = dict(zip(_LANES, ours, strict=True)), False
        descriptors = [each.fileno() for each in theirs]
        kept = {name: os.environ[name] for name in _VARIABLES_KEPT if name in os.environ}
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _PROGRAM, json.dumps(descriptors), json.dumps(sys.path), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # a library that aborts may quote a record
                pass_fds=descriptors,
                env={**kept, **threads, "LC_ALL": "C.UTF-8", "TZ": "UTC"},
                cwd="/",
                start_new_session=True,  # a terminal's Ctrl-C is for us
            )
            send(ours[0], (self._record, (self._place.number, self._place.count)))
        finally:
            for each in theirs:
                each.close()

    def _lost(self, error: Exception) -> ShardLost:
        """Kill what is left of the shard, which may yet reply."""
        report_incident(error, f"shard {self._place.number} of dataset {self._record.id} is lost")
        if self._process is not None:
            self._process.kill()
        return ShardLost()


class ProcessShards:
    """Opens the shards of datasets in processes."""

    backend: Final = "processes"

    def open(self, record: DatasetRecord, count: int) -> list[ShardChannel]:
        """So many shards, which start at the same time."""
        return [ProcessShard(record, ShardPlace(number, count)) for number in range(count)]
