"""The answer to a query as JSON bytes: what is committed, what leaves, and what a verification makes again."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import orjson
from numpy.typing import NDArray

from service.accounting.coverage import coverage_certified, largest_countable_norm
from service.core.units import rho_of_units
from service.query.precision import half_width_95
from service.workflows.model.ledger_entry import PublicEntry
from service.workflows.model.rows import DatasetRecord


class Stated(Protocol):
    """The facts that an answer states of its query and that are not in the ledger: the shown part of a plan."""

    @property
    def labels(self) -> Sequence[Mapping[str, object]]:
        """One object for each coordinate."""

    @property
    def axes(self) -> Sequence[Mapping[str, object]]:
        """The order of the coordinates."""

    @property
    def l2_clip(self) -> float:
        """The norm in query units that no individual's vector exceeds."""


def document(plan: Stated, entry: PublicEntry, record: DatasetRecord, *, reused: bool) -> bytes:
    """The answer as JSON bytes; `record` gives the public limits that its promises refer to.

    `released_at` is the whole second of arrival: any later clock would show how long the evaluation took. Values are
    exact multiples of the grid: integers on an integral grid, doubles otherwise.
    """
    answer_fields: Mapping[str, object] = {
        "id": str(entry.query_id),
        "sequence": entry.seq,
        "values": scaled(entry.steps(), entry.grid_log2),
        "labels": plan.labels,
        "axes": plan.axes,
        "sigma": entry.sigma,
        "grid": entry.grid,
        "dimension": entry.dimension,
        "half_width_95": half_width_95(sigma=entry.sigma, grid_log2=entry.grid_log2),
        "worst_case_rho": str(rho_of_units(entry.worst_case_units)),
        "coverage_certified": coverage_certified(
            [entry.worst_case_total_units], limit_floor_units=record.limit_floor_units
        ),
        "reused": reused,
        "epoch": entry.epoch,
        "released_at": entry.asked_at.isoformat(),
        "worst_case_share": share_of_budget(entry.worst_case_units, record),
        "largest_countable_norm": largest_countable_norm(entry.sigma, record.limit_floor_units),
        "warnings": warnings_of(plan.l2_clip, entry.sigma, record),
    }
    return orjson.dumps(answer_fields, option=orjson.OPT_SERIALIZE_NUMPY)


def share_of_budget(worst_case_units: int, record: DatasetRecord) -> float | None:
    """The worst case as a share of the dataset's budget; None for a budget of zero."""
    return worst_case_units / record.budget_units if record.budget_units else None


def warnings_of(l2_clip: float, sigma: float, record: DatasetRecord) -> list[str]:
    """Warnings about a query, from public numbers alone."""
    norm = largest_countable_norm(sigma, record.limit_floor_units)
    if l2_clip <= norm:
        return []
    warning = (
        f"A vector longer than {norm:.6g} cannot be paid for from the smallest limit of this dataset, and the clip is"
        f" {l2_clip:.6g}: individuals with longer vectors are left out. A larger sigma or a smaller l2_clip keeps them."
    )
    return [warning]


def scaled(steps: NDArray[np.int64], grid_log2: int) -> NDArray[np.int64] | NDArray[np.float64]:
    """Grid steps in query units; exact while |steps| < 2^53, which post-processing may round beyond."""
    return steps if grid_log2 == 0 else np.ldexp(steps.astype(np.float64), grid_log2)
