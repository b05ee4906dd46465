"""The public part of an answer and of a preview, from a plan and what was released.

The service, a verification of what it has stored, and a fake of it say the same of one release.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from service.arrays import Integers
from service.core.charge import rho_of_units
from service.core.laws import Law
from service.query.asking import COVERAGE_WORDS, countable_norm, coverage_certified, released_words, warnings_of
from service.query.stated_noise import Numbers, StatedNoise, in_query_units, stated_noise, with_noise


class Shown(Protocol):
    """The facts that an answer states of its query and that are not in the ledger: the shown part of a plan."""

    @property
    def table(self) -> str:
        """The table that was asked."""

    @property
    def labels(self) -> Sequence[Mapping[str, object]]:
        """One object for each coordinate."""

    @property
    def axes(self) -> Sequence[Mapping[str, object]]:
        """The order of the coordinates."""

    @property
    def l2_clip(self) -> float:
        """The norm in query units that no individual's vector exceeds."""

    @property
    def shortens(self) -> bool:
        """Tell whether the rule is clip."""

    @property
    def notes(self) -> Sequence[str]:
        """A sentence on each bound by which an individual may count for less."""


class ReleasedEntry(Protocol):
    """A release as the ledger has it, as far as it is public."""

    @property
    def query_id(self) -> UUID:
        """The id of the query."""

    @property
    def seq(self) -> int:
        """The sequence of its entry."""

    @property
    def epoch(self) -> int:
        """The public epoch."""

    @property
    def asked_at(self) -> datetime:
        """The whole second of its arrival: any later clock would show how long the evaluation took."""

    @property
    def worst_case_units(self) -> int:
        """The public worst case."""

    @property
    def worst_case_total_units(self) -> int:
        """The sum of the worst cases of all queries up to this one."""

    @property
    def dimension(self) -> int:
        """How many numbers there are."""

    @property
    def grid_log2(self) -> int:
        """The grid as a power of two."""

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
    """The noise, the price and the coverage of a query as they are stated, before and after it is answered."""

    noise: StatedNoise
    worst_case_rho: str
    worst_case_share: float | None
    largest_countable_norm: Numbers
    is_certified: bool
    coverage_words: str
    warnings: list[str]


def promise_of(
    shown: Shown,
    law: Law,
    *,
    grid_log2: int,
    item_sigmas: tuple[float, ...],
    worst_case_units: int,
    worst_cases: Iterable[int],
    budget_units: int,
    floor_units: int,
) -> StatedPromise:
    """The promise of a query; `worst_cases` are those of all before it and its own, or their sum, in units."""
    noise = stated_noise(law, grid_log2=grid_log2, sigmas=item_sigmas)
    norm = countable_norm(law, grid_log2, l2_clip=shown.l2_clip, floor_units=floor_units)
    is_certified = coverage_certified(worst_cases, limit_floor_units=floor_units)
    return StatedPromise(
        noise=noise,
        worst_case_rho=str(rho_of_units(worst_case_units)),
        worst_case_share=worst_case_units / budget_units if budget_units else None,
        largest_countable_norm=noise.of_steps(norm) if item_sigmas else norm,
        is_certified=is_certified,
        coverage_words=COVERAGE_WORDS[is_certified],
        warnings=warnings_of(shown.l2_clip, norm=norm, is_by_item=bool(item_sigmas), shortens=shown.shortens),
    )


def answer_of(
    shown: Shown, released: ReleasedEntry, *, budget_units: int, floor_units: int, reused: bool
) -> dict[str, Any]:
    """The answer as a JSON object, whose numbers are exact multiples of the grid: `values` is an array.

    `budget_units` and `floor_units` are the public limits that its promises refer to.
    """
    law, item_sigmas, axes = released.law, released.item_sigmas, shown.axes
    promise = promise_of(
        shown,
        law,
        grid_log2=released.grid_log2,
        item_sigmas=item_sigmas,
        worst_case_units=released.worst_case_units,
        worst_cases=[released.worst_case_total_units],
        budget_units=budget_units,
        floor_units=floor_units,
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
    if noise.scale is not None:
        answer |= {"mechanism": law.word, "scale": noise.scale}
    return answer | ({"tick": law.tick} if law.tick else {})
