"""The built guide: that of `make docs` where nothing has changed since, or one that is built for the tests."""

import fcntl
from pathlib import Path

from clients.guide.hatch_build import HERE, build
from tests.architecture.source import ROOT

SOURCES = ["docs", HERE, "clients/dashboard", "clients/python/src", "clients/python/README.md", "service"]


def built_site(folder: Path) -> Path:
    """The guide as it is now; built into `folder` by the first worker that needs it. Raises CalledProcessError."""
    made = ROOT / HERE / "build"
    if (made / "index.html").is_file() and (made / "index.html").stat().st_mtime > _changed_at(made):
        return made
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "index.html").is_file():
            build(ROOT, folder)
    return folder


def _changed_at(made: Path) -> float:
    files = (path for name in SOURCES for path in [ROOT / name, *(ROOT / name).rglob("*")])
    return max(
        path.stat().st_mtime for path in files if made not in [path, *path.parents] and "__pycache__" not in str(path)
    )
