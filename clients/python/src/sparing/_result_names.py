"""Names of result columns beside columns of the data, for frames, SQL and the command line.

A column of the data keeps the name that its curator chose. If the name of a result is taken, underscores are added
until it is free: beside a column `value`, the numbers are in `value_`.
"""

from collections.abc import Iterable


class ResultNames:
    """The names of one table's columns, given out one after the other."""

    def __init__(self, of_data: Iterable[str]) -> None:
        """Names for results beside the columns `of_data`, whose names are taken."""
        self._taken = set(of_data)

    def free(self, name: str) -> str:
        """A free name for the result `name`; it is taken from then on."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name
