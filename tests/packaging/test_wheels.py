"""Both wheels work in fresh environments: the service serves, and the client's first examples run against it."""

import gzip
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.architecture.source import ROOT
from tests.e2e import processes
from tests.packaging.fresh import built_wheel, fresh_environment

pytestmark = pytest.mark.slow
README = (ROOT / "clients" / "python" / "README.md").read_text(encoding="utf-8")
PEOPLE = 300


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
def installed(server_directory: Path) -> Iterator[Installed]:
    """The service's wheel in an environment of its own, served."""
    folder = server_directory / "wheel"  # which the account of the servers can pass through
    folder.mkdir()
    programs = fresh_environment(folder / "environment", built_wheel(".", folder))
    command = [str(programs / "sparing"), "serve", "--home", str(folder / "home"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment(), cwd=folder) as process:
        word, _, url = (process.stdout.readline() if process.stdout else "").strip().partition(" ")
        assert word == "ready"
        yield Installed(url=url, home=folder / "home", sparing=programs / "sparing")
        process.terminate()


@pytest.fixture(scope="module")
def client_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that holds the client's wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("client")
    return fresh_environment(folder / "environment", built_wheel("clients/python", folder)) / "python"


def test_the_client_of_a_wheel_asks_the_service_of_a_wheel(
    installed: Installed, client_python: Path, tmp_path: Path
) -> None:
    """The examples of the README: a curator registers, uploads and makes a key, and an analyst asks with it."""
    quickstart, curator = (_first_example(section) for section in ("## Quickstart", "## For curators"))
    rows = [f"{number},{20 + number % 60},{'NO' if number % 2 else 'SE'},1.5,2024-05-17" for number in range(PEOPLE)]
    table = "\n".join(["person_id,age,country,spend,joined", *rows])
    (tmp_path / "people.csv.gz").write_bytes(gzip.compress(table.encode()))
    key = installed.run("keys", "create", "--role", "curator", "--name", "Cy")
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
    assert httpx.get(f"{installed.url}{path}").status_code == 200


def test_nothing_comes_from_the_clone(installed: Installed, client_python: Path, tmp_path: Path) -> None:
    """The environments hold the wheels' packages, and of other packages only what was asked for."""
    script = "import importlib.util as u; print([bool(u.find_spec(n)) for n in {names}], u.find_spec({name!r}).origin)"
    for python, name, others in [
        (
            installed.sparing.with_name("python"),
            "service",
            ["sparing", "sparing_audit", "sparing_demo", "sparing_papers", "matplotlib", "pytest"],
        ),
        (client_python, "sparing", ["service", "numpy", "pydantic", "pytest"]),
    ]:
        printed = _run(python, script.format(names=others, name=name), installed, tmp_path)
        assert printed.startswith(str([False] * len(others)))
        assert str(ROOT) not in printed
