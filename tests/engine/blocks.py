"""Blocks of a query as lists, with the index used always or never."""

from typing import Any

import pytest

from service.core.contribution import Contributions
from service.engine import access_paths
from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.query.plan import Plan

ALWAYS, NEVER = 0, 2**40


def answered(plan: Plan, memory: DatasetMemory, *, scan_worth: int) -> list[dict[str, Any]]:
    """Every block with its arrays as lists, through the index or by scan."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(access_paths, "SCAN_WORTH", scan_worth)
        return [_listed(block) for block in contributions(plan, memory)]


def _listed(block: Contributions) -> dict[str, Any]:
    arrays = ("slots", "norms_squared", "owners", "coordinates", "values")
    found = {name: getattr(block, name) for name in arrays}
    return {name: None if array is None else array.tolist() for name, array in found.items()}
