"""A tick of a dataset's monitor as a query: what it may state, and its scale, which the registration has decided.

A tick is prepaid: each limit is lower by the monitor's reserve, from which all ticks are paid, so that its worst case
is 0. All refusals are by public numbers.
"""

from typing import Protocol

from service.core.laws import Gaussian, PrepaidGaussian
from service.query.language import Query
from service.query.layout import Exhausted
from service.query.noise_ast import Prepaid
from service.query.problems import QueryProblem
from service.query.row_columns import DataTable
from service.query.scale import Scale
from service.query.schema import EventsTable


class MonitorScale(Protocol):
    """The public scale of a monitor's ticks: the noise in steps of 2^grid_log2."""

    @property
    def grid_log2(self) -> int:
        """The grid's exponent, at most 0."""

    @property
    def sigma_steps(self) -> float:
        """Sigma in steps."""


Ticking = MonitorScale | None
"""The monitor of a dataset that has one, or None."""


def exhausted_of(query: Query, table: DataTable, monitor: Ticking) -> Exhausted:
    """The item of a tick.

    Raises QueryProblem in a dataset without a monitor, and for anything else that the query states: the number is of
    everybody, and its noise and its time are the monitor's.
    """
    if monitor is None:
        raise QueryProblem.of("select[0].exhausted", "this dataset has no monitor")
    if len(query.select) > 1:
        raise QueryProblem.of("select", "exhausted stands alone: ask the other items in a query of their own")
    if isinstance(table, EventsTable):
        raise QueryProblem.of("from", "exhausted is about individuals, and this is a table of events")
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
    if query.reuse and "reuse" in query.model_fields_set:
        raise QueryProblem.of("reuse", "must be false, or left out: each tick is asked once")
    return Exhausted()


def tick_scale(monitor: MonitorScale) -> Scale:
    """The scale of a tick: nobody adds more than one, and nobody is charged."""
    return Scale(
        grid_log2=monitor.grid_log2,
        clip_squared_steps=4**-monitor.grid_log2,
        clip_binds=False,
        l2_clip=1.0,
        law=PrepaidGaussian(monitor.sigma_steps),
        worst_case_units=0,
    )
