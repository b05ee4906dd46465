"""The server is an application named `sparing` whose package is `service`, and no other distribution's."""

import ast
import importlib
import os
import re
import stat
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from importlib.metadata import Distribution, distribution, entry_points
from pathlib import Path

import install_lock
import pytest
from packaging.requirements import Requirement

import service
from tests.architecture.source import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_package_is_ours() -> None:
    """`import service` is this repository's folder, not a package of the same name that an index also has."""
    assert [Path(path).resolve() for path in service.__path__] == [ROOT / "service"]


def test_the_distribution_cannot_be_uploaded() -> None:
    """An index refuses the classifier, and the wheel names what it holds instead of finding several."""
    assert PROJECT["project"]["classifiers"] == ["Private :: Do Not Upload"]
    assert PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"] == [
        "service",
        "clients/dashboard",
        "migrations",
    ]
    assert distribution("sparing").metadata["License-Expression"] == "Apache-2.0"


def test_the_command_line_is_found_by_its_name() -> None:
    """`sparing` starts a callable of the service."""
    (script,) = entry_points(group="console_scripts", name="sparing")

    assert script.value == "service.cli.app:main"
    assert callable(script.load())


def test_server_and_client_share_no_module() -> None:
    """The server's wheel holds `service`, the client's holds `sparing`, and the client never needs the server."""
    client = distribution("sparing-client")
    needs = [re.split(r"[\s;<>=!~\[]", requirement)[0] for requirement in client.requires or []]

    assert importlib.import_module("sparing").__name__ == "sparing"
    assert "sparing" not in needs


@pytest.mark.parametrize(("project", "package"), [(".", "service"), ("clients/python", "sparing")])
def test_each_wheel_holds_its_own_package_and_nothing_else(project: str, package: str, tmp_path: Path) -> None:
    """No test, migration or sister package hides in what is built."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT / project)
    (wheel,) = tmp_path.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}

    assert [name for name in names if "node_modules" in name or name.endswith("package.json")] == []
    assert {top for top in tops if not top.endswith(".dist-info")} == {package}


@pytest.fixture(scope="module")
def client_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the contents of the client's wheel, built from its source distribution."""
    made = tmp_path_factory.mktemp("client")
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(made), "--target"]
    subprocess.run([*build, "sdist"], check=True, capture_output=True, cwd=ROOT / "clients" / "python")
    (source,) = made.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(made, filter="data")
    subprocess.run([*build, "wheel"], check=True, capture_output=True, cwd=made / source.name.removesuffix(".tar.gz"))
    (wheel,) = made.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(made / "site")  # noqa: S202 - our own
    return made / "site"


FAKE = """
import importlib, pkgutil, sys
sys.path += sys.argv[1:]
import sparing
assert not {"mpmath", "numpy", "orjson", "pydantic", "rfc8785", "sparing.testing"} & sys.modules.keys(), sys.modules
import sparing._rooms
for module in pkgutil.walk_packages(sparing._rooms.__path__, "sparing._rooms."):
    importlib.import_module(module.name)
from sparing.testing import FakeService
age = {"type": "integer", "lower": 0, "upper": 9}
tables = {"people": {"kind": "individuals", "key": "id", "columns": {"age": age}}}
with FakeService() as fake:
    fake.add_dataset("shop", tables, rows={"people": [{"id": number, "age": number} for number in range(9)]})
    answer = fake.client().queries.ask(dataset="shop", select=sparing.sum_("age"), group_by="age", sigma=200)
assert "service" not in sys.modules and "pyarrow" not in sys.modules
print(*map(int, answer.values))
"""


@pytest.mark.slow
def test_the_fake_of_a_wheel_answers_without_the_server(client_wheel: Path, tmp_path: Path) -> None:
    """Its copy of the rooms is whole, and brings neither `service` nor pyarrow; `import sparing` loads none of it."""
    command = [sys.executable, "-I", "-S", "-W", "error", "-c", FAKE, str(client_wheel), sysconfig.get_path("purelib")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)

    assert (done.stderr, done.stdout) == ("", "0 1 2 3 4 5 6 7 8 0\n")


RESEARCH = """
import sys
sys.path += sys.argv[1:]
import numpy
from sparing.research import PoissonDescent, RenyiFilter, descend
settings = PoissonDescent(
    loss="squared", l2_clip=1, noise_multiplier=20, sampling_rate=0.1, learning_rate=1, steps=3
)
run = descend(numpy.eye(4), numpy.ones(4), settings, seed=1, limit=RenyiFilter(order=12, epsilon=1, delta="1e-5"))
assert not {"orjson", "pydantic", "rfc8785", "scipy", "service"} & sys.modules.keys(), sys.modules
print(*run.active, run.loss_epsilons(delta=1e-5).shape)
"""


@pytest.mark.slow
def test_the_research_of_a_wheel_needs_numpy_and_mpmath_alone(client_wheel: Path, tmp_path: Path) -> None:
    """Beside what the client itself needs; its accountants are the wheel's own copy."""
    command = [
        sys.executable,
        "-I",
        "-S",
        "-W",
        "error",
        "-c",
        RESEARCH,
        str(client_wheel),
        sysconfig.get_path("purelib"),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    research = {
        each.name
        for each in map(Requirement, distribution_at(client_wheel).requires or [])
        if each.marker is not None and each.marker.evaluate({"extra": "research"})
    }

    assert (done.stderr, done.stdout) == ("", "4 4 4 (4,)\n")
    assert research == {"mpmath", "numpy"}


def test_the_extra_brings_what_the_rooms_import(client_wheel: Path) -> None:
    """Every package that the copied modules name, in versions to which the service's own belong."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (client_wheel / "sparing/_rooms").rglob("*.py")]
    named = {name.partition(".")[0] for tree in trees for node in ast.walk(tree) for name in imported(node)}
    extra = {
        each.name: each.specifier
        for each in map(Requirement, distribution_at(client_wheel).requires or [])
        if each.marker is not None and each.marker.evaluate({"extra": "testing"})
    }

    assert named - sys.stdlib_module_names - {"sparing", "pydantic_core"} == extra.keys()
    assert [name for name, versions in extra.items() if distribution(name).version not in versions] == []


def imported(node: ast.AST) -> list[str]:
    """The modules that a node of a syntax tree imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


def distribution_at(folder: Path) -> Distribution:
    """The one distribution that is installed in a folder."""
    (found,) = Distribution.discover(path=[str(folder)])
    return found


def test_ci_runs_what_people_run() -> None:
    """.ci/run stops at the first error: a browser where one can be had, `make check`, `make docs`, and `make test`."""
    script = ROOT / ".ci" / "run"
    lines = [line for line in script.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]

    assert script.stat().st_mode & stat.S_IXUSR
    assert lines[0] == "set -euo pipefail"
    assert [line for line in lines[1:] if not line.startswith("cd ")] == [
        ".ci/install_browser",
        "make check",
        "make docs",
        "make test",
    ]


def test_make_says_what_it_can_do() -> None:
    """Plain `make` lists every target with a sentence, and does nothing else."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    printed = subprocess.run(
        ["make", "-C", str(ROOT), "--no-print-directory"], check=True, capture_output=True, text=True, env=environment
    )
    targets = re.findall(r"^  make ([\w-]+) +\w", printed.stdout, re.MULTILINE)
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)

    assert {"demo", "run", "docs", "test", "check", "unit", "bench", "clean", "help"} <= set(targets)
    assert phony is not None
    assert sorted(phony[1].split()) == sorted(targets)


def test_make_installs_only_what_is_locked() -> None:
    """Every installation demands hashes and wheels, or brings nothing in."""
    editable = re.findall(r"\$\(PIP\) install .*|pip install .*", (ROOT / "Makefile").read_text(encoding="utf-8"))

    assert editable
    assert [line for line in editable if "--no-deps --no-build-isolation" not in line] == []
    assert {"--require-hashes", "--only-binary"} <= set(install_lock.PIP_INSTALL)
    assert {"--require-hashes", "--no-build"} <= set(install_lock.UV_INSTALL)
