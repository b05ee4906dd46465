"""The files of the pages, read once: they are public, the same for everyone, and change with the version alone."""

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import service

_TYPES: Final = {
    ".json": "application/json",
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_ASSETS: Final = frozenset({".css", ".js", ".svg"})  # beside them lie settings of tools, which end in .json
_SHELL: Final = "shell.html"
_TITLES: Final = {
    "analyst": "Queries",
    "auditor": "The chain",
    "curator": "Datasets",
    "docs": "The interface",
    "individual": "Your privacy",
    "sign-in": "Sign in",
}
_GZIP_LEVEL: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """One file as it is sent: its bytes, and the same compressed."""

    media_type: str
    body: bytes
    packed: bytes
    etag: str

    @classmethod
    def made(cls, name: str, body: bytes) -> "PageFile":
        """A file of these bytes, whose name tells its type."""
        return cls(
            media_type=_TYPES[Path(name).suffix],
            body=body,
            packed=gzip.compress(body, _GZIP_LEVEL, mtime=0),
            etag=f'"{hashlib.sha256(body).hexdigest()[:32]}"',
        )


def page_files() -> dict[str, PageFile]:
    """The files by name: the assets, and of each page the shell with its title and its script.

    Empty where the pages are not installed.
    """
    folder = _folder()
    if folder is None:
        return {}
    bodies = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix in _ASSETS}
    shell = (folder / _SHELL).read_text(encoding="utf-8")
    for name, title in _TITLES.items():
        page = shell.replace("{title}", title).replace("{name}", name)
        bodies[f"{name}.html"] = page.encode()
    return {name: PageFile.made(name, body) for name, body in bodies.items()}


def _folder() -> Path | None:
    """Inside the installed package, or beside it in a clone."""
    package = Path(service.__file__).parent
    candidates = (package / "dashboard", package.parent / "clients" / "dashboard")
    return next((each for each in candidates if each.is_dir()), None)
