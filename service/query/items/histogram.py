"""The count of each value of a column, or of each value that is listed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Discriminator, Field, Strict, Tag

from service.query.domains import Axis, Domain, Label, ListedValues, axis_of, domain_of
from service.query.expressions_ast import BinKey, BucketKey
from service.query.group_keys import Group, countable, group_of
from service.query.item import Form, Input, Item, ItemPlace, PlanItem
from service.query.listed_values import WEIGHTS_MAX, codes_of, placed, refuse_repeated
from service.query.literals_ast import NOT_EMPTY, Closed, ColumnName, Value
from service.query.phrases import group_words
from service.query.problems import QueryProblem, quoted
from service.query.schema import doc, optional


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram(PlanItem):
    """The number 1 at the column's code of each selected row. `label` names the column whose values are counted."""

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


def _histogram_kind(node: object) -> str:
    stated = getattr(node, "KIND", None)
    kinds = [kind for kind in ("bin", "bucket") if (isinstance(node, dict) and kind in node) or stated == kind]
    return f"({kinds[0]})" if kinds else "(column)"


class HistogramItem(Item):
    """One coordinate for each value of the column's declared domain, for each that is listed, or for each part."""

    FORM: ClassVar = Form(words="histogram of {column}", inputs={"column": Input(kind="countable")})
    one_number: ClassVar = "of individuals"
    histogram: Annotated[
        Annotated[OfColumn, Tag("(column)")] | Annotated[BinKey, Tag("(bin)")] | Annotated[BucketKey, Tag("(bucket)")],
        Discriminator(_histogram_kind),
        doc("The column, or the parts of one as in `group_by`."),
    ]

    @classmethod
    def words(cls, body: Any) -> str:  # noqa: ANN401 - JSON
        """Words that name the column, and tell how many values are listed or which parts it has."""
        if "column" not in body:
            return f"histogram of {group_words(body)}"
        counted = f"{len(body['values'])} values of " if "values" in body else ""
        return f"histogram of {counted}{body['column']}"

    def compiled(self, place: ItemPlace) -> Sequence[PlanItem]:
        """The histogram of the domain, of its parts, or of the listed values by their places."""
        asked, field = self.histogram, f"{place.field}.histogram"
        if isinstance(asked, OfColumn):
            named, group = f"{field}.column", group_of(asked.column, place.columns, f"{field}.column")
        else:
            named, group = f"{field}.{asked.KIND}", group_of(asked, place.columns, field)
        if any(group.label == each.label for each in place.groups):
            raise QueryProblem.of(named, f"{quoted(group.label)} is in group_by already; a count gives its histogram")
        if isinstance(asked, OfColumn) and asked.values is not None:
            group = _listed(asked.values, group, place)
        size, title = len(domain_of(group.domain)), f"histogram({group.label})"
        return [Histogram(column=group.column.name, size=size, domain=group.domain, label=group.label, title=title)]


def _listed(values: Sequence[Value], group: Group, place: ItemPlace) -> Group:
    """The listed values of a column, by their places in the list. Raises QueryProblem naming the field."""
    field = f"{place.field}.histogram.values"
    codes = codes_of(values, group.column, field)
    refuse_repeated(codes, values, field)
    labels = domain_of(group.domain)
    listed = ListedValues(of=countable(group.column, field), values=tuple(labels[code] for code in codes))
    column = place.columns.add(placed(group.column, codes, f"histogram({group.label}) {place.number}"))
    return Group(label=group.label, column=column, domain=listed)
