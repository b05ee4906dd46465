"""The program of a shard: it does what its coordinator calls, and ends when the coordinator ends, for whatever reason.

It has no connection to the database and no secret. All its data was sent to it. Signals that end a service are for the
coordinator.
"""

import os
import signal
import socket
import threading
from collections.abc import Sequence
from typing import Final, NoReturn

from service.background import lower_priority
from service.embedded.launch import end_with, ignore_signals
from service.ledger.ports.shards import LANES, Lane
from service.query.division import ShardPlace
from service.store.shards.messages import MessageLane
from service.writer.shards.shard import Shard

NICENESS: Final = 5
"""The niceness of a shard: timers and connections of the coordinator come before the work of its shards."""


def main(descriptors: Sequence[tuple[int, int, int]], owner_pid: int) -> None:
    """Serve the coordinator at the other ends of these lanes, each the descriptors of a socket and two files."""
    ignore_signals()
    end_with(owner_pid, signal.SIGKILL)
    os.nice(NICENESS)
    lanes = lanes_at(descriptors)
    record, place = lanes["queries"].receive()
    worker = ShardWorker(Shard(record, ShardPlace(*place)))
    lanes["queries"].send((True, os.getpid()))
    threading.Thread(target=worker.serve_slowly, name="shard-records", args=(lanes["records"],), daemon=True).start()
    threading.Thread(target=worker.serve, name="shard-accounts", args=(lanes["accounts"],), daemon=True).start()
    worker.serve(lanes["queries"])


def lanes_at(descriptors: Sequence[tuple[int, int, int]]) -> dict[Lane, MessageLane]:
    """The lanes to the coordinator, from the descriptors of this end."""
    return {
        lane: MessageLane(socket.socket(fileno=connection), sent=sent, received=received)
        for lane, (connection, received, sent) in zip(LANES, descriptors, strict=True)
    }


class ShardWorker:
    """A shard, and the calls to it."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard

    def serve_slowly(self, lane: MessageLane) -> NoReturn:
        """Serve a lane at a lower priority than the queries."""
        lower_priority()
        self.serve(lane)

    def serve(self, lane: MessageLane) -> NoReturn:
        """Do one call after the other, until the coordinator has gone or a message cannot be read or sent.

        The whole process then ends, whatever another lane is doing: if a call gets no reply, the coordinator must lose
        the shard at once.
        """
        try:
            while True:
                call, arguments, named = lane.receive()
                lane.send(self.done(call, arguments, named))
        finally:
            os._exit(0)

    def done(self, call: str, arguments: tuple[object, ...], named: dict[str, object]) -> tuple[bool, object]:
        """Do a call, and return (True, its result) or (False, its error)."""
        try:
            return True, getattr(self._shard, call)(*arguments, **named)
        except Exception as error:  # noqa: BLE001 - it is the coordinator's to handle
            return False, error.with_traceback(None)
