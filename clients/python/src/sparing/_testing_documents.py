"""The documents that the fake service sends: answers, previews and listings, with the members of the real ones."""

import math
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from sparing._testing_dataset import FakeDataset, Release, epsilon_of_units
from sparing._testing_plan import Plan
from sparing._testing_scale import rho_text
from sparing._width import half_width

__all__ = ["answer_of", "in_words", "preview_of", "release_row_of", "scaled"]


def answer_of(release: Release, dataset: FakeDataset, *, reused: bool) -> dict[str, Any]:
    """The answer to a query."""
    plan, scale = release.plan, release.plan.scale
    return {
        "id": release.id,
        "sequence": release.sequence,
        "values": [scaled(steps, scale.grid_log2) for steps in release.steps],
        "labels": plan.labels(),
        "axes": plan.axes(),
        "sigma": scale.sigma,
        "grid": scale.grid,
        "dimension": plan.dimension,
        "half_width_95": half_width(sigma=scale.sigma, grid=scale.grid),
        "worst_case_rho": rho_text(scale.worst_case_units),
        "coverage_certified": release.worst_case_total_units <= dataset.limit_floor_units,
        "reused": reused,
        "epoch": release.epoch,
        "released_at": release.at.isoformat(),
        "worst_case_share": dataset.share_of(scale.worst_case_units),
        "largest_countable_norm": dataset.largest_countable_norm(scale.sigma),
        "warnings": dataset.warnings(scale.l2_clip, scale.sigma),
    }


def preview_of(plan: Plan, dataset: FakeDataset, allowance_left_rho: str | None) -> dict[str, Any]:
    """Everything public about a query. The public cost is made up: it is that of no machine."""
    scale, delta = plan.scale, dataset.guarantee["delta"]
    units = scale.worst_case_units
    return {
        "dimension": plan.dimension,
        "grid": scale.grid,
        "sigma": scale.sigma,
        "half_width_95": half_width(sigma=scale.sigma, grid=scale.grid),
        "l2_clip": scale.l2_clip,
        "worst_case_rho": rho_text(units),
        "worst_case_share": dataset.share_of(units),
        "worst_case_epsilon": None if delta is None else epsilon_of_units(units, Decimal(delta)),
        "largest_countable_norm": dataset.largest_countable_norm(scale.sigma),
        "warnings": dataset.warnings(scale.l2_clip, scale.sigma),
        "allowance_left_rho": allowance_left_rho,
        "coverage_certified": dataset.worst_case_units + units <= dataset.limit_floor_units,
        "canonical": plan.query,
        "words": in_words(plan.query),
        "query_hash": plan.query_hash,
        "public_cost": {"time_ms": 1.0, "memory_bytes": 2**20, "delay_ms": 0.0},
    }


def release_row_of(release: Release, dataset: str, at: datetime) -> dict[str, Any]:
    """One of an analyst's own releases in a listing."""
    plan = release.plan
    return {
        "id": release.id,
        "dataset": dataset,
        "sequence": release.sequence,
        "query": plan.query,
        "words": in_words(plan.query),
        "sigma": plan.scale.sigma,
        "dimension": plan.dimension,
        "worst_case_rho": rho_text(plan.scale.worst_case_units),
        "released_at": at.isoformat().replace("+00:00", "Z"),
        "epoch": release.epoch,
    }


def in_words(query: Mapping[str, Any]) -> str:
    """A query in a few words, shorter than those of the service: `count and sum of visits`."""
    kinds = [next(iter(item)) for item in query["select"]]
    return f"{', '.join(dict.fromkeys(kinds))} of {query['from']}"


def scaled(steps: int, grid_log2: int) -> float:
    """Grid steps in query units; whole numbers on grid 1."""
    return steps if grid_log2 == 0 else math.ldexp(steps, grid_log2)
