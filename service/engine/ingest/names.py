"""The columns of a file: which of them are read, and as which declared columns of a table."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from service.engine.ingest.problems import Problems

Value = TypeVar("Value")
ColumnNames = Mapping[str, str | None]
"""The declared name of a column by its name in the file; None leaves the column out. Other columns keep their names."""
_ABSENT: Final = "`columns` names it, and the file has no such column"
_SEVERAL: Final = "several columns of the file would be one"


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the `declared` columns, and their other names in a file."""

    declared: Collection[str]
    in_file: ColumnNames = field(default_factory=dict)

    def read(self, found: Sequence[str]) -> dict[str, str]:
        """The declared name of each column that is read, by its name in the file and in the file's order.

        Raises RowsProblem naming every duplicate, unknown and missing column.
        """
        problems = Problems()
        chosen = {name: self.in_file.get(name, name) for name in found}
        read = {name: declared for name, declared in chosen.items() if declared is not None}
        for name, fault in self._faults(Counter(found), Counter(read.values())):
            problems.add(fault, column=name)
        problems.raise_if_any()
        return read

    def _faults(self, found: Mapping[str, int], read: Mapping[str, int]) -> Iterator[tuple[str, str]]:
        """(name, fault) for the columns `found` in a file and those that are `read`, each given with its count."""
        yield from ((name, "the column appears more than once") for name, count in found.items() if count > 1)
        yield from ((name, _ABSENT) for name in self.in_file if name not in found)
        yield from ((name, _SEVERAL) for name, count in read.items() if count > 1)
        yield from ((name, "the column is not declared") for name in read if name not in self.declared)
        yield from ((name, "the column is missing") for name in self.declared if name not in read)

    def renamed(self, members: Mapping[str, Value]) -> Mapping[str, Value]:
        """The members by declared name, without those left out. Raises ValueError where two members get one name."""
        if not self.in_file:
            return members
        named = [(self.in_file.get(name, name), value) for name, value in members.items()]
        kept = [(name, value) for name, value in named if name is not None]
        if len(dict(kept)) < len(kept):
            raise ValueError(_SEVERAL)
        return dict(kept)
