"""Put every seeded bug in a copy of the tree, one at a time, and see its test fail: `make mutants`."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests import profiles
from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import ROOT, Mutant
from tests.rotation import TURN_VARIABLE, WHOLE_VARIABLE

SOURCES = ("", "clients/python/src", "clients/demo/src", "clients/audit/src", "clients/papers/src")
COPIED = ("service", "migrations", "clients", "tests", "conftest.py", "pyproject.toml", "README.md")
SECONDS_MAX = 300
UNMUTATED_SECONDS_MAX = 3600
SAME_EVERY_TIME = {"PYTHONDONTWRITEBYTECODE": "1", TURN_VARIABLE: "0", WHOLE_VARIABLE: "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The fate of one mutant; `said` tells why it was not killed."""

    mutant: Mutant
    is_killed: bool
    seconds: float
    said: str


def main() -> int:
    """Run the unmutated tests, then every mutant; print the table. 1 unless all were killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="names that contain this text")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    mutants = [mutant for mutant in MUTANTS if options.only in mutant.name]
    if not mutants:
        parser.error(f"no mutant has {options.only!r} in its name")
    passed, failed, output = _tests(None, sorted({mutant.killed_by for mutant in mutants}))
    if failed or not passed:
        _say(f"the tests do not pass without any mutant:\n{output}")
        return 1
    _say("| mutant | file | killed by | seconds |\n|---|---|---|---|")
    with ThreadPoolExecutor(options.jobs) as pool:
        verdicts = [_shown(verdict) for verdict in pool.map(_judge, mutants)]
    _say(f"\n{sum(verdict.is_killed for verdict in verdicts)}/{len(verdicts)} mutants killed")
    for verdict in verdicts:
        if not verdict.is_killed:
            _say(f"\n{verdict.mutant.name} SURVIVED\n{verdict.said}")
    return 0 if all(verdict.is_killed for verdict in verdicts) else 1


def _shown(verdict: Verdict) -> Verdict:
    """The table grows as the verdicts come."""
    mutant = verdict.mutant
    killer = mutant.killed_by.removeprefix("tests/") if verdict.is_killed else "**nothing**"
    _say(f"| {mutant.name} | {mutant.file} | {killer} | {verdict.seconds:.1f} |")
    return verdict


def _judge(mutant: Mutant) -> Verdict:
    started = time.monotonic()
    passed, failed, output = _tests(mutant, [mutant.killed_by])
    return Verdict(
        mutant=mutant, is_killed=failed > 0, seconds=time.monotonic() - started, said=f"{passed} passed\n{output}"
    )


def _tests(mutant: Mutant | None, nodes: list[str]) -> tuple[int, int, str]:
    """(passed, failed, output) of these tests in a copy of the tree. Errors outside of a test's body are no failure."""
    seconds_max = UNMUTATED_SECONDS_MAX if mutant is None else SECONDS_MAX
    with tempfile.TemporaryDirectory(prefix="sparing-mutant-") as directory:
        copy = Path(directory)
        for name in COPIED:
            _copy(ROOT / name, copy / name)
        if mutant is not None:
            (copy / mutant.file).write_text(mutant.applied(copy))
        report = copy / "report.xml"
        options = [
            "-q",
            "-x",
            "--assert=plain",
            "-p",
            "no:cacheprovider",
            "-p",
            profiles.__name__,
            f"--hypothesis-profile={profiles.SEEDED}",
            f"--junitxml={report}",
        ]
        command = [sys.executable, "-m", "pytest", *options, *nodes]
        # Before the editable installs, whose packages have no bug in them.
        path = os.pathsep.join(str(copy / source) for source in SOURCES)
        environment = os.environ | SAME_EVERY_TIME | {"PYTHONPATH": path}
        try:
            run = subprocess.run(
                command, cwd=copy, env=environment, capture_output=True, text=True, timeout=seconds_max, check=False
            )
        except subprocess.TimeoutExpired:
            return 0, 0, f"no end after {seconds_max} s"
        return _counts(report, run.stdout[-4000:] + run.stderr[-2000:])


def _counts(report: Path, output: str) -> tuple[int, int, str]:
    if not report.exists():
        return 0, 0, output
    suite = next(ET.parse(report).iter("testsuite"))  # noqa: S314 - pytest has just written it
    tests, failures, errors, skipped = (int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped"))
    return tests - failures - errors - skipped, 0 if errors else failures, output


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "node_modules", ".*"))
    else:
        shutil.copy(source, target)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
