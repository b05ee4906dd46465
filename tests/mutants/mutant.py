"""A seeded bug: one small change of one function, what it would have done to people, and the tests that see it."""

from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Self

from tests.mutants.source import Span, definitions, indentation, occurrences, statements

ROOT = Path(__file__).parents[2]


class DoesNotApply(Exception):
    """The source has moved on: the text is not there exactly once."""


class Place(NamedTuple):
    """A piece of a file."""

    file: str
    text: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """`find` stands exactly once in the definition and becomes `put`.

    `where` is `path/of/module.py: Class.method`, or the path of a file alone; `killed_by` are node ids or files of
    pytest, quickest first.
    """

    name: str
    incident: str
    where: str
    find: str
    put: str
    killed_by: tuple[str, ...]

    @property
    def file(self) -> str:
        """The file in which the bug was last seen."""
        return self.where.partition(": ")[0]

    @property
    def definition(self) -> str:
        """The qualified name of the function, class or constant; empty for the whole file."""
        return self.where.partition(": ")[2]

    def place(self, root: Path) -> Place:
        """The place of `find`, in the one other module that has the definition if it has moved. Raises DoesNotApply."""
        found = self._places(root, self.file)
        if found is None:
            everywhere = {file: self._places(root, file) for file in self._modules(root)}
            defined = {file: places for file, places in everywhere.items() if places}
            if len(defined) != 1:
                raise DoesNotApply(f"{self.name}: {self.where} is gone, and {len(defined)} other modules have it")
            found = next(iter(defined.values()))
        if len(found) != 1:
            raise DoesNotApply(f"{self.name}: found {len(found)} times in {self.where}: {self.find!r}")
        return found[0]

    def followed(self, root: Path) -> Self:
        """The mutant with the file in which its function is now. Raises DoesNotApply."""
        return replace(self, where=self.where.replace(self.file, self.place(root).file, 1))

    def applied(self, root: Path) -> tuple[str, str]:
        """The file and its text with the bug in it. Raises DoesNotApply."""
        file, text, (start, end) = self.place(root)
        put = self.put.replace("\n", "\n" + indentation(text, start))
        return file, text[:start] + put + text[end:]

    def _places(self, root: Path, file: str) -> list[Place] | None:
        """The places of `find` in this file; None if the file has no such definition."""
        path = root / file
        text = path.read_text() if path.exists() else ""
        within: tuple[Span, ...] = ()
        if not self.definition:
            within = (Span(0, len(text)),) if text else ()
        elif self.definition.rpartition(".")[2] in text:  # to parse every module of a tree takes long
            within = definitions(text).get(self.definition, ())
        if not within:
            return None
        found = [span for part in within for span in statements(text, part, self.find) if path.suffix == ".py"]
        found = found or [span for part in within for span in occurrences(text, part, self.find)]
        return [Place(file, text, span) for span in found]

    def _modules(self, root: Path) -> list[str]:
        """All modules of the same package tree."""
        parts = PurePosixPath(self.file).parts
        tree = root.joinpath(*parts[: 2 if parts[0] == "clients" else 1])
        return [path.relative_to(root).as_posix() for path in tree.rglob("*.py")] if self.definition else []
