"""The doors of a process: the addresses at which it listens, and the names under which others find them."""

import socket

import pytest

from service.door import forward_door, parted


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]"])
def test_the_door_for_other_processes_is_named_as_it_was_set(name: str) -> None:
    """With the port that was free, and whoever connects there is heard."""
    with forward_door(f"http://{name}") as (listener, url):
        listener.listen()
        _, port = listener.getsockname()[:2]
        assert url == f"http://{name}:{port}"
        host = parted(url)[0]
        with socket.create_connection((host, port), timeout=5), listener.accept()[0]:
            pass


def test_a_name_is_listened_on_everywhere() -> None:
    """What it means to other machines is not known here."""
    with forward_door("http://{hostname}") as (listener, url):
        listener.listen()
        assert url == f"http://{socket.gethostname().lower()}:{listener.getsockname()[1]}"
        assert listener.getsockname()[0] == ".".join("0000")
        with socket.create_connection(listener.getsockname(), timeout=5), listener.accept()[0]:
            pass


def test_a_port_that_was_set_is_taken_or_refused() -> None:
    """Two processes cannot have the same."""
    with forward_door("http://127.0.0.1") as (listener, url):
        listener.listen()
        with pytest.raises(OSError, match="in use"), forward_door(url):
            pass


def test_the_name_of_the_machine_stands_for_itself() -> None:
    """One setting serves machines that are told apart by their names."""
    assert parted("http://{hostname}:8100") == (socket.gethostname().lower(), 8100)
