"""The items of `select`: the numbers that a row adds, their bounds and their labels."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sparing._testing_functionals import WEIGHTS_MAX, Functionals, matrix_of, positions_of, refuse_repeated, weights_of
from sparing._testing_groups import CATEGORIES_SHOWN_MAX, Group, countable, of_column
from sparing._testing_problems import invalid, quoted
from sparing._testing_scale import Extent
from sparing._testing_shapes import entries_of, members_of, one_of
from sparing._testing_values import Columns, Number, Row, Value

__all__ = ["ITEM_KINDS", "PlanItem", "items_of"]

ITEM_KINDS = ("count", "count_individuals", "sum", "histogram", "linear")
SELECT_MAX = 64

Entries = Callable[[Row], Sequence[tuple[int, Number]]]
"""The places among the item's coordinates at which a row adds a number, and the numbers."""
_NONE: Sequence[tuple[int, Number]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanItem:
    """One item, or one functional of several; `functionals` is the number of those of a matrix."""

    title: str
    extent: Extent
    entries: Entries
    values: Group | None = None  # of a histogram
    functionals: int | None = None

    @property
    def size(self) -> int:
        """The number of its coordinates."""
        return self.values.size if self.values is not None else 1 if self.functionals is None else self.functionals

    def labels(self) -> Iterator[dict[str, str | int | bool]]:
        """One for each coordinate."""
        for place in range(self.size):
            if self.values is not None:
                yield {"select": self.title, self.values.name: self.values.label(place)}
            else:
                yield {"select": self.title if self.functionals is None else f"{self.title}[{place}]"}


def items_of(select: object, grouped: object, columns: Columns) -> list[PlanItem]:
    """The items in order. Raises Refused naming the field."""
    nodes = entries_of(select, "select", most=SELECT_MAX)
    items: list[PlanItem] = []
    for place, node in enumerate(nodes):
        if node in nodes[:place]:
            raise invalid(f"select[{place}]", f"repeats select[{nodes.index(node)}]")
        items += _items(node, grouped, columns, f"select[{place}]")
    if len(items) > SELECT_MAX:
        raise invalid("select", f"has more than {SELECT_MAX} items and functionals")
    return items


def _items(node: object, grouped: object, columns: Columns, field: str) -> list[PlanItem]:
    kind, body = one_of(node, ITEM_KINDS, field)
    inner = f"{field}.{kind}"
    if kind in {"count", "count_individuals"}:
        members_of(body, inner)
        return [PlanItem(title=kind, extent=Extent(is_once=kind == "count_individuals"), entries=lambda _: [(0, 1)])]
    if kind == "sum":
        return [_sum(_summable(body, columns, inner))]
    if kind == "linear":
        return _functionals(body, columns, inner)
    return [_histogram(body, grouped, columns, inner)]


def _histogram(body: object, grouped: object, columns: Columns, field: str) -> PlanItem:
    asked = members_of(body, field, required=["column"], optional=["values"])
    name, value = asked["column"], columns.named(asked["column"], f"{field}.column")
    column = countable(value, f"{field}.column")
    if isinstance(grouped, list) and name in grouped:
        raise invalid(f"{field}.column", f"{quoted(name)} is in group_by already; a count gives its histogram")
    values = of_column(name, column)
    if asked.get("values") is not None:
        values = _listed(entries_of(asked["values"], f"{field}.values", most=WEIGHTS_MAX), value, values, field)
    return PlanItem(title=f"histogram({name})", extent=Extent(), entries=_at_its_value(values), values=values)


def _listed(literals: Sequence[object], value: Value, of: Group, field: str) -> Group:
    """Some values of a column, in the order in which they were asked for."""
    positions = positions_of(literals, value, f"{field}.values")
    refuse_repeated(positions, literals, f"{field}.values")
    places = {int(position - value.low): place for place, position in enumerate(positions)}
    labels = [of.label(code) for code in places]
    said = {"categories": labels} if len(labels) <= CATEGORIES_SHOWN_MAX else {}

    def place(row: Row) -> int | None:
        found = of.place(row)
        return None if found is None else places.get(found)

    return Group(name=of.name, size=len(labels), place=place, label=lambda place: labels[place], said=said)


def _at_its_value(values: Group) -> Entries:
    def entries(row: Row) -> Sequence[tuple[int, Number]]:
        place = values.place(row)
        return _NONE if place is None else [(place, 1)]

    return entries


def _summable(body: object, columns: Columns, field: str) -> Value:
    asked = members_of(body, field, optional=["column", "of"])
    if (asked.get("column") is None) == (asked.get("of") is None):
        raise invalid(field, "must have either column or of")
    place = f"{field}.column" if asked.get("of") is None else f"{field}.of"
    value = columns.named(asked["column"], place) if asked.get("of") is None else columns.value(asked["of"], place)
    if not value.is_number:
        raise invalid(place, f"{quoted(value.text)} is not numeric; count the rows where it has the value of interest")
    return value


def _sum(value: Value) -> PlanItem:
    def entries(row: Row) -> Sequence[tuple[int, Number]]:
        number = value.read(row)
        return _NONE if number is None else [(0, number)]

    extent = Extent(
        low=Fraction(value.low), high=Fraction(value.high), step_log2=value.step_log2, is_whole=value.kind == "integer"
    )
    return PlanItem(title=f"sum({value.text})", extent=extent, entries=entries)


def _functionals(body: object, columns: Columns, field: str) -> list[PlanItem]:
    asked = members_of(body, field, required=["column"], optional=["weights", "matrix"])
    if (asked.get("weights") is None) == (asked.get("matrix") is None):
        raise invalid(field, "must have either weights or matrix")
    value = columns.named(asked["column"], f"{field}.column")
    if value.kind == "real":
        raise invalid(f"{field}.column", f"{quoted(value.text)} is a real column; weights are for listed values")
    title = f"linear({value.text})"
    if asked.get("matrix") is not None:
        functionals = matrix_of(asked["matrix"], value, f"{field}.matrix")
        return [_weighing(title, value, functionals, is_matrix=True)]
    if not isinstance(asked["weights"], list):
        return [_weighing(title, value, weights_of(asked["weights"], value, f"{field}.weights"))]
    several = entries_of(asked["weights"], f"{field}.weights", most=SELECT_MAX)
    return [
        _weighing(f"{title}[{place}]", value, weights_of(weights, value, f"{field}.weights[{place}]"))
        for place, weights in enumerate(several)
    ]


def _weighing(title: str, value: Value, functionals: Functionals, *, is_matrix: bool = False) -> PlanItem:
    weights = functionals.weights

    def entries(row: Row) -> Sequence[tuple[int, Number]]:
        found = value.read(row)
        return _NONE if found is None else weights.get(found, _NONE)

    size = functionals.size if is_matrix else None
    return PlanItem(title=title, extent=functionals.extent, entries=entries, functionals=size)
