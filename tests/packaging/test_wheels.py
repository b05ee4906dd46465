"""Each wheel works alone: the service serves, the client's first examples run against it, and a device reports."""

import ast
import gzip
import json
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.architecture.source import ROOT
from tests.e2e import processes
from tests.e2e.homes import made_known
from tests.e2e.http_calls import get
from tests.packaging.fresh import add_wheel, built, fresh_environment
from tests.rotation import times

README = (ROOT / "clients" / "python" / "README.md").read_text(encoding="utf-8")
PEOPLE = 300
WORDS_OF_THE_FIRST_KEY = ("--role", "curator", "--name", "curator")


@dataclass(frozen=True, kw_only=True)
class Installed:
    """The service of a fresh environment, up, and its command line."""

    url: str
    home: Path
    sparing: Path

    def run(self, *arguments: str) -> str:
        """The output of a command."""
        command = [str(self.sparing), *arguments, "--home", str(self.home)]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=_environment()).stdout.strip()


def _environment(**settings: str) -> dict[str, str]:
    """No variable of the tests' own environment leads back into the clone."""
    return {name: value for name, value in processes.environment().items() if name != "PYTHONPATH"} | settings


@pytest.fixture(scope="module")
def folder(server_directory: Path) -> Path:
    """A place that the account of the servers can pass through."""
    made = server_directory / "wheels"
    made.mkdir()
    return made


@pytest.fixture(scope="module")
def service_wheel(folder: Path) -> Path:
    """The service's wheel."""
    return built("wheel", ROOT, folder / "service")


@pytest.fixture(scope="module")
def client_wheel(folder: Path) -> Path:
    """The client's wheel, built from the clone."""
    return built("wheel", ROOT / "clients" / "python", folder / "client")


@pytest.fixture(scope="module")
def client_site(folder: Path) -> Path:
    """A folder with the contents of the client's wheel, built from its source distribution."""
    made = folder / "source"
    source = built("sdist", ROOT / "clients" / "python", made)
    with tarfile.open(source) as archive:
        archive.extractall(made, filter="data")
    wheel = built("wheel", made / source.name.removesuffix(".tar.gz"), made)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(made / "site")  # noqa: S202 - our own
    return made / "site"


@pytest.fixture(scope="module")
def local_wheel(folder: Path) -> Path:
    """The wheel of a device."""
    return built("wheel", ROOT / "clients" / "local", folder / "local")


@pytest.fixture(scope="module")
def installed(folder: Path, service_wheel: Path) -> Iterator[Installed]:
    """The service's wheel in an environment of its own, served."""
    programs = fresh_environment(folder / "environment", service_wheel)
    home = made_known(folder / "home")
    command = [str(programs / "sparing"), "serve", "--home", str(home), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment(), cwd=folder) as process:
        word, _, url = (process.stdout.readline() if process.stdout else "").strip().partition(" ")
        assert word == "ready"
        shown = [process.stdout.readline() for _ in range(3)] if process.stdout else []
        assert shown[1].split() == ["sparing", "keys", "create", *WORDS_OF_THE_FIRST_KEY, "--home", str(home)]
        yield Installed(url=url, home=home, sparing=programs / "sparing")
        process.terminate()


@pytest.fixture(scope="module")
def client_python(folder: Path, client_wheel: Path) -> Path:
    """The Python of an environment that holds the client's wheel and what it asks for."""
    return fresh_environment(folder / "of-client", client_wheel) / "python"


def test_each_wheel_holds_its_own_package_and_nothing_else(
    service_wheel: Path, client_wheel: Path, local_wheel: Path
) -> None:
    """No test or sister package hides in what is built; the service's brings `sparing demo`; all have one version."""
    assert len({wheel.name.split("-")[1] for wheel in (service_wheel, client_wheel, local_wheel)}) == 1
    held = {
        service_wheel: {"service", "sparing_demo", "sparing_ray"},
        client_wheel: {"sparing"},
        local_wheel: {"sparing_local"},
    }
    for wheel, packages in held.items():
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
        assert [name for name in names if "node_modules" in name or name.endswith("package.json")] == []
        assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == packages
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_client_of_a_wheel_asks_the_service_of_a_wheel(
    installed: Installed, client_python: Path, tmp_path: Path
) -> None:
    """The examples of the README: a curator registers, uploads and makes a key, and an analyst asks with it."""
    quickstart, curator = (_first_example(section) for section in ("## Quickstart", "## For curators"))
    rows = [f"{number},{20 + number % 60},{'NO' if number % 2 else 'SE'},1.5,2024-05-17" for number in range(PEOPLE)]
    table = "\n".join(["person_id,age,country,spend,joined", *rows])
    (tmp_path / "people.csv.gz").write_bytes(gzip.compress(table.encode()))
    key = installed.run("keys", "create", *WORDS_OF_THE_FIRST_KEY)
    printed = _run(client_python, f"curator_key = {key!r}\nfrom sparing import Client\n{curator}", installed, tmp_path)
    analyst_key, *_ = printed.splitlines()
    printed = _run(client_python, quickstart, installed, tmp_path, SPARING_API_KEY=analyst_key)

    assert re.search(r"count.*: -?\d+ ± \d+", printed)


def _first_example(section: str) -> str:
    found = re.search(r"^```python\n(.*?)^```", README.partition(f"\n{section}\n")[2], re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def _run(python: Path, text: str, installed: Installed, folder: Path, **settings: str) -> str:
    (folder / "example.py").write_text(text, encoding="utf-8")
    env = _environment(SPARING_URL=installed.url, **settings)
    done = subprocess.run([python, "example.py"], check=False, capture_output=True, text=True, env=env, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "path", ["/sign-in", "/docs", "/assets/curator.js", "/assets/openapi.json", "/guide/", "/guide/reference/python/"]
)
def test_the_service_of_a_wheel_has_its_pages(installed: Installed, path: str) -> None:
    """Files that lie elsewhere in a clone."""
    assert get(f"{installed.url}{path}").status_code == 200


def test_nothing_comes_from_the_clone(installed: Installed, client_python: Path, tmp_path: Path) -> None:
    """The environments hold the wheels' packages, and of other packages only what was asked for."""
    script = "import importlib.util as u; print([bool(u.find_spec(n)) for n in {names}], u.find_spec({name!r}).origin)"
    for python, name, others in [
        (
            installed.sparing.with_name("python"),
            "service",
            ["sparing", "sparing_audit", "sparing_local", "sparing_papers", "matplotlib", "pytest"],
        ),
        (client_python, "sparing", ["service", "numpy", "pydantic", "pytest"]),
    ]:
        printed = _run(python, script.format(names=others, name=name), installed, tmp_path)
        assert printed.startswith(str([False] * len(others)))
        assert str(ROOT) not in printed


def test_the_demo_of_the_wheels_answers_all_queries(
    folder: Path, service_wheel: Path, client_wheel: Path, tmp_path: Path
) -> None:
    """294 answers within one guarantee, whose ledger verifies; in the gate no answer waits for a slot."""
    programs = fresh_environment(folder / "of-demo", service_wheel, extras=frozenset({"demo"}))
    add_wheel(programs, client_wheel)
    home, sparing = made_known(folder / "home-of-demo"), programs / "sparing"
    for _ in range(times(1, 2)):
        shown = _said(sparing, "demo", home=home, SPARING_RELEASE_SLOT_MS=str(times(0, 2)))
    files = {path.suffix: path for path in (home / "demo").iterdir()}

    assert ("294" in shown, "worst-case accounting" in shown, str(home) in shown.replace("\n", "")) == (True,) * 3
    assert files[".png"].read_bytes().startswith(b"\x89PNG")
    assert json.loads(files[".json"].read_text())
    assert len(files[".csv"].read_text().splitlines()) == 294 + 1
    verified = _said(sparing, "ledger", "verify", home=home)
    assert re.match(r"web-visits: 294 entries, \d+ answers, .* verified, 0 findings\n$", verified)


def _said(program: Path, *arguments: str, home: Path, **settings: str) -> str:
    """The output of a command that succeeded and had nothing to complain about."""
    command = [str(program), *arguments, "--home", str(home)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=_environment(**settings), cwd=home)
    assert (done.returncode, processes.unexpected(done.stderr)) == (0, []), done.stderr
    return done.stdout


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


LOCAL = """
import importlib, pkgutil, sys
sys.path += sys.argv[1:]
from pathlib import Path
import sparing_local
for module in pkgutil.walk_packages(sparing_local.__path__, "sparing_local."):
    importlib.import_module(module.name)
from sparing_local.aggregate import aggregate
from sparing_local.device import LocalFilter
devices = [LocalFilter(Path(f"{number}.json"), budget="1", clip=1.0, sigma=2.0) for number in range(3)]
found = aggregate(device.report([1.0]) for device in devices)
assert not {"mpmath", "pydantic", "scipy", "service", "sparing"} & sys.modules.keys(), sys.modules
print(found.reports, found.standard_error == 2 * 3 ** 0.5)
"""


def _run_bare(script: str, site: Path, folder: Path) -> tuple[str, str]:
    """Stderr and stdout of a script that sees one wheel's contents and the packages of this environment."""
    command = [sys.executable, "-I", "-S", "-W", "error", "-c", script, str(site), sysconfig.get_path("purelib")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)
    return done.stderr, done.stdout


def _extra(site: Path, name: str) -> dict[str, SpecifierSet]:
    """The packages that an extra of a wheel asks for, with their versions."""
    (found,) = Distribution.discover(path=[str(site)])
    asked = map(Requirement, found.requires or [])
    return {each.name: each.specifier for each in asked if each.marker and each.marker.evaluate({"extra": name})}


def test_the_fake_of_a_wheel_answers_without_the_server(client_site: Path, tmp_path: Path) -> None:
    """Its copy of the rooms is whole, and brings neither `service` nor pyarrow; `import sparing` loads none of it."""
    assert _run_bare(FAKE, client_site, tmp_path) == ("", "0 1 2 3 4 5 6 7 8 0\n")


def test_the_research_of_a_wheel_needs_numpy_and_mpmath_alone(client_site: Path, tmp_path: Path) -> None:
    """Beside what the client itself needs; its accountants are the wheel's own copy."""
    assert _run_bare(RESEARCH, client_site, tmp_path) == ("", "4 4 4 (4,)\n")
    assert _extra(client_site, "research").keys() == {"mpmath", "numpy"}


def test_a_device_needs_numpy_alone(local_wheel: Path, tmp_path: Path) -> None:
    """Its copy of the core is whole, and it installs no server."""
    with zipfile.ZipFile(local_wheel) as archive:
        archive.extractall(tmp_path / "site")  # noqa: S202 - our own
    (found,) = Distribution.discover(path=[str(tmp_path / "site")])

    assert _run_bare(LOCAL, tmp_path / "site", tmp_path) == ("", "3 True\n")
    assert [Requirement(each).name for each in found.requires or []] == ["numpy"]


def test_the_extra_brings_what_the_rooms_import(client_site: Path) -> None:
    """Every package that the copied modules name, in versions to which the service's own belong."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (client_site / "sparing/_rooms").rglob("*.py")]
    named = {name.partition(".")[0] for tree in trees for node in ast.walk(tree) for name in _imported(node)}
    extra = _extra(client_site, "testing")

    assert named - sys.stdlib_module_names - {"sparing", "pydantic_core"} == extra.keys()
    assert [name for name, versions in extra.items() if distribution(name).version not in versions] == []


def _imported(node: ast.AST) -> list[str]:
    """The modules that a node of a syntax tree imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []
