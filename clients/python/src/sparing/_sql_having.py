"""The condition of HAVING, which leaves rows of an answer out of the result. It asks no query and costs nothing."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from sparing._sql import COMPARED, COMPARISONS, SQLError
from sparing._sql_tree import kind_of, text_of

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Expression

Output = TypeVar("Output")
Look = Callable[[Output], float | None]
"""A function that returns the number of an output in one row; None if the row has none."""
Kept = Callable[[Look[Output]], bool | None]
"""A function that tells whether a row is kept; None if a value is unknown, as in SQL."""


class Having(Generic[Output]):
    """A reader of one HAVING; `named` returns the output that a node names, or raises SQLError."""

    def __init__(self, named: Callable[["Expression"], Output]) -> None:
        self._named = named

    def read(self, node: "Expression") -> Kept[Output]:
        """The condition. Raises SQLError for anything but comparisons of numbers, BETWEEN, AND, OR and NOT."""
        kind = kind_of(node)
        parts = [part for part in node.args.values() if hasattr(part, "args")]
        if kind == "Paren":
            return self.read(parts[0])
        if kind == "Not":
            return _negated(self.read(parts[0]))
        if kind in {"And", "Or"}:
            return _joined([self.read(part) for part in parts], decisive=kind == "Or")
        if kind == "Between" and len(parts) == 3:
            return _joined([self._compared(parts[0], "GTE", parts[1]), self._compared(parts[0], "LTE", parts[2])])
        if kind in COMPARISONS:
            return self._compared(parts[0], kind, parts[1])
        raise SQLError(f"HAVING takes comparisons of what is selected, not {text_of(node)[:200]}")

    def _compared(self, left: "Expression", kind: str, right: "Expression") -> Kept[Output]:
        sides, compare = [self._side(left), self._side(right)], COMPARED[COMPARISONS[kind]]

        def kept(look: Look[Output]) -> bool | None:
            one, other = (side(look) for side in sides)
            return None if one is None or other is None else compare(one, other)

        return kept

    def _side(self, node: "Expression") -> Callable[[Look[Output]], float | None]:
        kind = kind_of(node)
        if kind == "Paren":
            return self._side(node.this)
        is_negative = kind == "Neg"
        literal = node.this if is_negative else node
        if kind_of(literal) == "Literal":
            if literal.args.get("is_string"):
                raise SQLError(f"{literal.sql()[:200]} is no number, with which HAVING compares")
            value = -float(literal.this) if is_negative else float(literal.this)
            return lambda _: value
        output = self._named(node)
        return lambda look: look(output)


def _negated(kept: Kept[Output]) -> Kept[Output]:
    def found(look: Look[Output]) -> bool | None:
        inner = kept(look)
        return None if inner is None else not inner

    return found


def _joined(parts: Sequence[Kept[Output]], *, decisive: bool = False) -> Kept[Output]:
    """The conjunction (AND) of conditions, or if `decisive` is true, their disjunction (OR)."""

    def found(look: Look[Output]) -> bool | None:
        told = [part(look) for part in parts]
        return decisive if decisive in told else None if None in told else not decisive

    return found
