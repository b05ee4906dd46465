"""The point below which a share of the rows lies, such as the median, from counts in bins."""

from fractions import Fraction
from typing import Annotated, Any, ClassVar, Final

from pydantic import AfterValidator, Field, Strict

from service.query.columns import label_of, number_of
from service.query.composite_item import CompositeItem, LinearParts
from service.query.estimates import QuantileOf
from service.query.expressions_ast import Bin, BinKey, ColumnRef, OfValue, enough_edges
from service.query.item import Form, Input, ItemPlace
from service.query.items.centred_value import centred
from service.query.items.histogram import HistogramItem
from service.query.items.sum import value_of_words
from service.query.literals_ast import Number
from service.query.phrases import number_text
from service.query.problems import QueryProblem
from service.query.schema import IntegerColumn, doc, optional

BINS: Final = 64
BINS_MAX: Final = 1024


class OfRank(OfValue):
    """A value, the share of the rows below the point, and the bins that the rows are counted in."""

    probability: Annotated[float, Field(gt=0, lt=1), doc("The share of the rows that lies below: 0.5 for the median.")]
    bins: Annotated[int, Field(ge=1, le=BINS_MAX)] | None = optional(
        "How many bins of one width, between the declared bounds; left out, 64. Or `edges`."
    )
    edges: (
        Annotated[
            tuple[Number, ...],
            Strict(strict=False),
            Field(fail_fast=True, max_length=BINS_MAX + 1, json_schema_extra={"minItems": 2}),
            AfterValidator(enough_edges),
        ]
        | None
    ) = optional("The edges of the bins, increasing; rows beyond them are not counted.")


class QuantileItem(CompositeItem):
    """The point below which a share of the rows with a value lies, worked out from counts in bins.

    Quantiles of one value and the same bins share their counts. An interval goes from an edge to an edge.
    """

    FORM: ClassVar = Form(
        words="quantile of {column}",
        inputs={
            "column": Input(kind="numbers"),
            "probability": Input(kind="share", label="Share of rows below it", hint="0.5 for the median", value=0.5),
        },
    )
    quantile: Annotated[OfRank, doc("The value, the share and the bins.")]

    @classmethod
    def words(cls, body: Any) -> str:  # noqa: ANN401 - JSON
        """Words that name the column or the calculation, and state the share."""
        value, share = value_of_words(body), body["probability"]
        return f"median of {value}" if share == 1 / 2 else f"{number_text(share)} quantile of {value}"

    def linear_parts(self, place: ItemPlace) -> LinearParts:
        """The counts in the bins. Whole numbers have a bin each, or bins that end between two of them."""
        asked, field = self.quantile, f"{place.field}.quantile"
        if asked.edges is not None and asked.bins is not None:
            raise QueryProblem.of(f"{field}.bins", "must be left out where edges are given")
        value = centred(asked, place, self.KIND, is_counted=False)
        is_column = isinstance(value.value, ColumnRef)
        declared = place.columns.value(value.value, field).declared
        if declared is not None and declared.type == "boolean":
            named = f"{field}.{'of' if asked.column is None else 'column'}"
            raise QueryProblem.of(named, "is true or false: ask for the mean, which is the rate of true")
        is_whole = isinstance(declared, IntegerColumn) and asked.edges is None
        edges = _edges(value.low, value.high, asked.bins or BINS, is_whole) if asked.edges is None else asked.edges
        of = {"column": value.text} if is_column else {"of": value.value}
        counts = HistogramItem(histogram=BinKey(bin=Bin(**of, edges=edges)))
        ends = (value.low, value.high) if asked.edges is None else (edges[0], edges[-1])
        estimator = QuantileOf(
            probability=asked.probability,
            edges=tuple(map(float, edges)),
            low=float(ends[0]),
            high=float(ends[1]),
            is_whole=is_whole and edges[1] - edges[0] == 1,
        )
        title = f"quantile({label_of(value.text)}, {number_text(asked.probability)})"
        return LinearParts(title=title, parts=[(counts, 1)], estimator=estimator)


def _edges(low: Fraction, high: Fraction, bins: int, is_whole: bool) -> tuple[int | float, ...]:  # noqa: FBT001 - a fact
    """The edges of at most `bins` bins of equal width."""
    if is_whole:
        width = -(-int(high - low + 1) // bins)
        ends = range(int(low), int(high) + width + 1, width)
        return tuple(ends) if width == 1 else tuple(end - 0.5 for end in ends)
    return tuple(number_of(low + (high - low) * place / bins) for place in range(bins + 1))
