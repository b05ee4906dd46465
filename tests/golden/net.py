"""A file of recorded facts: how its cases are drawn, and how the facts of drawn cases are found again."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Net:
    """One file; each line is a case with its facts, as JSON."""

    file: Path
    drawn: Callable[[], Iterable[str]]
    """The lines of cases that are drawn anew."""
    renewed: Callable[[Sequence[str]], Iterable[str]]
    """The lines of the same cases, with the facts as they are now."""

    def lines(self) -> list[str]:
        """The recorded lines."""
        return self.file.read_text(encoding="utf-8").splitlines()
