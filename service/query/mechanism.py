"""The mechanism that a query asks for, and whether its dataset and its form admit it.

A Gaussian is priced by the L2 norm of an individual's vector. Laplace noise is priced by the L1 norm, which a ledger
entry does not keep. So it is for queries in which an individual has one number: the size of that number is the root of
the stored square. A reduced query has one number, whatever its vectors are.
"""

from typing import Final

from service.core.laws import Gaussian
from service.core.mechanisms import GAUSSIAN_NOISE, Mechanism
from service.query.dataset_terms import Priced
from service.query.items import ITEMS
from service.query.language import Query
from service.query.problems import QueryProblem
from service.query.schema import EventsTable, Table

UNPRICED: Final = {Gaussian.word: GAUSSIAN_NOISE}
"""The mechanisms of a dataset whose accounting is not known."""


def mechanism_of(query: Query, table: Table, pricing: Priced) -> Mechanism:
    """The mechanism that a query asks for.

    Raises QueryProblem for a mechanism without a price, and for one of a single number where an individual may have
    several.
    """
    priced = UNPRICED if pricing is None else pricing.mechanisms
    if query.mechanism not in priced:
        problem = f"{query.mechanism} has no finite charge in this dataset; ask with {' or '.join(priced)}"
        raise QueryProblem.of("mechanism", problem)
    mechanism = priced[query.mechanism]
    if not mechanism.of_one_number:
        return mechanism
    word = query.mechanism
    if query.rule == "clip":
        raise QueryProblem.of("rule", f"clip is for vectors with Gaussian noise; with {word}, use skip")
    if query.reduce is not None:
        return mechanism
    is_of_events = isinstance(table, EventsTable)
    if len(query.select) > 1 or query.is_by_item:
        raise _several(word, "ask each item in a query of its own")
    admitted = {"always"} if is_of_events else {"always", "of individuals"}
    if query.select[0].one_number not in admitted:
        *kinds, last = (item.KIND for item in ITEMS if item.one_number in admitted)
        raise _several(word, f"select {', '.join(kinds)} or {last}")
    if is_of_events and query.group_by:
        raise _several(word, "events of one individual may be in several groups")
    return mechanism


def _several(word: str, why: str) -> QueryProblem:
    return QueryProblem.of("mechanism", f"{word} is for one number for each individual: {why}")
