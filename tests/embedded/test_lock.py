"""One supervisor per server and home."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.embedded.lock import HomeInUseError, HomeLock, Note, read_note
from service.embedded.process import EmbeddedServerError

HOLDER = """
import json, os, sys, time
from pathlib import Path
from service.embedded.lock import HomeLock
lock = HomeLock(Path(sys.argv[1]), "postgres")
lock.write(Path("/run/there"))
forked = os.fork() if sys.argv[2] == "fork" else os.getpid()
if forked == 0:
    os.close(1)
    time.sleep(60)
    os._exit(0)
print(json.dumps([os.getpid(), forked]), flush=True)
sys.stdin.read()
"""


def test_a_second_holder_is_refused_by_name(place: Path, start_owner: Callable[..., Any]) -> None:
    """The error names the process that holds the lock, and the note says where its sockets are."""
    pid, _ = start_owner(HOLDER, place, "alone").hear()
    with pytest.raises(HomeInUseError, match=f"process {pid} already runs the embedded postgres") as caught:
        HomeLock(place, "postgres")

    assert caught.value.holder_pid == pid
    assert read_note(place / "postgres.lock") == Note(pid=pid, runtime=Path("/run/there"))


def test_the_same_process_is_refused_too(place: Path) -> None:
    """Two supervisors in one process exclude each other; two servers of one home do not."""
    lock = HomeLock(place, "postgres")
    other = HomeLock(place, "valkey")
    with pytest.raises(HomeInUseError, match=f"process {os.getpid()} "):
        HomeLock(place, "postgres")
    lock.release()
    other.release()

    assert read_note(place / "postgres.lock") == Note(pid=None, runtime=None)


def test_the_next_holder_learns_where_the_sockets_were(place: Path) -> None:
    """Also when the last one has released the lock, and tells others the same until it has made its own."""
    first = HomeLock(place, "postgres")
    first.write(place / "sparing-a", has_answered=True)
    assert read_note(place / "postgres.lock") == Note(pid=os.getpid(), runtime=place / "sparing-a", has_answered=True)
    first.release()
    second = HomeLock(place, "postgres")
    found = read_note(place / "postgres.lock")
    second.release()

    assert second.predecessor == Note(pid=None, runtime=place / "sparing-a")
    assert found == Note(pid=os.getpid(), runtime=place / "sparing-a")


def test_the_note_of_a_copied_home_is_no_note(place: Path) -> None:
    """The copy must not clear away the sockets of the original."""
    lock = HomeLock(place, "postgres")
    lock.write(place / "sparing-a")
    (place / "copy").mkdir()
    shutil.copy(place / "postgres.lock", place / "copy")
    copied = HomeLock(place / "copy", "postgres")

    assert copied.predecessor is None
    copied.release()
    lock.release()


def test_a_dead_holder_leaves_its_note_but_not_its_lock(place: Path, start_owner: Callable[..., Any]) -> None:
    """After kill -9 the next one gets the lock, and learns what to clear away."""
    owner = start_owner(HOLDER, place, "alone")
    pid, _ = owner.hear()
    owner.kill()
    lock = HomeLock(place, "postgres")
    predecessor = lock.predecessor
    lock.release()

    assert predecessor == Note(pid=pid, runtime=Path("/run/there"))


def test_a_forked_child_does_not_keep_the_lock(place: Path, start_owner: Callable[..., Any]) -> None:
    """A worker forked from the holder and alive after it does not shut the next supervisor out."""
    owner = start_owner(HOLDER, place, "fork")
    _, forked = owner.hear()
    owner.kill()
    try:
        HomeLock(place, "postgres").release()
        os.kill(forked, 0)
    finally:
        os.kill(forked, 9)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"pid": 1, "runtime": 3}'])
def test_a_note_that_is_not_one_is_no_note(place: Path, text: str) -> None:
    """A lock file that is empty, half-written or something else tells nothing and raises nothing."""
    (place / "postgres.lock").write_text(text)

    assert read_note(place / "postgres.lock") is None


def test_a_lock_file_that_cannot_be_opened_is_an_error_of_ours(place: Path) -> None:
    """A link in place of the lock file is not followed."""
    (place / "postgres.lock").symlink_to(place / "elsewhere")
    with pytest.raises(EmbeddedServerError, match="cannot lock"):
        HomeLock(place, "postgres")
