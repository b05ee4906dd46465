"""Every folder, limit and address that a start depends on is named in one line where it cannot be used."""

import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.run.adapters import tell_of_cache
from service.run.listening import AddressUnusable, bound_socket, open_forward_listener
from service.run.trials import LIMITS, THREADS_MIN, faults
from service.settings.settings import Settings
from tests.e2e.processes import sparing
from tests.logged import lines_of

FOLDERS = [
    ("SPARING_HOME", "{file}", "{file} is not a folder"),
    ("SPARING_HOME", "{file}/home", "{file} is not a folder"),
    ("SPARING_HOME", "/proc/nope", "No such file or directory in /proc"),
    ("SPARING_WITNESS", "{file}", "{file} is not a folder"),
    ("SPARING_WITNESS", "/proc/nope", "No such file or directory in /proc"),
    ("SPARING_WITNESS", "/proc/self", "No such file or directory in /proc/self"),
    ("TMPDIR", "{file}", "{file} is not a folder"),
    ("TMPDIR", "{free}/nope", "there is no such folder"),
]


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """A file, and a folder with nothing in it."""
    (tmp_path / "file").touch()
    (tmp_path / "free").mkdir()
    return {name: str(tmp_path / name) for name in ("file", "free")}


@pytest.mark.parametrize(("name", "value", "reason"), FOLDERS)
def test_a_folder_that_cannot_be_used_ends_a_start_in_one_line(
    places: dict[str, str], name: str, value: str, reason: str
) -> None:
    """With the setting's name, what is wrong and what to do, before any server is started."""
    folder, fault = value.format(**places), reason.format(**places)
    home = folder if name == "SPARING_HOME" else places["free"] + "/home"
    more = {} if name == "SPARING_HOME" else {name: folder}
    done = sparing("serve", "--port", "0", home=Path(home), **more)
    said = f"{name} names {folder}, which cannot be used: {fault}; name a folder that this account may write to"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"sparing: {said}\n")
    assert list(Path(places["free"]).iterdir()) == []


def test_a_home_in_which_nothing_is_kept_need_not_be_there() -> None:
    """Servers, pepper and witness are elsewhere, and no response is held."""
    elsewhere = {"DATABASE_URL": "postgresql://db", "REDIS_URL": "redis://cache", "SPARING_PEPPER": "ab" * 32}
    environ = {**elsewhere, "SPARING_RELEASE_SLOT_MS": "0", "SPARING_HOME": "/proc/nope", "SPARING_WITNESS": "/tmp"}
    assert list(faults(Settings.of(environ), {})) == []
    kept = Settings.of({**environ, "SPARING_RELEASE_SLOT_MS": "2"})
    assert [fault.split()[0] for fault in faults(kept, {})] == ["SPARING_HOME"]


@contextmanager
def limited(kind: int, soft: int) -> Iterator[None]:
    """Under a lower limit of this process."""
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


@pytest.mark.parametrize(
    ("kind", "soft", "said"),
    [
        (resource.RLIMIT_NOFILE, 255, "the limit `ulimit -n` is 255 open files: raise it to at least 256"),
        (resource.RLIMIT_FSIZE, 2**29, "the limit `ulimit -f` is 536870912 bytes of one file: raise it to at least"),
    ],
)
def test_a_limit_of_the_process_is_told_with_its_least_value(tmp_path: Path, kind: int, soft: int, said: str) -> None:
    """And with the command that raises it."""
    settings = Settings.of({}, home=tmp_path)
    with limited(kind, soft):
        (fault,) = faults(settings, {})
    assert fault.startswith(said)


def test_every_limit_has_a_least_value() -> None:
    """The limits are of files, addresses, data and the length of a file."""
    assert {command for _, _, command, _ in LIMITS} == {"ulimit -n", "ulimit -v", "ulimit -d", "ulimit -f"}


def test_a_container_with_little_memory_is_told(tmp_path: Path) -> None:
    """One without a limit is not."""
    settings, file = Settings.of({}, home=tmp_path), tmp_path / "memory.max"
    for text, count in (("268435455\n", 1), ("268435456\n", 0), ("max\n", 0)):
        file.write_text(text, encoding="ascii")
        assert len(list(faults(settings, {}, container_memory=file))) == count
    assert list(faults(settings, {}, container_memory=tmp_path / "none")) == []


def test_a_limit_of_threads_is_told_with_their_number(tmp_path: Path) -> None:
    """The trial's threads have ended, and one that cannot begin is none of them."""
    settings = Settings.of({}, home=tmp_path)
    begun: list[threading.Thread] = []

    def begin(thread: threading.Thread) -> None:
        if len(begun) == 24:
            raise RuntimeError("can't start new thread")
        thread.start()
        begun.append(thread)

    (fault,) = faults(settings, {}, begin=begin)
    assert fault.startswith("this process may begin only 24 threads more: raise `ulimit -u`, or the limit of processes")
    assert fault.endswith(f"at least {THREADS_MIN}")
    assert not any(thread.is_alive() for thread in begun)
    assert list(faults(settings, {})) == []


@pytest.mark.parametrize(("host", "port", "reason"), [("127.0.0.1", None, "in use"), ("10.255.255.1", 0, "assign")])
def test_an_address_that_cannot_be_listened_on_is_named(host: str, port: int | None, reason: str) -> None:
    """With the option or the setting that holds it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        used = taken.getsockname()[1] if port is None else port
        told = rf"^--host and --port \({host}, port {used}\) cannot be listened on: .*{reason}"
        with pytest.raises(AddressUnusable, match=told), bound_socket(host, used):
            pass
        with (
            pytest.raises(AddressUnusable, match=r"^SPARING_FORWARD_URL \("),
            open_forward_listener(f"http://{host}:{used}"),
        ):
            pass


def test_a_port_above_all_ports_is_named() -> None:
    """A worker's port is its place above the one that was set."""
    with pytest.raises(AddressUnusable, match=r"leads to a port above 65535"), bound_socket("127.0.0.1", 65536):
        pass


def test_a_cache_that_does_not_answer_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Without its password; the start goes on."""
    tell_of_cache("redis://:s3cret@127.0.0.1:1")
    told = "the cache of REDIS_URL cannot be reached: connection refused; queries go on without it"
    assert lines_of(caplog, "sparing.start") == [told]
