"""Names of results beside names of data: the only place that decides on them, for frames, SQL and the command line.

A column of the data keeps the name that its curator chose. A result whose name is taken has an underscore at its end,
or as many as it needs: beside a column `value`, the numbers are in `value_`.
"""

from collections.abc import Iterable


class ResultNames:
    """The names of one table, as they are given one after the other."""

    def __init__(self, of_data: Iterable[str]) -> None:
        """Those of the data are all taken."""
        self._taken = set(of_data)

    def free(self, name: str) -> str:
        """The name of a result, which no other column has; it is taken from then on."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name
