"""Trials before a start: every folder that a setting names, and every limit of the process, is tried once.

Without a trial, a limit would show later as a dataset that never loads, or as an error far from its cause. A trial
leaves nothing behind. Addresses are tried where they are bound, and servers where they are opened.
"""

import os
import resource
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from service.run.lost_database import loss_of_home
from service.settings.settings import Settings, SettingsError

THREADS_MIN: Final = 128
"""The threads and processes of one busy service: 60 for requests, 20 of its own, 40 of embedded servers."""
_GIB: Final = 2**30
LIMITS: Final = (
    (resource.RLIMIT_NOFILE, 256, "ulimit -n", "open files"),
    (resource.RLIMIT_AS, 2 * _GIB, "ulimit -v", "bytes of addresses"),
    (resource.RLIMIT_DATA, _GIB, "ulimit -d", "bytes of data"),
    (resource.RLIMIT_FSIZE, _GIB, "ulimit -f", "bytes of one file"),
)
"""(limit of a process, its least value, the command that raises it, its unit)."""
CONTAINER_BYTES_MIN: Final = 2**28
_CONTAINER_MEMORY: Final = Path("/sys/fs/cgroup/memory.max")

Begin = Callable[[threading.Thread], None]


def refuse_unusable(settings: Settings) -> None:
    """Raise SettingsError for the first setting or limit with which this start cannot succeed."""
    for fault in faults(settings, os.environ):
        raise SettingsError(fault)


def faults(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    begin: Begin = threading.Thread.start,
    container_memory: Path = _CONTAINER_MEMORY,
) -> Iterator[str]:
    """A line for each fault: the setting, the limit or the lost database, and how the operator mends it."""
    loss = loss_of_home(settings)
    if loss is not None:
        yield loss
    folders = {"SPARING_WITNESS": settings.witness}
    if _keeps_something(settings):
        folders = {"SPARING_HOME": settings.home, **folders}
    if environ.get("TMPDIR"):
        folders["TMPDIR"] = Path(environ["TMPDIR"]).absolute()
    for name, folder in folders.items():
        fault = _fault_of_folder(folder, may_be_made=name != "TMPDIR")
        if fault is not None:
            yield f"{name} names {folder}, which cannot be used: {fault}; name a folder that this account may write to"
    for kind, least, command, unit in LIMITS:
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY and soft < least:
            yield f"the limit `{command}` is {soft} {unit}: raise it to at least {least}"
    memory = _container_bytes(container_memory)
    if memory is not None and memory < CONTAINER_BYTES_MIN:
        yield f"the memory of this container is {memory} bytes: raise it to at least {CONTAINER_BYTES_MIN}"
    begun = _threads_begun(begin)
    if begun < THREADS_MIN:
        yield (
            f"this process may begin only {begun} threads more: raise `ulimit -u`, or the limit of processes of the"
            f" container, so that there are at least {THREADS_MIN}"
        )


def _keeps_something(settings: Settings) -> bool:
    """Tell whether the home keeps anything: a server's data, a pepper, or the speed that prices slots."""
    stated = (settings.database_url, settings.redis_url, settings.pepper)
    return None in stated or settings.release_slot_ms > 0


def _fault_of_folder(folder: Path, *, may_be_made: bool) -> str | None:
    """The reason why no file can be made in a folder; if the folder is missing, why it cannot be made.

    None without one.
    """
    try:
        there = next(each for each in (folder, *folder.parents) if each.exists())
        if not there.is_dir():
            return f"{there} is not a folder"
        if there == folder:
            with tempfile.TemporaryFile(dir=there):
                return None
        if not may_be_made:
            return "there is no such folder"
        with tempfile.TemporaryDirectory(prefix=".sparing-", dir=there):
            return None
    except OSError as error:
        return f"{error.strerror or type(error).__name__} in {there if error.filename else folder}"


def _container_bytes(file: Path) -> int | None:
    """The limit of a container's memory; None without one."""
    try:
        text = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdecimal() else None


def _threads_begun(begin: Begin) -> int:
    """How many threads can wait at the same time, up to THREADS_MIN. All of them have ended afterwards."""
    ended = threading.Event()
    threads: list[threading.Thread] = []
    try:
        while len(threads) < THREADS_MIN:
            thread = threading.Thread(target=ended.wait, name="trial", daemon=True)
            begin(thread)
            threads.append(thread)
    except RuntimeError:  # the system gives no other
        pass
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    return len(threads)
