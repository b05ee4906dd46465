"""Sockets that give a server so long for all of a reply."""

import socket

import pytest

from service.store.redis.client import DeadlineSocket


def test_a_late_look_finds_what_came_in_time_without_waiting() -> None:
    """Something else may have taken the time that was given."""
    ours, theirs = socket.socketpair()
    with theirs, DeadlineSocket(fileno=ours.detach()) as late:
        late.settimeout(5.0)
        late.sendall(b"?")
        theirs.sendall(b"reply")
        into = bytearray(8)
        assert late.recv_into(into) == 5
        with pytest.raises(TimeoutError):
            late.recv_into(into)
        assert late.gettimeout() == 5.0
