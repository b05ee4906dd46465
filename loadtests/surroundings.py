"""The gate in other surroundings than those of its authors: `make surroundings`, before a release.

Each surrounding has its own clone, and a line in tests/records/surroundings.jsonl with the tests that passed, failed
and were skipped. A surrounding in which the same tree has passed is not tried again, so that an interrupted run goes
on. Another account, a cut network and packages of the system need root on Debian.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtests.records import RECORDS, keep_record, kept_records
from tests import drawn_inputs
from tests.surroundings import LOCALE_VARIABLE, ZONE_VARIABLE

ROOT = RECORDS.parents[1]
RECORD = "surroundings"
ACCOUNT = "sparing-tests"
TURKISH, CHATHAM = "tr_TR.UTF-8", "Pacific/Chatham"
OF_MAKE = {"ARGS", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS"}
WHOLE = ("make", "check", "docs", "test")
COUNTS = re.compile(r"\b(\d+) (passed|failed|skipped|errors?)\b")
CLOSING_LINE = re.compile(r"^=* ?(\d+ (?:passed|failed|skipped|errors?).*) in [\d.]+s", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The exit status of a run of the gate, its counts of tests, and the reason for each skipped test."""

    status: int
    counts: Mapping[str, int]
    skipped: Sequence[str]

    @classmethod
    def of(cls, status: int, output: str) -> "Outcome":
        """The outcome by pytest's closing lines."""
        counts = {"passed": 0, "failed": 0, "skipped": 0, "error": 0}
        for line in CLOSING_LINE.findall(output):
            for count, word in COUNTS.findall(line):
                counts[word.removesuffix("s") if word.startswith("error") else word] += int(count)
        skipped = sorted(line for line in output.splitlines() if line.startswith("SKIPPED "))
        return cls(status=status, counts=counts, skipped=skipped)

    @property
    def is_green(self) -> bool:
        """True if the gate passed and any test ran."""
        return self.status == 0 and self.counts["passed"] > 0 == self.counts["failed"] + self.counts["error"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Clone:
    """A clean clone, in which the commands of a surrounding run."""

    folder: Path
    log: Path

    def install(self) -> None:
        """Make its environment, and get the browser and the tools of the pages. Raises CalledProcessError."""
        _run(".ci/install_browser", cwd=self.folder)
        _run("make", "--silent", ".venv/.dev-ok", cwd=self.folder)
        if shutil.which("npm"):
            _run("make", "--silent", "clients/dashboard/node_modules/.ok", cwd=self.folder)

    def run(self, *command: str, within: Sequence[str] = (), variables: Mapping[str, str] | None = None) -> Outcome:
        """Run a command, `within` another program if that is given; the output goes to the clone's log."""
        with self.log.open("w") as log:
            status = subprocess.run(
                [*within, *command],
                cwd=self.folder,
                env=_environment() | dict(variables or {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            ).returncode
        return Outcome.of(status, self.log.read_text(errors="replace"))


def in_the_background(clone: Clone) -> list[Outcome]:
    """Run as `nohup ... &` does: in a new session that ignores signals, and that installs everything by itself."""
    script = 'trap "" HUP INT QUIT; exec setsid --wait "$@"'
    return [clone.run(".ci/run", within=["sh", "-c", script, "sh"])]


def beside_busy_loops(clone: Clone) -> list[Outcome]:
    """Run beside two loops of the same priority, which take half of two cores."""
    clone.install()
    with ExitStack() as stack:
        for _ in range(2):
            loop = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(loop.kill)
        return [clone.run(*WHOLE)]


def in_random_order(clone: Clone) -> list[Outcome]:
    """Run modules, and tests within each, in an order that pytest-randomly draws and prints."""
    clone.install()
    return [clone.run("make", "test", "ARGS=-p randomly")]


def by_another_account(clone: Clone) -> list[Outcome]:
    """Run as an account with rights to its own files alone, which makes its environment with the system's Python."""
    _install("python3-venv")
    _run(".ci/install_browser", cwd=clone.folder)
    if subprocess.run(["id", ACCOUNT], capture_output=True, check=False).returncode:  # noqa: S607
        _run("useradd", "--create-home", ACCOUNT)
    _run("chown", "--recursive", f"{ACCOUNT}:", str(clone.folder.parent))
    variables = {"HOME": f"/home/{ACCOUNT}", "USER": ACCOUNT, "LOGNAME": ACCOUNT}
    command = [*WHOLE, "PY=/usr/bin/python3"]
    return [clone.run(*command, within=["runuser", "-u", ACCOUNT, "--"], variables=variables)]


def a_year_ahead(clone: Clone) -> list[Outcome]:
    """Run with a calendar clock that shows next year.

    Clocks of durations are left alone, and so are tests with a browser, which would not start.
    """
    clone.install()
    _install("faketime")
    command = ["make", "test", "ARGS=-m 'not browser'"]
    return [clone.run(*command, within=["faketime", "-f", "+1y"], variables={"FAKETIME_DONT_FAKE_MONOTONIC": "1"})]


def in_chatham_and_turkish(clone: Clone) -> list[Outcome]:
    """Run in a zone with quarters of an hour and a locale with two kinds of i; tests/test_surroundings.py sees both."""
    clone.install()
    _install("locales")
    _run("localedef", "-i", "tr_TR", "-f", "UTF-8", TURKISH)
    inherited = {"TZ": CHATHAM, "LC_ALL": TURKISH, "LANG": TURKISH}
    return [clone.run(*WHOLE, variables=inherited | {LOCALE_VARIABLE: TURKISH, ZONE_VARIABLE: CHATHAM})]


def without_a_network(clone: Clone) -> list[Outcome]:
    """Run with loopback alone, after everything is installed."""
    clone.install()
    script = 'ip link set lo up && exec "$@"'
    return [clone.run(*WHOLE, within=["unshare", "--net", "sh", "-c", script, "sh"])]


def twice_at_once(clone: Clone) -> list[Outcome]:
    """Run twice at the same time, in two clones on one machine."""
    with clean_clone("beside") as beside, ThreadPoolExecutor(2) as pool:
        both = (clone, beside)
        for each in both:
            each.install()
        return list(pool.map(lambda each: each.run(*WHOLE), both))


def three_times(clone: Clone) -> list[Outcome]:
    """Three runs of the laws, under other seeds of hashes, draw the same inputs for the same tests."""
    clone.install()
    folders = [clone.folder / "build" / f"inputs-{number}" for number in range(3)]
    outcomes = [
        clone.run(
            *(".venv/bin/python", "-m", "pytest", "-n", "3", "--dist", "loadfile", "-m", "hypothesis and not browser"),
            f"--record-inputs={folder}",
            variables={"PYTHONHASHSEED": str(number)},
        )
        for number, folder in enumerate(folders)
    ]
    first, *others = (drawn_inputs.recorded(folder) for folder in folders)
    unlike = sorted({test for other in others for test in first.keys() | other if first.get(test) != other.get(test)})
    sys.stdout.write("".join(f"  unlike inputs: {test}\n" for test in unlike))
    return [*outcomes, Outcome(status=0, counts={"passed": len(first), "failed": len(unlike), "error": 0}, skipped=[])]


SURROUNDINGS: dict[str, Callable[[Clone], list[Outcome]]] = {
    "background": in_the_background,
    "busy": beside_busy_loops,
    "random-order": in_random_order,
    "account": by_another_account,
    "next-year": a_year_ahead,
    "locale": in_chatham_and_turkish,
    "loopback": without_a_network,
    "twice": twice_at_once,
    "repeated": three_times,
}


@contextmanager
def clean_clone(name: str) -> Iterator[Clone]:
    """A clone of the last commit, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix=f"sparing-{name}-") as directory:
        Path(directory).chmod(0o755)
        folder = Path(directory) / "clone"
        _run("git", "clone", "--quiet", str(ROOT), str(folder))
        yield Clone(folder=folder, log=Path(directory) / "log")


def main() -> int:
    """Try each surrounding in which this tree has not passed. The exit status is 1 unless all have passed."""
    parser = argparse.ArgumentParser(prog="python -m loadtests.surroundings", description=__doc__)
    parser.add_argument("--only", choices=list(SURROUNDINGS))
    parser.add_argument("--again", action="store_true", help="also those in which this tree has passed")
    options = parser.parse_args()
    names = [options.only] if options.only else list(SURROUNDINGS)
    passed = set() if options.again else _passed_in_this_tree()
    return max(0 if name in passed else _try(name) for name in names)


def _try(name: str) -> int:
    """Try one surrounding, print and record it. Returns 1 unless all of its runs are green."""
    started_s = time.monotonic()
    with clean_clone(name) as clone:
        outcomes = SURROUNDINGS[name](clone)
        kept = shutil.copy(clone.log, Path(tempfile.gettempdir()) / f"sparing-surroundings-{name}.txt")
    is_green = all(outcome.is_green for outcome in outcomes)
    figures: dict[str, Any] = {
        "surrounding": name,
        "is_green": is_green,
        "minutes": round((time.monotonic() - started_s) / 60, 1),
        "runs": [dict(outcome.counts) for outcome in outcomes],
        "skipped": sorted({line for outcome in outcomes for line in outcome.skipped}),
    }
    here_alone = set(figures["skipped"]) - _skipped_in("background")
    keep_record(RECORD, figures)
    sys.stdout.write(f"{'passed' if is_green else 'FAILED'} {name}: {figures['runs']}; its output is in {kept}\n")
    sys.stdout.write("".join(f"  not skipped in the background: {line}\n" for line in sorted(here_alone)))
    sys.stdout.flush()
    return 0 if is_green else 1


def _passed_in_this_tree() -> set[str]:
    """The surroundings in which a commit has passed that differs from the last one only in its records."""
    passed = [line for line in kept_records(RECORD) if line["is_green"] and line["is_clean"]]
    same = {commit for commit in {line["commit"] for line in passed} if _is_same_tree(commit)}
    return {line["surrounding"] for line in passed if line["commit"] in same}


def _is_same_tree(commit: str) -> bool:
    command = ["git", "diff", "--quiet", commit, "HEAD", "--", ".", ":!tests/records"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


def _skipped_in(name: str) -> set[str]:
    """The tests that the last run in a surrounding skipped."""
    lines = [line["skipped"] for line in kept_records(RECORD) if line["surrounding"] == name]
    return set(lines[-1]) if lines else set()


def _install(package: str) -> None:
    """Install a package of the system. Raises CalledProcessError."""
    _run("apt-get", "install", "--yes", "--no-install-recommends", package)


def _environment() -> dict[str, str]:
    """The environment without the options and assignments that a calling `make` passes on to every other `make`."""
    return {name: value for name, value in os.environ.items() if name not in OF_MAKE}


def _run(*command: str, cwd: Path = ROOT) -> None:
    """Run a command of the preparation. Raises CalledProcessError with its output."""
    subprocess.run(command, cwd=cwd, env=_environment(), check=True, capture_output=True, text=True)


if __name__ == "__main__":
    sys.exit(main())
