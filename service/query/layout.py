"""The coordinates of an answer, in order, and the name of each.

Groups are outermost, row-major in the order of `group_by`; then the select items in order; then an item's own
coordinates. Names are made on demand: an answer may have a million coordinates, and few want a million names.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, product
from math import prod

from service.query.columns import label_of
from service.query.domains import CATEGORIES_SHOWN_MAX, Axis, Domain, Label, axis_of, domain_of
from service.query.sparse_matrix import SparseMatrix

DIMENSION_MAX = 2**20
LABELS_MAX = 10_000
BLOCK_ROWS = 2**16
"""Individuals, a page of slots, that are looked at at a time, and worked on at a time where each has one entry.

They stay in cache from the condition to the debit, and the calls of one block cost less than a tenth of its arithmetic.
"""
RUN_ENTRIES = 2**18
"""Entries of vectors, rows times the most entries of a row, that are worked on at a time."""
MULTIPLIED_MAX = 10**10
"""Products of two numbers, of features with errors, parameters or each other, in one query: some seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """1 for each selected row; `title` is what labels write."""

    size: int = 1
    title: str = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountIndividuals:
    """1 for each individual with a selected row; `title` is what labels write."""

    size: int = 1
    title: str = "count_individuals"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """The column's value of each selected row; `name` is that of a functional."""

    column: str
    size: int = 1
    name: str | None = None

    @property
    def title(self) -> str:
        """The name in labels."""
        return f"sum({label_of(self.column)})" if self.name is None else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """1 at the column's code of each selected row; `name` is that of the column whose listed values are counted."""

    column: str
    size: int
    name: str | None = None

    @property
    def label(self) -> str:
        """The name of the column, as labels write it."""
        return self.column if self.name is None else self.name

    @property
    def title(self) -> str:
        """The name in labels."""
        return f"histogram({self.label})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Functionals:
    """The entries of a matrix in the place that the column says, of each selected row."""

    column: str
    size: int
    name: str
    matrix: SparseMatrix

    @property
    def title(self) -> str:
        """The name in axes; labels add the number of the functional."""
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Active:
    """1 for each individual that has at least `units` left, which are `share` of the dataset's budget, rounded up."""

    units: int
    share: float
    size: int = 1

    @property
    def title(self) -> str:
        """The name in labels."""
        return f"active({self.share:.12g})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """One number of the sum of the coordinates that a query would have; `title` is what labels write."""

    title: str
    size: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhausted:
    """A tick of the monitor: the coefficient of the ticks since an individual was counted first."""

    size: int = 1
    title: str = "exhausted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Products:
    """The products of features: of each pair where `classes` is None, or of each with the error of each class.

    A model of one number has no classes to tell apart.
    """

    title: str
    features: tuple[str, ...]
    classes: tuple[str | int | bool, ...] | None

    @property
    def size(self) -> int:
        """How many coordinates there are."""
        count = len(self.features)
        return count * (count + 1) // 2 if self.classes is None else count * max(len(self.classes), 1)

    def labels(self) -> list[Label]:
        """The name of each coordinate."""
        if self.classes is None:
            pairs = combinations_with_replacement(self.features, 2)
            return [{"select": self.title, "feature": first, "with": second} for first, second in pairs]
        if not self.classes:
            return [{"select": self.title, "feature": name} for name in self.features]
        each = product(self.classes, self.features)
        return [{"select": self.title, "class": value, "feature": name} for value, name in each]

    def axis(self) -> Axis:
        """Features and classes in a few lines, those of which there are not too many."""
        named = {"features": self.features, "classes": self.classes or ()}
        return {key: list(names) for key, names in named.items() if 0 < len(names) <= CATEGORIES_SHOWN_MAX}


PlanItem = Count | CountIndividuals | Sum | Histogram | Functionals | Active | Exhausted | Products | Reduced


def entries_of_row(items: Sequence[PlanItem]) -> int:
    """How many entries one row adds at most, to all items together."""
    return sum(item.matrix.most if isinstance(item, Functionals) else 1 for item in items)


def rows_in_run(*, entries: int, is_of_events: bool) -> int:
    """How many chosen rows of at most `entries` entries are made into vectors at a time, or one individual's if more.

    Public, so that the working memory has a public bound (`service.query.working_memory`).
    """
    return BLOCK_ROWS if entries == 1 and not is_of_events else max(RUN_ENTRIES // entries, 1)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The coordinates of one answer. Coordinate = group * block + offset of the item + the item's own coordinate."""

    groups: tuple[tuple[str, Domain], ...]
    items: tuple[tuple[PlanItem, Domain | None], ...]  # a histogram with its values, anything else with None
    places: tuple[int, ...]  # the select item that each is of

    @cached_property
    def block(self) -> int:
        """How many coordinates one group has."""
        return sum(item.size for item, _ in self.items)

    @cached_property
    def dimension(self) -> int:
        """How many coordinates there are."""
        return self.block * prod(len(domain_of(column)) for _, column in self.groups)

    def reduced(self, function: str) -> "Layout":
        """The one coordinate that is a function of them all."""
        first, _ = self.items[0]
        title = first.title if len(self.items) == 1 else f"{len(self.items)} functionals"
        reduced = Reduced(title=f"{function}({title}) of {self.dimension}")
        return Layout(groups=(), items=((reduced, None),), places=(0,))

    def labels(self) -> list[Label]:
        """One name for each coordinate, or none at all above 10,000 coordinates, where `axes` must do."""
        if self.dimension > LABELS_MAX:
            return []
        names = [name for name, _ in self.groups]
        inner: list[Label] = []
        for item, column in self.items:
            if isinstance(item, Histogram) and column is not None:
                inner += [{"select": item.title, item.label: value} for value in domain_of(column)]
            elif isinstance(item, Products):
                inner += item.labels()
            elif isinstance(item, Functionals):
                inner += [{"select": f"{item.title}[{number}]"} for number in range(item.size)]
            else:
                inner.append({"select": item.title})
        return [
            dict(zip(names, group, strict=True)) | label
            for group in product(*(domain_of(column) for _, column in self.groups))
            for label in inner
        ]

    def axes(self, *, has_places: bool = False) -> list[Axis]:
        """The coordinates in a few lines whatever their number: the groups from the outermost in, then the items.

        With places, each item says the select item that it is of.
        """
        offset, items = 0, []
        for place, (item, column) in zip(self.places, self.items, strict=True):
            axis: Axis = {"select": item.title, "offset": offset, "size": item.size}
            if has_places:
                axis["item"] = place
            if isinstance(item, Histogram) and column is not None:
                axis["values"] = axis_of(item.label, column)
            if isinstance(item, Products):
                axis |= item.axis()
            items.append(axis)
            offset += item.size
        return [*(axis_of(name, column) for name, column in self.groups), {"select": items}]
