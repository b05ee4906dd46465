"""The document of a registered dataset, as the service replies with it."""

from collections.abc import Mapping
from typing import Any


def registered(tables: Mapping[str, object]) -> dict[str, Any]:
    """A dataset `d` of these tables."""
    return {
        "name": "d",
        "guarantee": {"epsilon": None, "delta": None},
        "budget_rho": "1",
        "budget_units": 1,
        "mu": 1.0,
        "limit_floor_rho": "1",
        "capacity": 9,
        "rule": "skip",
        "epoch": 1,
        "tables": tables,
    }
