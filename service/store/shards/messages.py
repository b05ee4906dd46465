"""The messages between a coordinator and the process of a shard: Python objects, their arrays apart and not copied.

Both ends are one program on one machine, over a socket that no other process has, so that an object is what it says.
"""

import pickle
import socket
from struct import Struct
from typing import Any, Final

import numpy as np

_HEADER: Final = Struct("!QI")  # bytes of the objects, number of arrays
_LENGTH: Final = Struct("!Q")
_SENT_AT_ONCE: Final = 256


class ConnectionEnded(Exception):
    """The other end has closed the socket, or is gone."""


def send(connection: socket.socket, message: object) -> None:
    """Send a message. Raises OSError."""
    buffers: list[pickle.PickleBuffer] = []
    objects = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL, buffer_callback=buffers.append)
    arrays = [buffer.raw() for buffer in buffers]
    lengths = b"".join(_LENGTH.pack(array.nbytes) for array in arrays)
    _send_all(connection, [memoryview(_HEADER.pack(len(objects), len(arrays)) + lengths + objects), *arrays])


def receive(connection: socket.socket) -> Any:  # noqa: ANN401 - whatever was sent
    """The next message. Raises ConnectionEnded, OSError, TimeoutError."""
    objects_bytes, count = _HEADER.unpack(_received(connection, _HEADER.size))
    lengths = _received(connection, _LENGTH.size * count)
    objects = _received(connection, objects_bytes)
    arrays = [_received(connection, length) for (length,) in _LENGTH.iter_unpack(lengths)]
    return pickle.loads(objects, buffers=arrays)  # noqa: S301 - of our own process


def _send_all(connection: socket.socket, views: list[memoryview]) -> None:
    views = [view for view in views if view.nbytes > 0]
    while views:
        sent = connection.sendmsg(views[:_SENT_AT_ONCE])
        while views and sent >= views[0].nbytes:
            sent -= views.pop(0).nbytes
        if sent:
            views[0] = views[0][sent:]


def _received(connection: socket.socket, size: int) -> memoryview:
    """So many bytes, in memory that may be written."""
    view = np.empty(size, dtype=np.uint8).data  # not set to zero before it is filled
    filled = 0
    while filled < size:
        count = connection.recv_into(view[filled:])
        if count == 0:
            raise ConnectionEnded
        filled += count
    return view
