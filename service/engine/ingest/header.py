"""The names of an upload's columns against the declared ones: the same set, in any order."""

from collections import Counter
from collections.abc import Collection, Sequence

from service.engine.ingest.problems import Problems


def check_header(found: Sequence[str], declared: Collection[str]) -> None:
    """Raises RowsProblem naming every duplicate, unknown and missing column."""
    problems = Problems()
    for name, count in Counter(found).items():
        if count > 1:
            problems.add("the column appears more than once", column=name)
        if name not in declared:
            problems.add("the column is not declared", column=name)
    for name in declared:
        if name not in found:
            problems.add("the column is missing", column=name)
    problems.raise_if_any()
