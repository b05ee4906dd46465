"""Builds the rooms of a package: the rooms of the service that its `pyproject.toml` names, copied beside its own code.

The copy of the client says `sparing._rooms` wherever the original says `service`, and is otherwise the same; that of
`clients/local` says `sparing_local._rooms`. A source distribution holds the copy, so that a wheel is built from it
alone; an editable install imports the clone's own `service`.
"""

import re
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LEFT_OUT = "ingest"  # uploads: they need pyarrow, and the fake reads rows by itself


class Rooms(BuildHookInterface[Any]):
    """The hook that hatchling calls for each distribution."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put the rooms into the distribution: as copied here, or as a source distribution has them."""
        if version == "editable":
            return
        place = f"{self.config['package']}/_rooms"
        package = Path(self.root, "src", place)
        self._copies = tempfile.TemporaryDirectory()
        is_copied = (package / "core").is_dir()
        rooms = package if is_copied else self._copied(package, Path(self.root).parents[1] / "service")
        build_data["force_include"][str(rooms)] = ("src/" * (self.target_name == "sdist")) + place

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the copies."""
        if version != "editable":
            self._copies.cleanup()

    def _copied(self, package: Path, service: Path) -> Path:
        """A folder with the package's own modules and the rooms of the service, all renamed."""
        rooms, target = self.config["rooms"], Path(self._copies.name)
        name = re.compile(rf"\bservice\.(?={'|'.join(rooms)})")
        found = {path: path.relative_to(service) for path in service.rglob("*.py")}
        found = {path: place for path, place in found.items() if _room(place) in rooms and LEFT_OUT not in place.parts}
        own = {path: Path(path.name) for path in package.glob("*.py")}
        for path, place in {**own, **found}.items():
            copy = target / place
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(
                name.sub(f"{self.config['package']}._rooms.", path.read_text(encoding="utf-8")), encoding="utf-8"
            )
        return target


def _room(place: Path) -> str:
    """The folder of a module, or the module itself where it is a room by itself."""
    return place.parts[0].removesuffix(".py")
