"""Messages between processes: all that is sent comes, and nothing else is made of them."""

import os
import pickle
import socket
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.ledger.model.pieces import Piece
from service.store.shards import messages
from service.store.shards.messages import SHARED_BYTES_MIN, ConnectionEnded, MessageLane, packed, unpacked


@pytest.fixture(scope="module")
def ends() -> Iterator[tuple[MessageLane, MessageLane]]:
    """Both ends of a lane."""
    ours, theirs = socket.socketpair()
    there, back = os.memfd_create("there"), os.memfd_create("back")
    one = MessageLane(ours, sent=there, received=back)
    other = MessageLane(theirs, sent=os.dup(back), received=os.dup(there))
    yield one, other
    one.close()
    other.close()


def passed(ends: tuple[MessageLane, MessageLane], message: object) -> object:
    """The message as it comes."""
    sending = threading.Thread(target=ends[0].send, args=(message,))
    sending.start()
    come: object = ends[1].receive()
    sending.join()
    return come


def passed_on(ends: tuple[MessageLane, MessageLane], message: object) -> object:
    """The message as it comes by way of a process that packs it again and reads nothing of it."""
    sending = threading.Thread(target=ends[0].send, args=(message,))
    sending.start()
    whole = ends[1].receive_packed()
    sending.join()
    assert whole == packed(message)
    replying = threading.Thread(target=ends[1].send_packed, args=(whole,))
    replying.start()
    come: object = ends[0].receive()
    replying.join()
    return come


ARRAYS = st.builds(
    lambda size, dtype: np.arange(size).astype(dtype),
    st.sampled_from([0, 1, 100, SHARED_BYTES_MIN // 8, 100_000]),
    st.sampled_from(["int64", "uint8", "bool", ">u4"]),
)


@settings(deadline=None, max_examples=30)
@given(arrays=st.lists(ARRAYS, max_size=4), content=st.binary(max_size=50))
def test_what_is_sent_comes(ends: tuple[MessageLane, MessageLane], arrays: list[np.ndarray], content: bytes) -> None:
    """Arrays of any size, pieces, and objects around them; each message may be changed without the others.

    Sent, packed, and passed on without being read.
    """
    piece = Piece.of(bytes(32), 3, content)
    message = ("call", tuple(arrays), piece, {"named": slice(1, 2)})
    for come in (passed(ends, message), unpacked(packed(message)), passed_on(ends, message)):
        assert isinstance(come, tuple)
        assert (come[0], come[2], come[3]) == ("call", piece, {"named": slice(1, 2)})
        for sent, array in zip(arrays, come[1], strict=True):
            assert array.dtype == sent.dtype
            assert array.tolist() == sent.tolist()
            array[:] = 0  # its own memory


def test_a_message_beyond_the_shared_memory_goes_through_the_socket(
    ends: tuple[MessageLane, MessageLane], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the rows of a load."""
    monkeypatch.setattr(messages, "SHARED_BYTES_MAX", 2**20)
    large = np.arange(2**18)
    assert np.array_equal(passed(ends, large), large)  # type: ignore[arg-type]


class Planted:
    """An object that would run a command where it is made."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("true",)


@pytest.mark.parametrize("planted", [Planted(), eval, socket.socket])
def test_nothing_else_is_made_of_a_message(ends: tuple[MessageLane, MessageLane], planted: object) -> None:
    """Classes and functions that no message of ours has are refused."""
    with pytest.raises(pickle.UnpicklingError, match="no message has"):
        passed(ends, planted)


def test_an_end_that_is_closed_is_told() -> None:
    """Before a message, and within one."""
    ours, theirs = socket.socketpair()
    lane = MessageLane(ours, sent=os.memfd_create("there"), received=os.memfd_create("back"))
    theirs.sendall(bytes(4))
    theirs.close()
    with pytest.raises(ConnectionEnded):
        lane.receive()
    lane.close()
