"""Blocks of a query as lists, with the index used always or never."""

from typing import Any

import numpy as np
import pytest

from service.engine import selection
from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.engine.prepared import prepared
from service.query.plan import Plan
from tests.core.contributions import as_list

ALWAYS, NEVER = 0, 2**40


def answered(plan: Plan, memory: DatasetMemory, *, scan_worth: int) -> dict[str, list[Any]]:
    """The individuals with their norms and entries, through the index or by scan; there is at least one block."""
    if scan_worth == ALWAYS:
        prepared(plan, memory)  # asks for the indexes
        memory.prepare()
        assert memory.take_prepared()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "SCAN_WORTH", scan_worth)
        blocks = [as_list(block) for block in contributions(plan, memory)]
    assert blocks
    found: dict[str, list[Any]] = {"slots": [], "norms_squared": [], "owners": [], "coordinates": [], "values": []}
    for block in blocks:
        owners = np.arange(block.values.size) if block.owners is None else block.owners
        found["owners"] += (owners + len(found["slots"])).tolist()
        found["slots"] += block.touched.slots().tolist()
        for name in ("norms_squared", "coordinates", "values"):
            found[name] += getattr(block, name).tolist()
    return found
