"""Puts the guide into the service's wheel, as `make docs` has built it or newly built if its tools are installed.

If neither is possible the wheel has no guide. The service then explains at /guide how to build it.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = "clients/guide"


class Guide(BuildHookInterface[Any]):
    """The hook that hatchling calls for each wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Include the guide in a wheel. An editable install reads the guide where `make docs` puts it."""
        self._made = tempfile.TemporaryDirectory()
        built = Path(self.root, HERE, "build")
        if version == "editable":
            return
        if not (built / "index.html").is_file():
            if importlib.util.find_spec("mkdocs") is None:
                self.app.display_warning("the wheel has no guide: neither was it built, nor is mkdocs installed")
                return
            built = Path(self._made.name)
            build(Path(self.root), built)
        build_data["force_include"][str(built)] = "service/guide"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the guide that was built for the wheel."""
        self._made.cleanup()


def build(root: Path, site: Path) -> None:
    """Build the guide of a clone into a folder. Raises CalledProcessError, even for a single broken link."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", f"{HERE}/mkdocs.yml"]
    without_advertisement = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([*command, "--site-dir", str(site)], check=True, cwd=root, env=without_advertisement)
