"""Fresh environments: a wheel, and of the packages of this one just those that the wheel's metadata asks for.

The packages are links to those of the environment that runs the tests, at the versions of the lock, so that nothing is
fetched and nothing copied. What a wheel imports without asking for it is missing.
"""

import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def built(target: str, project: Path, folder: Path) -> Path:
    """The wheel or source distribution of a project, built into `folder`."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(command, check=True, capture_output=True, cwd=project)
    (made,) = folder.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return made


def fresh_environment(folder: Path, wheel: Path, *, extras: frozenset[str] = frozenset()) -> Path:
    """The folder of programs of a new environment that holds the wheel and what it asks for, with these extras."""
    venv.create(folder, with_pip=False, symlinks=True)
    add_wheel(folder / "bin", wheel)
    (site,) = folder.glob("lib/python*/site-packages")
    (own,) = Distribution.discover(path=[str(site)])
    for each in _asked_for(own, extras):
        for place in {file.parts[0] for file in each.files or [] if file.parts[0] not in {"..", "__pycache__"}}:
            if not (site / place).exists():
                (site / place).symlink_to(str(each.locate_file(place)))
    return folder / "bin"


def add_wheel(programs: Path, wheel: Path) -> None:
    """Install a wheel, without what it asks for, into the environment with these programs."""
    install = [*PIP, "--python", str(programs / "python"), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)


def _asked_for(own: Distribution, extras: frozenset[str]) -> Iterator[Distribution]:
    """The distributions that one asks for, and those that they ask for, each once."""
    waiting = [(own, extras)]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        asking, its_extras = waiting.pop()
        for requirement in map(Requirement, asking.requires or []):
            here = [{"extra": extra} for extra in its_extras | {""}]
            wanted = canonicalize_name(requirement.name), frozenset(requirement.extras)
            if wanted in seen or not any(
                requirement.marker is None or requirement.marker.evaluate(each) for each in here
            ):
                continue
            seen.add(wanted)
            found = _installed(wanted[0], asked_by=asking)
            waiting.append((found, wanted[1]))
            yield found


def _installed(name: str, *, asked_by: Distribution) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        raise LookupError(f"{asked_by.name} asks for {name}, which this environment lacks") from error
