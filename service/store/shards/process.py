"""Shards in processes of their own beside the coordinator: a socket for each lane, and no file and no port."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from service.incidents import report_incident
from service.ledger.model.rows import DatasetRecord
from service.ledger.ports.shards import LANES, Lane, ShardBackend, ShardChannel, ShardLost
from service.query.division import ShardPlace
from service.store.shards.messages import ConnectionEnded, MessageLane

ANSWER_S: Final = 120.0
"""The most seconds that a shard may work on one batch: far beyond every request's deadline."""
CALL_S: Final = 900.0
"""The most seconds that a shard may work on anything else, such as the rows of a load."""
_ENDING_S: Final = 5.0
_TIME_MIN_S: Final = 0.1
"""The least seconds to read a reply that is there: waiting for another shard may have used up the time."""
_VARIABLES_KEPT: Final = ("LD_LIBRARY_PATH", "PATH", "TMPDIR")
"""The variables that the process gets from our environment; the others may hold secrets."""
_PROGRAM: Final = """
import importlib, json, sys
sys.path[:] = json.loads(sys.argv[2])
importlib.import_module(sys.argv[4]).main(json.loads(sys.argv[1]), int(sys.argv[3]))
"""


class ProcessShard:
    """The channel to a shard in a process of its own. One caller at a time on each lane.

    The process starts at the first call on the lane of queries. The kernel ends it with the thread that makes this
    call, which is the writer's thread.
    """

    program = "service.store.shards.worker"
    """The module whose `main` the process runs."""

    def __init__(self, record: DatasetRecord, place: ShardPlace) -> None:
        """Start nothing yet: the process starts at the first call on the lane of queries."""
        self._record, self._place = record, place
        self._process: subprocess.Popen[bytes] | None = None
        self._ends: dict[Lane, MessageLane] = {}
        self._locks = {lane: threading.Lock() for lane in LANES}
        self._is_ready = False

    @property
    def pid(self) -> int | None:
        """The process id; None where there is no process."""
        return None if self._process is None else self._process.pid

    def begin(self, lane: Lane, call: str, *arguments: object, **named: object) -> Callable[[], Any]:
        """Send a call, and return a function that waits for the reply. Both raise ShardLost."""
        lock = self._locks[lane]
        lock.acquire()
        try:
            if self._process is None and lane == "queries":
                self._start()
            end = self._ends[lane]
            within_s = ANSWER_S if call == "answer_part" else CALL_S
            until = time.monotonic() + within_s
            end.connection.settimeout(within_s)
            end.send((call, arguments, named))
        except (ConnectionEnded, OSError, KeyError) as error:
            lock.release()
            raise self._lost(error) from None
        except BaseException:
            lock.release()
            raise

        def result() -> Any:  # noqa: ANN401 - of any method of a shard
            try:
                # Several that hang are lost after the time of one: each may have been waited for after another.
                end.connection.settimeout(max(until - time.monotonic(), _TIME_MIN_S))
                if not self._is_ready:
                    end.receive()
                    self._is_ready = True
                is_done, outcome = end.receive()
            except (ConnectionEnded, OSError) as error:
                raise self._lost(error) from None
            finally:
                lock.release()
            if not is_done:
                raise outcome
            return outcome

        return result

    def restart(self) -> None:
        """End the process. The next call on the lane of queries starts another one."""
        self.close()

    def close(self) -> None:
        """Close the sockets, kill the process and wait for its end."""
        for end in self._ends.values():
            end.close()
        self._ends, process, self._process = {}, self._process, None
        if process is not None:
            process.kill()
            process.wait(_ENDING_S)

    def environment(self) -> dict[str, str]:
        """The environment variables of the process."""
        return plain_environment()

    def told(self) -> object:
        """The first message to the process: the registration, and the shard's number and count."""
        return self._record, (self._place.number, self._place.count)

    def _start(self) -> None:
        theirs: list[socket.socket] = []
        handed: list[tuple[int, int, int]] = []
        for lane in LANES:
            ours, other = socket.socketpair()
            sent, received = (os.memfd_create(f"{lane} {way}") for way in ("calls", "replies"))
            self._ends[lane] = MessageLane(ours, sent=sent, received=received)
            theirs.append(other)
            handed.append((other.fileno(), sent, received))
        self._is_ready = False
        numbers, path, owner = json.dumps(handed), json.dumps(sys.path), str(os.getpid())
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _PROGRAM, numbers, path, owner, self.program],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # a library that aborts may quote a record
                pass_fds=[descriptor for lane in handed for descriptor in lane],
                env=self.environment(),
                cwd="/",
                start_new_session=True,  # a terminal's Ctrl-C is for us
            )
            self._ends["queries"].send(self.told())
        finally:
            for each in theirs:
                each.close()

    def _lost(self, error: Exception) -> ShardLost:
        """Kill the rest of the shard, which might still reply, and return the error to raise."""
        report_incident(error, f"shard {self._place.number} of dataset {self._record.id} is lost")
        if self._process is not None:
            self._process.kill()
        return ShardLost()


class ProcessShards(ShardBackend):
    """Opens the shards of datasets in processes."""

    backend = "processes"

    def open(self, record: DatasetRecord, count: int) -> list[ShardChannel]:
        """The shards of a dataset, whose processes start at the same time."""
        return [ProcessShard(record, ShardPlace(number, count)) for number in range(count)]


def plain_environment() -> dict[str, str]:
    """The environment variables of a process that gets none of our secrets."""
    kept = {name: os.environ[name] for name in _VARIABLES_KEPT if name in os.environ}
    return {**kept, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
