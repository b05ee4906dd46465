"""The locks name every package once per platform, by version and hash, and no place to get it from."""

import re
import tomllib
from dataclasses import dataclass

import pytest

from tests.architecture.source import ROOT

LOCKS = ["requirements.lock", "requirements-dev.lock"]
PINNED = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9._-]*)(?:\[[a-z0-9,-]+\])?==(?P<version>[\w.+!]+)(?: ; (?P<marker>[^\\]+))?"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pin:
    """One locked package: its name, its version, the environments it is for ("" for all) and its hashes."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]


def read_lock(text: str) -> list[Pin]:
    """Every pin of a lock; ValueError for a line that is none, so that nothing in a lock goes unread."""
    whole = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#")).replace("\\\n", " ")
    pins = []
    for line in filter(None, map(str.strip, whole.splitlines())):
        requirement, *hashes = re.split(r"\s+--hash=", line)
        found = PINNED.fullmatch(requirement.strip())
        if found is None:
            message = f"not a pin: {line[:80]}"
            raise ValueError(message)
        pins.append(
            Pin(
                name=found["name"],
                version=found["version"],
                marker=(found["marker"] or "").strip(),
                hashes=tuple(hashes),
            )
        )
    return pins


def pins(lock: str) -> list[Pin]:
    """The pins of one of our locks."""
    return read_lock((ROOT / lock).read_text(encoding="utf-8"))


def names(requirements: list[str]) -> dict[str, str]:
    """Requirements written `name[extra]==version`, as name to version, in the lock's spelling of names."""
    matches = [PINNED.fullmatch(requirement.lower().replace("_", "-")) for requirement in requirements]
    return {match["name"]: match["version"] for match in matches if match is not None}


def asked(path: str) -> list[str]:
    """The requirements that a requirements*.in asks for itself."""
    return [line for line in (ROOT / path).read_text(encoding="utf-8").splitlines() if line and line[0] not in "#-"]


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_has_hashes(lock: str) -> None:
    """Each pin carries at least one SHA-256, so that `--require-hashes` lets nothing else in."""
    found = pins(lock)

    assert len(found) > 50
    assert [pin.name for pin in found if not pin.hashes] == []
    assert [digest for pin in found for digest in pin.hashes if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest)] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_no_lock_says_where_to_get_a_package(lock: str) -> None:
    """No address, index, folder or switch stands in a lock: a machine's own configuration decides."""
    text = (ROOT / lock).read_text(encoding="utf-8")

    assert re.findall(r"://|^-.*|file:|@ ", text, re.MULTILINE) == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_package_locked_twice_is_for_different_environments(lock: str) -> None:
    """A name stands twice only under different markers."""
    found = [(pin.name, pin.marker) for pin in pins(lock)]

    assert sorted(set(found)) == sorted(found)


def test_the_tests_run_against_the_versions_that_ship() -> None:
    """Every pin of the run-time lock is in the development lock, with the same version, marker and hashes."""
    assert set(pins("requirements.lock")) <= set(pins("requirements-dev.lock"))


def test_the_runtime_lock_is_compiled_from_what_pyproject_asks() -> None:
    """Every dependency and build tool is pinned exactly where it is asked for, and locked at that version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *asked("requirements.in")]
    locked = {pin.name: pin.version for pin in pins("requirements.lock")}

    assert len(names(wanted)) == len(wanted)
    assert names(wanted).items() <= locked.items()


def test_the_development_lock_is_compiled_from_what_is_asked() -> None:
    """Every tool of the tests is pinned exactly where it is asked for, and locked at that version."""
    wanted = asked("requirements-dev.in")
    locked = {pin.name: pin.version for pin in pins("requirements-dev.lock")}

    assert len(names(wanted)) == len(wanted)
    assert names(wanted).items() <= locked.items()


@pytest.mark.parametrize("lock", LOCKS)
def test_no_dependency_is_called_as_our_package(lock: str) -> None:
    """A package `service` from an index would overwrite our modules; `sparing` or its client would be impostors."""
    assert {pin.name for pin in pins(lock)} & {"service", "sparing", "sparing-client"} == set()


@pytest.mark.parametrize("line", ["numpy>=2", "-r other.txt", "numpy @ https" + "://example.org/x", "./wheel.whl"])
def test_the_reader_refuses_what_is_no_pin(line: str) -> None:
    """A line that could bring in anything unpinned stops the checks instead of slipping past them."""
    with pytest.raises(ValueError, match="not a pin"):
        read_lock(line)


def test_the_reader_sees_a_missing_hash() -> None:
    """A pin without a hash is read as one, so that the check above can fail."""
    assert read_lock("numpy==2.4.6") == [Pin(name="numpy", version="2.4.6", marker="", hashes=())]
