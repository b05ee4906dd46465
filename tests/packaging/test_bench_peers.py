"""`make bench-peers`: every library is pinned, checked, skipped with a reason, and asked the same as Sparing."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from loadtests.bench_peers import DEPLOYED, ENGINE, FLOOR, LIBRARIES, SLOTS_OFF, Report, shown, table, verdicts
from loadtests.peers import install
from loadtests.peers.child import Absent, command_of, started
from loadtests.peers.own import engine
from loadtests.peers.tasks import SIGMA, TASKS, check, made_up
from tests.architecture.source import ROOT
from tests.packaging.locks import pins

FAKE = """
from loadtests.peers.tasks import TASKS, serve

def work():
    print("a library that talks")
    return [7, 8.5]

serve({"version": "Fake 1", "noise": "none"}, {"count": work}, lambda: {"a fact": 3})
"""


def version(package: str, name: str) -> str:
    """The version at which one lock has a package."""
    (found,) = {pin.version for pin in pins(f"loadtests/peers/{name}.lock") if pin.name == package}
    return found


def test_the_document_is_about_the_locked_versions() -> None:
    """A lock that moves on makes the figures of docs/peers.md old, and this test says so."""
    page = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    smartnoise = f"{version('smartnoise-sql', 'smartnoise')} with OpenDP {version('opendp', 'smartnoise')}"

    assert f"| OpenDP {version('opendp', 'opendp')} |" in page
    assert f"| SmartNoise-SQL {smartnoise} |" in page
    assert f"| diffprivlib {version('diffprivlib', 'diffprivlib')} |" in page


@pytest.mark.parametrize("name", TASKS)
def test_noisy_answers_pass(name: str) -> None:
    """Gaussian noise, Laplace noise, and Laplace noise that is truncated at zero."""
    task, generator = TASKS[name], np.random.default_rng(5)
    truth = np.full(task.size, task.people / task.size)

    for _ in range(50):
        check(task, (truth + generator.normal(0, SIGMA, task.size)).tolist())
        check(task, (truth + generator.laplace(0, SIGMA, task.size)).tolist())
        check(task, np.maximum(0, truth + generator.laplace(0, SIGMA, task.size)).tolist())


@pytest.mark.parametrize("name", TASKS)
def test_wrong_answers_do_not(name: str) -> None:
    """Answers of the wrong length, about no people, about the other number of people, or, in groups, without noise."""
    task, generator = TASKS[name], np.random.default_rng(6)
    noise = generator.normal(0, SIGMA, task.size)
    truth = task.people / task.size
    wrong = [np.append(truth + noise, truth), noise, 2 * truth + noise]
    if task.size > 1:
        wrong.append(np.full(task.size, truth))

    for values in wrong:
        with pytest.raises(ValueError, match=re.escape(task.title)):
            check(task, values.tolist())


def test_the_engine_answers_every_task() -> None:
    """The part of the benchmark that runs in its own process does what the libraries do."""
    ask = engine(made_up())

    for name, task in TASKS.items():
        answered = ask(name)
        check(task, answered.values)
        assert answered.ms > 0


def test_a_library_answers_over_a_pipe() -> None:
    """It says what it is, times itself, gives numbers and facts, and may print what it likes."""
    with started([sys.executable, "-c", FAKE]) as child:
        assert child.about == {"version": "Fake 1", "noise": "none"}
        answered = child.ask("count")
        assert answered.values == [7.0, 8.5]
        assert 0 < answered.ms < 60_000
        assert child.tell("facts") == {"a fact": 3}
    assert child.process.wait() != 0


def test_a_library_that_does_not_start_is_absent() -> None:
    """The reason is the last line of its errors."""
    with pytest.raises(Absent, match=r"^ModuleNotFoundError: No module named 'no_such_library'$"):  # noqa: SIM117
        with started([sys.executable, "-c", "import no_such_library"]):
            pass


def test_only_a_complete_environment_is_started(tmp_path: Path) -> None:
    """Without one, the reason is that of the failed installation, or the command that installs."""
    with pytest.raises(Absent, match="not installed; `make bench-peers` does it"):
        command_of("ask_opendp", tmp_path)
    (tmp_path / "failed.txt").write_text("cannot be installed: no route\n")
    with pytest.raises(Absent, match=r"^cannot be installed: no route$"):
        command_of("ask_opendp", tmp_path)
    (tmp_path / ".ok").touch()
    python = str(tmp_path / ".venv/bin/python")
    assert command_of("ask_opendp", tmp_path, "a.npz") == [python, "-m", "loadtests.peers.ask_opendp", "a.npz"]


class Machine:
    """Runs nothing, notes every command, and fails those with the word `failing`."""

    def __init__(self, failing: str = "") -> None:
        self.failing, self.commands = failing, list[list[str]]()

    def __call__(self, command: Sequence[str]) -> str:
        self.commands.append(list(command))
        return "no route" if self.failing and self.failing in command else ""


@pytest.mark.parametrize("library", install.LIBRARIES, ids=lambda library: library.name)
def test_a_library_is_installed_once_for_each_lock(library: install.Library, tmp_path: Path) -> None:
    """In an environment of its own, and again only when its lock has changed."""
    machine = Machine()

    assert install.install(library, homes=tmp_path, runner=machine) == ""
    once = len(machine.commands)
    assert machine.commands[0] == [sys.executable, "-m", "venv", str(tmp_path / library.name / ".venv")]
    assert {command[0] for command in machine.commands[1:]} == {str(tmp_path / library.name / ".venv/bin/python")}
    assert install.install(library, homes=tmp_path, runner=machine) == ""
    assert len(machine.commands) == once
    (tmp_path / library.name / ".ok").write_text("the digest of another lock")
    assert install.install(library, homes=tmp_path, runner=machine) == ""
    assert len(machine.commands) == 2 * once


def test_only_the_named_package_is_built_from_source(tmp_path: Path) -> None:
    """Everything is demanded by hash, and everything else as a wheel; what builds it is locked too."""
    machine = Machine()
    smartnoise = next(library for library in install.LIBRARIES if library.sources)
    install.install(smartnoise, homes=tmp_path, runner=machine)
    _, builder, last = machine.commands

    assert builder[1:] == [".ci/install_lock.py", "loadtests/peers/build.lock"]
    assert last[last.index("--only-binary") + 1] == ":all:"
    assert last[last.index("--no-binary") + 1] == "antlr4-python3-runtime"
    assert {"--require-hashes", "--no-build-isolation"} <= set(last)


def test_a_failed_installation_leaves_its_reason(tmp_path: Path) -> None:
    """The reason is kept for the table, and the next run tries again."""
    library, machine = install.LIBRARIES[0], Machine(failing=".ci/install_lock.py")

    assert install.install(library, homes=tmp_path, runner=machine) == "cannot be installed: no route"
    with pytest.raises(Absent, match="cannot be installed: no route"):
        command_of("ask_opendp", tmp_path / library.name)
    assert install.install(library, homes=tmp_path, runner=Machine()) == ""
    assert not (tmp_path / library.name / "failed.txt").exists()


def a_report() -> Report:
    """Sparing takes 2 ms for everything, OpenDP 1 and 2 and 90, and SmartNoise-SQL is not there."""
    own = {name: dict.fromkeys(TASKS, 2.0) for name in (ENGINE, SLOTS_OFF, DEPLOYED, FLOOR)}
    opendp = {"count": 1.0, "histogram": 2.0, "vector": 90.0, "half": 1.0}
    return Report(
        ms={**own, "OpenDP": opendp},
        about={"OpenDP": {"version": "OpenDP 9.9", "noise": "discrete"}},
        facts={},
        skipped={"SmartNoise-SQL": "no route"},
    )


def test_the_table_has_a_row_for_everybody_and_hides_no_absence() -> None:
    """A library that was not measured has a row that says so, and why."""
    lines = list(table(a_report()))

    assert {line.count("|") for line in lines} == {len(TASKS) + 3}
    assert "| OpenDP 9.9 | 1.0 | 2.0 | 90 | 1.0 | discrete |" in lines
    assert lines[-1] == "| SmartNoise-SQL | SKIPPED | SKIPPED | SKIPPED | SKIPPED | no route |"


def test_being_slower_is_said() -> None:
    """Each way to run Sparing is compared with each secure library that was measured."""
    assert list(verdicts(a_report())) == [
        f"{own} against OpenDP: count 2.0 times SLOWER, histogram 1.0 times faster, vector 45.0 times faster"
        for own in (ENGINE, SLOTS_OFF, DEPLOYED)
    ]


@pytest.mark.parametrize(("ms", "text"), [(0.123, "0.12"), (1.26, "1.3"), (12.6, "13"), (1637.2, "1,637")])
def test_milliseconds_have_two_digits_or_none_after_the_point(ms: float, text: str) -> None:
    """No figure pretends to more than a shared machine can measure."""
    assert shown(ms) == text


def test_every_library_has_a_module_and_an_environment() -> None:
    """The table of the benchmark and that of the installation name the same things."""
    assert {home for home, _, _ in LIBRARIES.values()} == {library.name for library in install.LIBRARIES}
    assert [name for _, name, _ in LIBRARIES.values() if not (ROOT / f"loadtests/peers/{name}.py").exists()] == []
