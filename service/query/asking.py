"""The rules by which a query is answered, before any record is read, and what an answer warns of; all of it is public.

Both the service and the client's fake use these rules, so that they refuse the same queries and give the same warnings.

Coverage follows from public numbers alone. An individual is left out only when its own charges go beyond its limit. No
charge exceeds the query's public worst case, C^2 / (2 sigma^2) rounded up to units, and no limit is below the dataset's
public floor. So as long as the worst cases asked so far add up to at most the floor, no individual can have been left
out, whatever the data. Any statement about which individuals were in fact left out has to be a charged query itself.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from math import ldexp
from typing import Final

from service.core.laws import Law
from service.query.dataset_terms import Priced, Ticking
from service.query.item_precision import by_item, refuse_uneven
from service.query.language import Query
from service.query.noise_ast import Sigma
from service.query.plan import Plan, compile_query
from service.query.predictions import refuse_long
from service.query.problems import QueryProblem
from service.query.schema import EventsTable, Schema

UNCLIPPED_ROWS_MAX: Final = 64
"""The most rows for each individual up to which the natural bound is the default clip."""
COVERAGE_WORDS: Final = {
    True: "Certified: nobody who kept the dataset's limit can have run out of budget, but pauses and lowered limits are"
    " not counted.",
    False: "People may be missing: some may have run out of budget.",
}
"""A sentence on the individuals that may be missing from an answer, by `coverage_certified`."""
_PREDICT: Final = b'"predict":'


def answerable(
    query: Query,
    schema: Schema,
    *,
    capacity: int,
    budget_units: int,
    floor_units: int,
    pricing: Priced,
    monitor: Ticking,
) -> Plan:
    """The plan of a query that a dataset answers. Raises QueryProblem naming the field.

    Refusals come in this order: of shares, of the compilation, of uneven items, of a missing clip, of long predictions.
    `floor_units` is the smallest limit for queries. Answers from before a rule stay valid: a plan that is verified or
    rebuilt is compiled without these rules.
    """
    if len(query.select) > 1 or query.is_by_item:
        query = by_item(query)
    plan = compile_query(query, schema, capacity=capacity, budget_units=budget_units, pricing=pricing, monitor=monitor)
    if plan.scale.bounds:
        refuse_uneven(query, plan.scale.bounds)
    _refuse_unclipped(plan, query, schema, floor_units)
    if _PREDICT in plan.canonical:
        refuse_long(plan.rows.columns, schema.tables[plan.rows.table].rows_max(capacity))
    return plan


def _refuse_unclipped(plan: Plan, query: Query, schema: Schema, floor_units: int) -> None:
    """Raise QueryProblem where no clip is stated and the natural bound is too large to be the intended clip."""
    table = schema.tables[plan.rows.table]
    if not isinstance(table, EventsTable) or all(item.is_once for item in plan.layout.items):
        return
    stated = query.per_individual
    if stated is not None and (stated.l2_clip is not None or stated.rows is not None):
        return
    if table.rows_per_individual <= UNCLIPPED_ROWS_MAX:
        return
    needed = f"is required where an individual may have more than {UNCLIPPED_ROWS_MAX} rows (here"
    suggestion = "for a count, the number of rows of one individual that should count; or give `rows`"
    if isinstance(query.noise, Sigma) and not plan.scale.sigmas and plan.scale.law.size_word == "sigma":
        norm = countable_norm(
            plan.scale.law, plan.scale.grid_log2, l2_clip=plan.scale.l2_charged, floor_units=floor_units
        )
        suggestion += f"; with this sigma, at most {norm:.6g} to leave out no one"
    raise QueryProblem.of("per_individual.l2_clip", f"{needed} {table.rows_per_individual}): {suggestion}")


def notes_of(plan: Plan) -> tuple[str, ...]:
    """A sentence on each bound by which an individual may count for less than its rows say.

    The sentences follow from the query and the declared bounds, so that they are the same whatever the data are.
    """
    rows, scale, layout = plan.rows.rows_kept, plan.scale, plan.layout
    notes = []
    if rows is not None:
        notes.append(f"An individual with more than {rows} row{'s' * (rows > 1)} counts as {rows} with their mean.")
    if scale.clip_binds and len(scale.clips_squared) > 1:
        notes.append("An individual whose part in an item is longer than the clip of that item counts for less.")
    elif scale.clip_binds and scale.sigmas:
        notes.append("An individual whose vector is longer than the clip counts for less.")
    elif scale.clip_binds and layout.dimension == 1 and layout.items[0].is_unit and not layout.items[0].is_once:
        notes.append(f"An individual with more than {scale.l2_clip:.6g} counts as {scale.l2_clip:.6g}.")
    elif scale.clip_binds:
        notes.append(f"An individual whose vector is longer than {scale.l2_clip:.6g} counts for less.")
    if plan.shortens and layout.estimated:
        notes.append("An individual who is short of budget weighs less, in the sums and the counts alike.")
    return tuple(notes)


@lru_cache(maxsize=64)  # as `longest_steps`
def countable_norm(law: Law, grid_log2: int, *, l2_clip: float, floor_units: int) -> float:
    """The longest vector that an untouched limit of the floor pays for, in query units, or in steps if by item.

    An individual whose limit is the floor is left out of an answer in which its vector is longer. For noise that
    charges nobody the result is the clip, which no vector exceeds. Raises ValueError for negative units.
    """
    if floor_units < 0:
        raise ValueError(f"units must not be negative, got {floor_units}")
    return l2_clip if law.is_free else ldexp(law.longest(floor_units), grid_log2)


def coverage_certified(worst_case_units: Iterable[int], limit_floor_units: int) -> bool:
    """Tell whether the last answer at these worst cases, of all queries in order, certainly includes every individual.

    All numbers are in units. Individuals that lowered their own limit or paused are not considered. Raises ValueError
    for negative units.
    """
    prices = list(worst_case_units)
    if min([limit_floor_units, *prices]) < 0:
        raise ValueError(f"units must not be negative, got {min([limit_floor_units, *prices])}")
    return sum(prices) <= limit_floor_units


def released_words(at: datetime) -> str:
    """A sentence that gives the day on which a reused answer was released."""
    return f"This answer was released on {at:%Y-%m-%d}; the data may have changed since."


def warnings_of(l2_clip: float, *, norm: float, is_by_item: bool, shortens: bool) -> list[str]:
    """Warnings about a query, by its clip and the largest countable norm. Both are public, and in steps if by item."""
    if l2_clip <= norm:
        return []
    if is_by_item:
        times = f"{(l2_clip / norm) ** 2:.3g} times" if norm else "more than"
        fate = "vectors that cost more than is left are shortened"
        if not shortens:
            fate = "individuals whose vectors cost more than their limits are left out"
        warning = (
            f"The longest vectors of this query cost {times} the smallest limit of this dataset: {fate}."
            " Larger sigmas or smaller l2_clips keep them."
        )
        return [warning]
    fate = "longer vectors are shortened" if shortens else "individuals with longer vectors are left out"
    warning = (
        f"A vector longer than {norm:.6g} cannot be paid for from the smallest limit of this dataset, and the clip is"
        f" {l2_clip:.6g}: {fate}. A larger sigma or a smaller l2_clip keeps them."
    )
    return [warning]
