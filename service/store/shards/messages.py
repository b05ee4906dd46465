"""The messages between a coordinator and the process of a shard: Python objects, with their arrays and pieces apart.

Both ends are one program on one machine, over a socket and memory that no other process has. So objects can be trusted.
If the arrays and pieces of a message take SHARED_BYTES_MIN to SHARED_BYTES_MAX bytes, they go through shared memory;
otherwise they go through the socket. A packed message is the bytes that would go through the socket without shared
memory. It can be passed on without being read.
"""

import io
import mmap
import os
import pickle
import socket
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from itertools import accumulate, pairwise
from struct import Struct
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.ledger.model.pieces import Piece

SHARED_BYTES_MIN: Final = 2**16
SHARED_BYTES_MAX: Final = 2**28
_HEADER: Final = Struct("!QI?")  # bytes of the objects, number of buffers, whether these are in shared memory
_LENGTH: Final = Struct("!Q")
_SENT_AT_ONCE: Final = 256
_ROOTS: Final = frozenset(
    {"collections", "copyreg", "datetime", "decimal", "fractions", "functools", "numpy", "service", "uuid"}
)
_NEVER: Final = frozenset({"__import__", "breakpoint", "compile", "delattr", "eval", "exec", "getattr", "open"})


class ConnectionEnded(Exception):
    """The other end has closed the socket, or its process has ended."""


class MessageLane:
    """One end of a lane: a socket, and a file in memory for each direction. One caller at a time."""

    def __init__(self, connection: socket.socket, *, sent: int, received: int) -> None:
        """Take the socket and the descriptors of two nameless files in memory, one for each direction."""
        self.connection = connection
        self._sent, self._received = SharedMemory(sent), SharedMemory(received)

    def send(self, message: object) -> None:
        """Send a message. Raises OSError."""
        objects, views = _pickled(message)
        total = sum(view.nbytes for view in views)
        is_shared = SHARED_BYTES_MIN <= total <= SHARED_BYTES_MAX
        head = _head(objects, [view.nbytes for view in views], is_shared=is_shared)
        if is_shared:
            self._sent.write(views, total)
            views = []
        _send_all(self.connection, [memoryview(head), objects, *views])

    def receive(self) -> Any:  # noqa: ANN401 - whatever was sent
        """The next message. Raises ConnectionEnded, OSError, TimeoutError."""
        objects, lengths, whole = self._received_parts()
        return _Unpickler(io.BytesIO(objects), buffers=_cut(whole, lengths)).load()

    def send_packed(self, message: bytes) -> None:
        """Send a message that is packed. Raises OSError."""
        _send_all(self.connection, [memoryview(message)])

    def receive_packed(self) -> bytes:
        """The next message, packed, without reading it. Raises ConnectionEnded, OSError, TimeoutError."""
        objects, lengths, whole = self._received_parts()
        return b"".join((_head(objects, lengths, is_shared=False), objects, whole))

    def _received_parts(self) -> tuple[memoryview, list[int], memoryview]:
        """The objects of the next message, the lengths of its buffers, and the buffers, one after the other."""
        objects_bytes, count, is_shared = _HEADER.unpack(_received(self.connection, _HEADER.size))
        rest = _received(self.connection, _LENGTH.size * count + objects_bytes)
        lengths = _lengths(rest, count)
        total = sum(lengths)
        whole = self._received.read(total)[:total] if is_shared else _received(self.connection, total)
        return rest[_LENGTH.size * count :], lengths, whole

    def close(self) -> None:
        """Close the socket and the memory. This also ends any waiting of the other end."""
        with suppress(OSError):  # the other end is gone
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()
        self._sent.close()
        self._received.close()


def packed(message: object) -> bytes:
    """The bytes of a packed message."""
    objects, views = _pickled(message)
    return b"".join((_head(objects, [view.nbytes for view in views], is_shared=False), objects, *views))


def unpacked(message: bytes) -> Any:  # noqa: ANN401 - whatever was packed
    """The message in packed bytes; its arrays are writable. Raises UnpicklingError for classes that no message has."""
    view = memoryview(message)
    objects_bytes, count, _ = _HEADER.unpack_from(view)
    lengths = _lengths(view[_HEADER.size :], count)
    begin = _HEADER.size + _LENGTH.size * count
    end = begin + objects_bytes
    return _Unpickler(io.BytesIO(view[begin:end]), buffers=_cut(view[end:], lengths)).load()


class SharedMemory:
    """A nameless file in memory, as long as the longest message so far."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._map: mmap.mmap | None = None

    def write(self, views: Sequence[memoryview], total: int) -> None:
        """Write buffers into the file, one after the other."""
        if os.fstat(self._descriptor).st_size < total:
            os.ftruncate(self._descriptor, -(-total // mmap.PAGESIZE) * mmap.PAGESIZE)
        mapped, end = self._mapped(total), 0
        for view in views:
            begin, end = end, end + view.nbytes
            mapped[begin:end] = view.cast("B") if view.ndim != 1 or view.format != "B" else view

    def read(self, total: int) -> memoryview:
        """All buffers together, in memory that the next message overwrites."""
        return memoryview(self._mapped(total))

    def close(self) -> None:
        """Close the file. Its mapping stays until it is no longer used."""
        os.close(self._descriptor)

    def _mapped(self, size: int) -> mmap.mmap:
        if self._map is None or len(self._map) < size:
            self._map = mmap.mmap(self._descriptor, os.fstat(self._descriptor).st_size)
        return self._map


class _Pickler(pickle.Pickler):
    """Puts the bytes of arrays and of pieces into separate buffers."""

    def reducer_override(self, obj: object) -> Any:  # noqa: ANN401 - the signature of pickle's
        """The way to make an array or a piece from a copy of its buffer, and a member of an Enum from its value."""
        if type(obj) is np.ndarray and obj.flags.c_contiguous and not obj.dtype.hasobject:
            return _array, (pickle.PickleBuffer(obj.reshape(-1).view(np.uint8).data), obj.dtype.str, obj.shape)
        if isinstance(obj, Enum):
            return type(obj), (obj.value,)
        if type(obj) is Piece:
            return _piece, (obj.number, pickle.PickleBuffer(obj.content), obj.digest, obj.first_digest)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    """Makes objects of this service and of the libraries that its plans and records use, and no others."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - the signature of pickle's
        """The class or function with this name. Raises UnpicklingError if no message has it."""
        root = module.partition(".")[0]
        if root in _ROOTS or (root == "builtins" and name not in _NEVER):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"no message has {module}.{name}")


def _pickled(message: object) -> tuple[memoryview, list[memoryview]]:
    """The objects of a message, and the buffers of its arrays and pieces."""
    buffers: list[pickle.PickleBuffer] = []
    objects = io.BytesIO()
    _Pickler(objects, protocol=pickle.HIGHEST_PROTOCOL, buffer_callback=buffers.append).dump(message)
    return objects.getbuffer(), [buffer.raw() for buffer in buffers]


def _head(objects: memoryview, lengths: Sequence[int], *, is_shared: bool) -> bytes:
    return _HEADER.pack(objects.nbytes, len(lengths), is_shared) + b"".join(map(_LENGTH.pack, lengths))


def _lengths(view: memoryview, count: int) -> list[int]:
    return [length for (length,) in _LENGTH.iter_unpack(view[: _LENGTH.size * count])]


def _array(buffer: memoryview, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.frombuffer(buffer, dtype=dtype).reshape(shape).copy()


def _piece(number: int, content: memoryview, digest: bytes, first_digest: bytes) -> Piece:
    return Piece(number=number, content=bytes(content), digest=digest, first_digest=first_digest)


def _cut(whole: memoryview, lengths: Sequence[int]) -> list[memoryview]:
    ends = [0, *accumulate(lengths)]
    return [whole[begin:end] for begin, end in pairwise(ends)]


def _send_all(connection: socket.socket, views: list[memoryview]) -> None:
    views = [view for view in views if view.nbytes > 0]
    while views:
        sent = connection.sendmsg(views[:_SENT_AT_ONCE])
        while views and sent >= views[0].nbytes:
            sent -= views.pop(0).nbytes
        if sent:
            views[0] = views[0][sent:]


def _received(connection: socket.socket, size: int) -> memoryview:
    """The next `size` bytes, in writable memory."""
    view = np.empty(size, dtype=np.uint8).data  # not set to zero before it is filled
    filled = 0
    while filled < size:
        count = connection.recv_into(view[filled:])
        if count == 0:
            raise ConnectionEnded
        filled += count
    return view
