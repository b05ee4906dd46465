"""The public part of an answer and of a preview, from a plan and what was released.

The service, a verification of stored answers, and the client's fake all state the same about one release.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from service.arrays import Integers
from service.core.charge import rho_of_units
from service.core.laws import Law
from service.query.asking import (
    COVERAGE_WORDS,
    countable_norm,
    coverage_certified,
    notes_of,
    released_words,
    warnings_of,
)
from service.query.estimated_items import EstimatedItem, ReleasedNumbers, stated_estimates
from service.query.layout import LABELS_MAX
from service.query.plan import Plan
from service.query.stated_noise import Numbers, StatedNoise, in_query_units, stated_noise, with_noise


class PublicLimits(Protocol):
    """The public limits of a dataset, to which promises refer."""

    @property
    def budget_units(self) -> int:
        """The limit of most individuals."""

    @property
    def floor_units(self) -> int:
        """The smallest limit for queries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The facts about its query that an answer states and the ledger does not have."""

    table: str
    labels: Sequence[Mapping[str, object]]  # one for each coordinate
    axes: Sequence[Mapping[str, object]]  # the order of the coordinates
    l2_clip: float  # the norm in query units that no individual is charged beyond
    shortens: bool  # the rule is clip
    notes: Sequence[str]  # a sentence on each bound by which an individual may count for less
    estimated: Sequence[EstimatedItem] = ()  # what is worked out from the numbers, where these have labels


def shown_of(plan: Plan) -> Shown:
    """The facts of a plan that an answer states."""
    answered, scale = plan.answered, plan.scale
    return Shown(
        table=plan.rows.table,
        labels=answered.labels(),
        axes=answered.axes(has_places=bool(scale.sigmas)),
        l2_clip=scale.l2_charged,
        shortens=plan.shortens,
        notes=notes_of(plan) if scale.clip_binds or plan.rows.rows_kept is not None or answered.estimated else (),
        estimated=answered.estimated if answered.dimension <= LABELS_MAX else (),
    )


class ReleasedEntry(Protocol):
    """The public part of a release in the ledger."""

    @property
    def query_id(self) -> UUID:
        """The id of the query."""

    @property
    def seq(self) -> int:
        """The sequence of its entry."""

    @property
    def epoch(self) -> int:
        """The public epoch of the release."""

    @property
    def asked_at(self) -> datetime:
        """The time of the query's arrival, in whole seconds. A later time would show how long the evaluation took."""

    @property
    def worst_case_units(self) -> int:
        """The public worst case of the query."""

    @property
    def worst_case_total_units(self) -> int:
        """The sum of the worst cases of all queries up to this one."""

    @property
    def dimension(self) -> int:
        """The number of coordinates."""

    @property
    def grid_log2(self) -> int:
        """The exponent of the grid, a power of two."""

    @property
    def law(self) -> Law:
        """The law of the noise."""

    @property
    def item_sigmas(self) -> tuple[float, ...]:
        """The sigma of each select item, where each has steps of its own."""

    def steps(self) -> Integers:
        """The released integers (dimension,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedPromise:
    """The noise, the price and the coverage of a query, as stated before and after it is answered."""

    noise: StatedNoise
    worst_case_rho: str
    worst_case_share: float | None
    largest_countable_norm: Numbers
    is_certified: bool
    certified_left_share: float  # of the budget, that may still be asked for while coverage stays certified
    coverage_words: str
    warnings: list[str]


def promise_of(plan: Plan, limits: PublicLimits, *, worst_cases_before: int) -> StatedPromise:
    """The promise of a query after others. `worst_cases_before` is the sum of their worst cases, in units."""
    return _promise(
        plan.scale.law,
        limits,
        l2_clip=plan.scale.l2_charged,
        shortens=plan.shortens,
        grid_log2=plan.scale.grid_log2,
        item_sigmas=plan.scale.sigmas,
        worst_case_units=plan.scale.worst_case_units,
        worst_case_total_units=worst_cases_before + plan.scale.worst_case_units,
    )


def answer_of(shown: Shown, released: ReleasedEntry, limits: PublicLimits, *, reused: bool) -> dict[str, Any]:
    """The answer as a JSON object. Its `values` are an array of exact multiples of the grid."""
    law, item_sigmas, axes = released.law, released.item_sigmas, shown.axes
    promise = _promise(
        law,
        limits,
        l2_clip=shown.l2_clip,
        shortens=shown.shortens,
        grid_log2=released.grid_log2,
        item_sigmas=item_sigmas,
        worst_case_units=released.worst_case_units,
        worst_case_total_units=released.worst_case_total_units,
    )
    noise = promise.noise
    answer: dict[str, Any] = {
        "id": str(released.query_id),
        "sequence": released.seq,
        "table": shown.table,
        "values": in_query_units(released.steps(), grid_log2=released.grid_log2, grid=noise.grid, axes=axes),
        "labels": shown.labels,
        "axes": with_noise(axes, noise) if item_sigmas else axes,
        "sigma": noise.sigma,
        "grid": noise.grid,
        "dimension": released.dimension,
        "half_width_95": noise.half_width_95,
        "worst_case_rho": promise.worst_case_rho,
        "coverage_certified": promise.is_certified,
        "coverage_words": promise.coverage_words,
        "reused": reused,
        "epoch": released.epoch,
        "released_at": released.asked_at.isoformat(),
        "worst_case_share": promise.worst_case_share,
        "largest_countable_norm": promise.largest_countable_norm,
        "warnings": promise.warnings,
        "notes": [*shown.notes, released_words(released.asked_at)] if reused else shown.notes,
    }
    if shown.estimated:
        numbers = ReleasedNumbers(answer["values"], shown.labels, answer["axes"], noise.sigma, noise.grid)
        answer["estimates"] = stated_estimates(shown.estimated, numbers)
    if noise.scale is not None:
        answer |= {"mechanism": law.word, law.size_word: noise.scale}
    return answer | ({"tick": law.tick} if law.tick else {})


def _promise(
    law: Law,
    limits: PublicLimits,
    *,
    l2_clip: float,
    shortens: bool,
    grid_log2: int,
    item_sigmas: tuple[float, ...],
    worst_case_units: int,
    worst_case_total_units: int,
) -> StatedPromise:
    noise, floor_units = stated_noise(law, grid_log2=grid_log2, sigmas=item_sigmas), limits.floor_units
    norm = countable_norm(law, grid_log2, l2_clip=l2_clip, floor_units=floor_units)
    is_certified = coverage_certified([worst_case_total_units], limit_floor_units=floor_units)
    return StatedPromise(
        noise=noise,
        worst_case_rho=str(rho_of_units(worst_case_units)),
        worst_case_share=worst_case_units / limits.budget_units if limits.budget_units else None,
        largest_countable_norm=noise.of_steps(norm) if item_sigmas else norm,
        is_certified=is_certified,
        certified_left_share=max(floor_units - worst_case_total_units, 0) / max(limits.budget_units, 1),
        coverage_words=COVERAGE_WORDS[is_certified],
        warnings=warnings_of(l2_clip, norm=norm, is_by_item=bool(item_sigmas), shortens=shortens),
    )
