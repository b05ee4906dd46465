"""Items that are worked out from linear ones, such as a mean: the linear query behind a query with such items.

The rules are public: they follow from the query and the declared bounds. The linear query is answered, and its answer
has the estimates beside its numbers. A release is recognised by the linear query, in whatever form that was asked for.

A share or rho is divided among the items that were asked for, and an item's part among its linear items by fixed
weights. A linear item that two items need is asked for once, and gets the parts of both.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from service.core.laws import Gaussian
from service.query.columns import meant_by
from service.query.composite_item import CompositeItem, LinearParts
from service.query.dataset_terms import DatasetTerms
from service.query.estimated_items import EstimatedItem
from service.query.estimates import Itself
from service.query.group_keys import Group
from service.query.item import Item, ItemPlace
from service.query.item_precision import one_for_each
from service.query.language import Query
from service.query.layout import Layout
from service.query.noise_ast import SELECT_MAX, Rho, Share
from service.query.problems import FieldError, QueryProblem
from service.query.row_columns import RowColumns

_WEIGHT_MAX: Final = 2**31
_ITEM = re.compile(r"select\[(\d+)\](.*)")
_WEIGHT = re.compile(r"noise\.weights\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearQuery:
    """The linear query behind a query with composite items."""

    query: Query
    has_weights: bool  # the query that was asked states them
    selected: Sequence[tuple[LinearParts | None, tuple[int, ...]]]
    """Each item that was asked for, with its linear parts (None if the item is linear itself) and their places."""

    def estimated(self, layout: Layout) -> tuple[EstimatedItem, ...]:
        """The items whose estimates an answer has: composite ones, and linear ones of one number."""
        found: list[EstimatedItem] = []
        for of, places in self.selected:
            if of is None:
                found += [
                    EstimatedItem(title=item.title, parts=(part,), estimator=Itself())
                    for part, item in enumerate(layout.items)
                    if layout.places[part] == places[0] and item.size == 1
                ]
            else:
                found.append(
                    EstimatedItem(
                        title=of.title,
                        parts=tuple(layout.places.index(place) for place in places),
                        estimator=of.estimator,
                        contrast=of.contrast,
                    )
                )
        return tuple(found)

    def as_asked(self, problem: QueryProblem) -> QueryProblem:
        """A problem of the linear query, with its fields named as in the query that was asked."""
        return QueryProblem(
            *(FieldError(field=self._asked_field(each.field), message=each.message) for each in problem.errors)
        )

    def _asked_field(self, field: str) -> str:
        if found := _ITEM.fullmatch(field):
            asked = self._asked_place(int(found[1]))
            is_linear = self.selected[asked][0] is None
            return f"select[{asked}]{found[2]}" if is_linear else f"select[{asked}]"
        if found := _WEIGHT.fullmatch(field):
            if not self.has_weights:
                return f"noise.{self.query.noise.KIND}"
            return f"noise.weights[{self._asked_place(int(found[1]))}]"
        return field

    def _asked_place(self, place: int) -> int:
        return next(asked for asked, (_, places) in enumerate(self.selected) if place in places)


def linear_query(query: Query, columns: RowColumns, groups: Sequence[Group], terms: DatasetTerms) -> LinearQuery:
    """The linear query behind a query with composite items. Raises QueryProblem naming the field."""
    kind = next(item.KIND for item in query.select if item.is_composite)
    _refuse_beside(query, kind, terms)
    shares = _shares(query)
    weights: dict[Item, Fraction] = {}
    selected: list[tuple[LinearParts | None, tuple[int, ...]]] = []
    before: dict[Item, int] = {}
    for number, (item, share) in enumerate(zip(query.select, shares, strict=True)):
        if item in before:
            raise QueryProblem.of(f"select[{number}]", f"repeats select[{before[item]}]")
        before[item] = number
        place = ItemPlace(number, columns, groups, terms)
        of = item.linear_parts(place) if isinstance(item, CompositeItem) else None
        parts = [(item, 1)] if of is None else of.parts
        whole = sum(part for _, part in parts)
        for each, part in parts:
            weights[each] = weights.get(each, Fraction(0)) + share * part / whole
        selected.append((of, tuple(list(weights).index(each) for each, _ in parts)))
    if len(weights) > SELECT_MAX:
        raise QueryProblem.of("select", f"is worked out from {len(weights)} linear items, more than {SELECT_MAX}")
    divided = _whole_numbers(list(weights.values())) if len(weights) > 1 else None
    noise = query.noise.model_copy(update={"weights": divided})
    linear = query.model_copy(update={"select": tuple(weights), "noise": noise})
    has_weights = isinstance(query.noise, Share | Rho) and query.noise.weights is not None
    return LinearQuery(query=linear, has_weights=has_weights, selected=_told_apart(selected))


def _refuse_beside(query: Query, kind: str, terms: DatasetTerms) -> None:
    """Raise QueryProblem for a part of the query that may not stand beside a composite item."""
    if not isinstance(query.noise, Share | Rho):
        problem = f"of a {kind} follows from how many rows there are; give a share or a rho"
        raise QueryProblem.of(f"noise.{query.noise.KIND}", problem)
    if query.per_individual is not None and query.per_individual.l2_clip is not None:
        problem = f"must be left out with {kind}: it would shorten counts and not sums; rows bounds both"
        raise QueryProblem.of("per_individual.l2_clip", problem)
    if query.reduce is not None:
        raise QueryProblem.of("reduce", f"is for counts and sums, and not for {kind}")
    has_gaussian = terms.pricing is None or Gaussian.word in terms.pricing.mechanisms
    if query.mechanism != Gaussian.word or not has_gaussian:
        problem = f"{kind} is worked out from several numbers of one individual, which needs {Gaussian.word} noise"
        raise QueryProblem.of("mechanism", f"{problem}{'' if has_gaussian else '; this dataset has none'}")


def _shares(query: Query) -> list[Fraction]:
    """The part of the cost that each item gets."""
    weights = query.noise.weights if isinstance(query.noise, Share | Rho) else None
    count = len(query.select)
    if weights is None:
        return [Fraction(1)] * count
    return [meant_by(weight) for weight in one_for_each(weights, count, "noise.weights")]


def _whole_numbers(weights: Sequence[Fraction]) -> tuple[float, ...]:
    """Weights in the same proportions: whole numbers, unless these would be very large."""
    scale = math.lcm(*(each.denominator for each in weights))
    numbers = [int(each * scale) for each in weights]
    shared = math.gcd(*numbers)
    if max(numbers) // shared > _WEIGHT_MAX:
        return tuple(float(each) for each in weights)
    return tuple(float(each // shared) for each in numbers)


def _told_apart(
    selected: Sequence[tuple[LinearParts | None, tuple[int, ...]]],
) -> list[tuple[LinearParts | None, tuple[int, ...]]]:
    """The items with different titles: where several have one title, their places are added to it."""
    times = Counter(each.title for each, _ in selected if each is not None)
    return [
        (replace(each, title=f"select[{number}] {each.title}"), places)
        if each is not None and times[each.title] > 1
        else (each, places)
        for number, (each, places) in enumerate(selected)
    ]
