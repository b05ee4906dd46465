"""The count of each value of a column, or of each value that is listed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field, Strict

from service.query.domains import Axis, Domain, Label, ListedValues, axis_of, domain_of
from service.query.group_keys import countable
from service.query.item import Item, ItemPlace, PlanItem
from service.query.listed_values import WEIGHTS_MAX, codes_of, placed, refuse_repeated
from service.query.literals_ast import NOT_EMPTY, Closed, ColumnName, Value
from service.query.problems import QueryProblem, quoted
from service.query.schema import doc, optional


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram(PlanItem):
    """1 at the column's code of each selected row; `label` names the column whose values are counted."""

    has_one_norm: ClassVar = True
    is_unit: ClassVar = True
    is_scalar: ClassVar = False

    column: str
    domain: Domain
    label: str

    def labels(self) -> list[Label]:
        """The value of each coordinate."""
        return [{"select": self.title, self.label: value} for value in domain_of(self.domain)]

    def axis(self) -> Axis:
        """The values."""
        return {"values": axis_of(self.label, self.domain)}


class OfColumn(Closed):
    """A column by its name, or some of its values."""

    column: Annotated[ColumnName, doc("The column, or `people.town` for that of the individual that an event is of.")]
    values: (
        Annotated[tuple[Value, ...], Strict(strict=False), Field(fail_fast=True, max_length=WEIGHTS_MAX), NOT_EMPTY]
        | None
    ) = optional("The values to count, in the order of the answer; left out, the whole declared domain.")


class HistogramItem(Item):
    """One coordinate for each value of the column's declared domain, or for each value that is listed."""

    KIND: ClassVar = "histogram"
    one_number: ClassVar = "of individuals"
    histogram: Annotated[OfColumn, doc("The column.")]

    @classmethod
    def words(cls, body: Any) -> str:  # noqa: ANN401 - JSON
        """Name the column, and how many of its values are listed."""
        counted = f"{len(body['values'])} values of " if "values" in body else ""
        return f"histogram of {counted}{body['column']}"

    def compiled(self, place: ItemPlace) -> Sequence[PlanItem]:
        """The histogram of the domain, or of the places of the listed values among them."""
        name, field = self.histogram.column, f"{place.field}.histogram.column"
        column = place.columns.named(name, field)
        domain: Domain = countable(column, field)
        if any(name == group.label for group in place.groups):
            raise QueryProblem.of(field, f"{quoted(name)} is in group_by already; a count gives its histogram")
        if self.histogram.values is not None:
            values_field = f"{place.field}.histogram.values"
            codes = codes_of(self.histogram.values, column, values_field)
            refuse_repeated(codes, self.histogram.values, values_field)
            labels = domain_of(domain)
            domain = ListedValues(of=countable(column, field), values=tuple(labels[code] for code in codes))
            column = place.columns.add(placed(column, codes, f"histogram({name}) {place.number}"))
        size = len(domain_of(domain))
        return [Histogram(column=column.name, size=size, domain=domain, label=name, title=f"histogram({name})")]
