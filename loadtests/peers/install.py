"""Installs each other library into an environment of its own: `python -m loadtests.peers.install`.

The environments are under build/peers; .venv is not touched. Only packages that a lock of this folder names by hash are
installed. A library that cannot be installed is reported and left out; the reason is kept for the benchmark's table. An
environment whose lock has not changed since is left as it is.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadtests.peers.child import HOMES, ROOT

LOCKS = ROOT / "loadtests" / "peers"
Runner = Callable[[Sequence[str]], str]
"""The function that runs a command: an empty text if it succeeds, else the last line of its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A lock by name, and the packages in it that exist as source alone, which setuptools (build.lock) builds."""

    name: str
    sources: tuple[str, ...] = ()


LIBRARIES = (
    Library(name="opendp"),
    Library(name="smartnoise", sources=("antlr4-python3-runtime",)),
    Library(name="diffprivlib"),
)


def main() -> None:
    """Install the libraries that are missing, and report those that cannot be installed."""
    for library in LIBRARIES:
        reason = install(library, homes=HOMES, runner=run)
        if reason:
            print(f"SKIPPED {library.name}: {reason}", flush=True)


def install(library: Library, *, homes: Path, runner: Runner) -> str:
    """Make the library's environment unless it exists. Returns an empty text, or the reason why that failed."""
    home, digest = homes / library.name, _digest(library)
    done, failed = home / ".ok", home / "failed.txt"
    if done.exists() and done.read_text() == digest:
        return ""
    print(f"Installing {library.name} into {home.relative_to(homes.parent)} (once)", flush=True)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    for command in _commands(library, home):
        reason = runner(command)
        if reason:
            failed.write_text(f"cannot be installed: {reason}\n")
            return failed.read_text().strip()
    done.write_text(digest)
    return ""


def _digest(library: Library) -> str:
    names = [library.name, *(["build"] if library.sources else [])]
    return hashlib.sha256(b"".join((LOCKS / f"{name}.lock").read_bytes() for name in names)).hexdigest()


def _commands(library: Library, home: Path) -> list[list[str]]:
    """The commands that make the environment and fill it.

    For wheels alone the repository's installer, a faster one, is used.
    """
    python, lock = str(home / ".venv" / "bin" / "python"), f"loadtests/peers/{library.name}.lock"
    create = [sys.executable, "-m", "venv", str(home / ".venv")]
    if not library.sources:
        return [create, [python, ".ci/install_lock.py", lock]]
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--require-hashes"]
    build = ["--only-binary", ":all:", "--no-binary", ",".join(library.sources), "--no-build-isolation"]
    return [create, [python, ".ci/install_lock.py", "loadtests/peers/build.lock"], [*pip, *build, "-r", lock]]


def run(command: Sequence[str]) -> str:
    """Run a command without the caller's environment variables."""
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    errors = [line for line in said if line.startswith(("ERROR", "error:"))]
    return (errors or said or [f"exit status {done.returncode}"])[-1]


if __name__ == "__main__":
    main()
