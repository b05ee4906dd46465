"""Runs of tests in copies of the tree, each copy with one seeded bug, and the journal of how they ended."""

import atexit
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import profiles
from tests.mutants.mutant import ROOT, DoesNotApply, Mutant
from tests.rotation import TURN_VARIABLE, WHOLE_VARIABLE
from tests.waiting import PATIENCE_VARIABLE

SOURCES = ("", *(f"clients/{name}/src" for name in ("python", "demo", "audit", "papers", "local", "ray")))
COPIED = ("service", "migrations", "clients", "tests", "conftest.py", "pyproject.toml", "README.md")
TABLES = "tests/mutants/*.toml"
REPORT = "report.xml"
LONG_AGO = 946_684_800  # the year 2000: an archive knows no time before 1980
SECONDS_MAX = 300
STOP_SECONDS_MAX = 30
SAME_EVERY_TIME = {"PYTHONDONTWRITEBYTECODE": "1", TURN_VARIABLE: "0", WHOLE_VARIABLE: "0", PATIENCE_VARIABLE: "60"}
OPTIONS = [
    *("-q", "-x", "--assert=plain", "-p", "no:cacheprovider"),
    *("-p", profiles.__name__, f"--hypothesis-profile={profiles.SEEDED}"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The end of a run: whether all passed, the failed cases as (class, name) of the report, and what pytest said."""

    is_green: bool
    failed: list[tuple[str, str]]
    seconds: float
    said: str


def trial(mutant: Mutant | None, nodes: Iterable[str], *, seconds_max: float = SECONDS_MAX, workers: int = 1) -> Trial:
    """Run these tests in a copy of the tree until one fails. Errors outside of a test's body are no failure."""
    started = time.monotonic()
    try:
        changed = None if mutant is None else mutant.applied(ROOT)
    except DoesNotApply as error:
        return Trial(is_green=False, failed=[], seconds=0.0, said=str(error))
    parallel = ["-n", str(workers), "--dist", "loadfile"] if workers > 1 else []
    with _lent_copy() as copy, _changed(copy, changed):
        code, said = _pytest(copy, [*parallel, *nodes], seconds_max)
        failed = failed_cases(copy / REPORT)
    return Trial(is_green=code == 0, failed=failed, seconds=round(time.monotonic() - started, 1), said=said)


def digest_of_tree() -> str:
    """A hash of all that the copies are made of but the catalogue, whose mutants have hashes of their own."""
    digest = hashlib.sha256()
    with tempfile.TemporaryDirectory(prefix="sparing-mutant-") as directory:
        copy = Path(directory)
        _copy_tree(copy)
        for path in sorted(copy.rglob("*")):
            if path.is_file() and path.suffix != ".pyc" and not path.relative_to(copy).match(TABLES):
                digest.update(f"{path.relative_to(copy)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def digest_of(*parts: object) -> str:
    """A short hash of values that have a text."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


class Journal:
    """Lines of JSON that are kept from run to run; those of another tree than `tree` are passed over."""

    def __init__(self, path: Path, tree: str | None, *, is_new: bool = False) -> None:
        self._path, self._tree, self._lock = path, tree, threading.Lock()
        path.parent.mkdir(exist_ok=True)
        if is_new:
            path.unlink(missing_ok=True)
        text = path.read_text() if path.exists() else ""
        if not text.endswith("\n"):  # half a line of a run that was cut off
            path.write_text(text := text[: text.rfind("\n") + 1])
        found = [json.loads(line) for line in text.split("\n")[:-1]]
        self.lines: list[dict[str, Any]] = [line for line in found if tree in (None, line["tree"])]

    def add(self, **members: object) -> dict[str, Any]:
        """Write a line, and return it."""
        line = {"tree": self._tree, **members}
        with self._lock, self._path.open("a") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        return line


def _pytest(copy: Path, arguments: list[str], seconds_max: float) -> tuple[int | None, str]:
    """The exit status of pytest, None after an interruption at the limit; and the end of its output."""
    command = [sys.executable, "-m", "pytest", *OPTIONS, f"--junitxml={REPORT}", *arguments]
    # Before the editable installs, whose packages have no bug in them.
    path = os.pathsep.join(str(copy / source) for source in SOURCES)
    environment = os.environ | SAME_EVERY_TIME | {"PYTHONPATH": path}
    with subprocess.Popen(
        command, cwd=copy, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            _stop(process)
            (copy / REPORT).unlink(missing_ok=True)
            return None, f"no end after {seconds_max:.0f} s"
    return process.returncode, output[-6000:]


def _stop(process: subprocess.Popen[str]) -> None:
    """An interrupted pytest ends the servers that it has started; a killed one leaves them behind."""
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()


def failed_cases(report: Path) -> list[tuple[str, str]]:
    """The cases that failed; none where there was an error as well."""
    if not report.exists():
        return []
    root = ET.parse(report).getroot()  # noqa: S314 - pytest has just written it
    if root.find(".//error") is not None:
        return []
    return [(case.get("classname", ""), case.get("name", "")) for case in root.iterfind(".//testcase[failure]")]


_spare: list[Path] = []


@contextmanager
def _lent_copy() -> Iterator[Path]:
    """A copy of the tree for one trial at a time, which the next one finds as it was; gone when the process ends."""
    try:
        copy = _spare.pop()
    except IndexError:
        copy = Path(tempfile.mkdtemp(prefix="sparing-mutant-"))
        atexit.register(shutil.rmtree, copy, ignore_errors=True)
        _copy_tree(copy)
    (copy / REPORT).unlink(missing_ok=True)
    try:
        yield copy
    finally:
        _spare.append(copy)


@contextmanager
def _changed(copy: Path, changed: tuple[str, str] | None) -> Iterator[None]:
    """A file of the copy has another text, and afterwards its own."""
    if changed is None:
        yield
        return
    file, text = changed
    try:
        (copy / file).write_text(text)
        os.utime(copy / file, (LONG_AGO, LONG_AGO))  # so that no compiled module passes for it
        yield
    finally:
        shutil.copy2(ROOT / file, copy / file)


def _copy_tree(target: Path) -> None:
    """Compiled modules come along: they know the size and the time of their sources."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("node_modules", ".*"))
        else:
            shutil.copy2(ROOT / name, target / name)
