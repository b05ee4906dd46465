"""The numbers of one item of an answer, which can be looked up by group."""

from collections.abc import Mapping
from dataclasses import dataclass

from sparing._combine import Released, answers_of, noise_variance

Selection = Released | tuple[Released, str]
"""An answer with one item, or the pair of an answer and the title of an item: `(answer, "sum(spend)")`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """One item of an answer: a number for each group."""

    name: str  # of the argument, for messages
    released: Released
    item: str
    columns: tuple[str, ...]  # that the groups are of, from the outermost in
    numbers: Mapping[tuple[object, ...], float]  # by the values of `columns`
    variance: float  # of the noise in each number

    def number(self, group: Mapping[str, object]) -> float:
        """The number of a group; further columns of the group are ignored. Raises ValueError if there is no number."""
        key = tuple(group.get(column) for column in self.columns)
        if key not in self.numbers:
            raise ValueError(f"{self.name} has no {self.item} of the group {dict(group)}")
        return self.numbers[key]

    @property
    def measure(self) -> str:
        """The kind of the numbers; items of one kind can be compared. A histogram is a count by one more column."""
        return "count" if self.item.startswith("histogram(") else self.item

    def within(self, group: Mapping[str, object]) -> tuple[float, ...]:
        """The numbers whose group has these values, in the order of the answer."""
        fixed = [(self.columns.index(column), value) for column, value in group.items()]
        return tuple(
            number for key, number in self.numbers.items() if all(key[place] == value for place, value in fixed)
        )

    def shares_noise_with(self, other: "Selected") -> bool:
        """Tell whether both have the same item of the same answer, and so the same noise."""
        ids = {answer.id for answer in answers_of(self.released)}
        return self.item == other.item and any(answer.id in ids for answer in answers_of(other.released))


def selected(selection: Selection, name: str) -> Selected:
    """The numbers of an item. Raises ValueError if it is unclear or unknown; the message has `name` and the items."""
    released, item = selection if isinstance(selection, tuple) else (selection, None)
    labels = released.labels
    items = list(dict.fromkeys(str(label["select"]) for label in labels))
    if item is None and len(items) > 1:
        raise ValueError(f"{name} has several items; give the answer and one of {', '.join(items)}, as a pair")
    item = items[0] if item is None else item
    if item not in items:
        raise ValueError(f"{name} has no item {item}; it has {', '.join(items)}")
    places = [place for place, label in enumerate(labels) if label["select"] == item]
    numbered = [(labels[place], released.values[place]) for place in places]
    columns = tuple(column for column in numbered[0][0] if column != "select")
    numbers = {tuple(label[column] for column in columns): value for label, value in numbered}
    variance = noise_variance(released, places[0])
    return Selected(name=name, released=released, item=item, columns=columns, numbers=numbers, variance=variance)


def are_certified(*parts: Selected) -> bool:
    """Tell whether coverage is certified for every answer from which these numbers come."""
    return all(part.released.coverage_certified for part in parts)


def have_laplace(*parts: Selected) -> bool:
    """Tell whether some of the noise in these numbers is Laplace noise."""
    return any(part.released.has_laplace for part in parts)
