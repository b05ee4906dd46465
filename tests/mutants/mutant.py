"""A seeded bug: one small change of one source file, what it would have done to people, and the test that sees it."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


class DoesNotApply(Exception):
    """The source has moved on: the text is not there exactly once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """`find` stands exactly once in `file` and becomes `put`; `killed_by` is a pytest node id."""

    name: str
    incident: str
    file: str
    find: str
    put: str
    killed_by: str

    def applied(self, root: Path) -> str:
        """The file's text with the bug in it. Raises DoesNotApply."""
        text = (root / self.file).read_text()
        if text.count(self.find) != 1:
            raise DoesNotApply(f"{self.name}: found {text.count(self.find)} times in {self.file}: {self.find!r}")
        return text.replace(self.find, self.put)
