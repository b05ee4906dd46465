"""The mechanism that a query asks for, and whether its dataset and its form admit it.

A Gaussian is priced by the L2 norm of an individual's vector. Laplace noise is priced by the L1 norm, which an entry
does not keep: so it is for queries in which an individual has one number, whose size is the root of the stored square.
A reduced query has one number, whatever its vectors are.
"""

from service.core.laws import Gaussian
from service.query.dataset_terms import Priced
from service.query.items import ITEMS
from service.query.language import Query
from service.query.laplace_scale import NamedPrices
from service.query.problems import QueryProblem
from service.query.schema import EventsTable, Table


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
    is_of_events = isinstance(table, EventsTable)
    if len(query.select) > 1 or query.is_by_item:
        raise _several("ask each item in a query of its own")
    admitted = {"always"} if is_of_events else {"always", "of individuals"}
    if query.select[0].one_number not in admitted:
        *kinds, last = (item.KIND for item in ITEMS if item.one_number in admitted)
        raise _several(f"select {', '.join(kinds)} or {last}")
    if is_of_events and query.group_by:
        raise _several("events of one individual may be in several groups")
    return NamedPrices(pricing.name, pricing.laplace_prices)


def _several(why: str) -> QueryProblem:
    return QueryProblem.of("mechanism", f"laplace is for one number for each individual: {why}")
