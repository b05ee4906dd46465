"""The parts that a query may state beside its items. Refusals follow from the query and its table alone."""

from service.core.laws import Gaussian
from service.query.item import Item
from service.query.language import Query
from service.query.noise_ast import Prepaid
from service.query.problems import QueryProblem
from service.query.row_columns import DataTable
from service.query.schema import EventsTable


def refuse_beside(item: Item, query: Query, table: DataTable) -> None:
    """Raise QueryProblem for what may not stand beside an item."""
    kind = item.KIND
    if item.stands_alone and len(query.select) > 1:
        raise QueryProblem.of("select", f"{kind} stands alone: ask the other items in a query of their own")
    if item.stands_alone and isinstance(table, EventsTable):
        raise QueryProblem.of("from", f"{kind} is about individuals, and this is a table of events")
    if item.has_own_noise:
        _refuse_stated(query)
    if query.group_by and not item.admits_groups:
        raise QueryProblem.of("group_by", f"must be left out with {kind}; a one_hot feature tells groups apart")
    if query.reuse and "reuse" in query.model_fields_set and not item.may_reuse:
        why = "each tick is asked once" if item.has_own_noise else f"{kind} changes with every charge"
        raise QueryProblem.of("reuse", f"must be false, or left out: {why}")


def refuse_unreducible(query: Query) -> None:
    """Raise QueryProblem for a query whose sum no dataset can reduce. The field is `reduce` or `rule`.

    Each select item of a query has a unit of its own, so that several items have no common sum. Rule clip shortens a
    vector by its norm and measures it again, but a reduced query does not charge by that norm. An individual short of
    budget would add almost nothing to a number whose noise stays the same.
    """
    if query.rule == "clip":
        raise QueryProblem.of("rule", "clip shortens vectors to what their norms cost; with reduce, use skip")
    if len(query.select) > 1:
        raise QueryProblem.of("reduce", "is for one select item: ask each item in a query of its own")
    if query.select[0].stands_alone:
        raise QueryProblem.of("reduce", f"is for counts and sums, and not for {query.select[0].KIND}")
    if query.is_by_item:
        raise QueryProblem.of("reduce", "has one number: give one number for its precision and its clip")


def _refuse_stated(query: Query) -> None:
    """Raise QueryProblem for any part that a query of a tick states."""
    bound = query.per_individual
    stated = {
        "where": query.where is not None,
        "group_by": bool(query.group_by),
        "per_individual": bound is not None and (bound.l2_clip is not None or bound.rows is not None),
        "noise": not isinstance(query.noise, Prepaid),
        "mechanism": query.mechanism != Gaussian.word,
        "rule": query.rule != "skip",
    }
    for field, is_stated in stated.items():
        if is_stated:
            raise QueryProblem.of(field, "must be left out: a tick is of everybody, with the noise of the monitor")
