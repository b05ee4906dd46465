"""A reader of locks, which lets no line go unread."""

import re
from dataclasses import dataclass

from tests.architecture.source import ROOT

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
