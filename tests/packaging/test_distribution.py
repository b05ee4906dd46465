"""The server is an application named `sparing` whose package is `service`, and no other distribution's."""

import importlib
import os
import re
import stat
import subprocess
import tomllib
from importlib.metadata import distribution, entry_points
from pathlib import Path

import install_lock
import pytest

import service
from tests.architecture.source import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_package_is_ours() -> None:
    """`import service` is this repository's folder, not a package of the same name that an index also has."""
    assert [Path(path).resolve() for path in service.__path__] == [ROOT / "service"]


def test_the_distribution_cannot_be_uploaded() -> None:
    """An index refuses the classifier, and the wheel names what it holds instead of finding several."""
    assert "Private :: Do Not Upload" in PROJECT["project"]["classifiers"]
    assert PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"] == [
        "service",
        "clients/dashboard",
        "clients/demo/src/sparing_demo",
        "clients/ray/src",
        "migrations",
    ]


@pytest.mark.parametrize(
    ("name", "value"), [("sparing", "service.cli.app:main"), ("sparing-client", "sparing.__main__:run")]
)
def test_each_command_is_found_by_its_name(name: str, value: str) -> None:
    """Each distribution has a command of its own, which starts a callable."""
    (script,) = entry_points(group="console_scripts", name=name)

    assert script.value == value
    assert callable(script.load())


@pytest.mark.parametrize(
    ("name", "package"), [("sparing", "service"), ("sparing-client", "clients/python/src/sparing")]
)
def test_each_distribution_has_its_licence_and_types(name: str, package: str) -> None:
    """The text of the licence is the repository's."""
    assert distribution(name).metadata["License-Expression"] == "Apache-2.0"
    assert (ROOT / package / "py.typed").exists()
    assert {path.read_text() for path in ROOT.glob("clients/*/LICENSE")} == {(ROOT / "LICENSE").read_text()}


def test_server_and_client_share_no_module() -> None:
    """The server's wheel holds `service`, the client's holds `sparing`, and the client never needs the server."""
    client = distribution("sparing-client")
    needs = [re.split(r"[\s;<>=!~\[]", requirement)[0] for requirement in client.requires or []]

    assert importlib.import_module("sparing").__name__ == "sparing"
    assert "sparing" not in needs


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
