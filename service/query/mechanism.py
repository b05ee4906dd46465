"""The mechanism that a query asks for, and whether its dataset and its form admit it.

A Gaussian is priced by the L2 norm of an individual's vector. Laplace noise is priced by the L1 norm, which an entry
does not keep: so it is for queries in which an individual has one number, whose size is the root of the stored square.
A reduced query has one number, whatever its vectors are.
"""

from typing import Final, Protocol

from service.core.laplace import LaplacePrices
from service.core.laws import Gaussian
from service.query.language import CountIndividualsItem, CountItem, HistogramItem, Query, SumItem
from service.query.laplace_scale import NamedPrices
from service.query.problems import QueryProblem
from service.query.schema import EventsTable, Table

_ONE_NUMBER: Final = (CountItem, CountIndividualsItem, SumItem)


class Pricing(Protocol):
    """The prices of a dataset's accounting: of Laplace noise, under a name, and whether a Gaussian has one."""

    @property
    def has_gaussian(self) -> bool:
        """Tell whether a Gaussian has a finite charge."""

    @property
    def name(self) -> str:
        """The word by which an entry names it."""

    @property
    def laplace_prices(self) -> LaplacePrices:
        """The prices of Laplace noise."""


Priced = Pricing | None


def laplace_of(query: Query, table: Table, pricing: Priced) -> NamedPrices:
    """The prices of the Laplace noise that a query asks for.

    Raises QueryProblem for a Gaussian that has no price, and where an individual may have several numbers.
    """
    if query.mechanism == Gaussian.word:
        raise QueryProblem.of("mechanism", "gaussian has no finite charge in this dataset; ask with laplace")
    if pricing is None:
        raise QueryProblem.of("mechanism", "laplace has no price in this dataset")
    if query.rule == "clip":
        raise QueryProblem.of("rule", "clip is for vectors with Gaussian noise; with laplace, use skip")
    if query.reduce is not None:
        return NamedPrices(pricing.name, pricing.laplace_prices)
    asked, is_of_events = query.select[0], isinstance(table, EventsTable)
    if len(query.select) > 1 or query.is_by_item:
        raise _several("ask each item in a query of its own")
    if not isinstance(asked, _ONE_NUMBER if is_of_events else (*_ONE_NUMBER, HistogramItem)):
        allowed = "count, count_individuals or sum" if is_of_events else "count, count_individuals, sum or histogram"
        raise _several(f"select {allowed}")
    if is_of_events and query.group_by:
        raise _several("events of one individual may be in several groups")
    return NamedPrices(pricing.name, pricing.laplace_prices)


def _several(why: str) -> QueryProblem:
    return QueryProblem.of("mechanism", f"laplace is for one number for each individual: {why}")
