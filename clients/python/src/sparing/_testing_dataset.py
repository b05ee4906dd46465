"""A dataset of the fake service: its public facts, its rows, and the answers that were released."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sparing._models import Dataset
from sparing._testing_plan import Plan
from sparing._testing_rows import DatasetRows
from sparing._testing_scale import UNITS_PER_RHO, rho_text
from sparing._testing_schema import Schema, schema_of

__all__ = [
    "FakeDataset",
    "Number",
    "Release",
    "budget_units",
    "dataset_of",
    "epsilon_of_units",
    "registered_dataset",
    "units_of",
]

Number = int | float | Decimal | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A released answer in grid steps, with the totals of the dataset when it was released."""

    id: str
    sequence: int
    plan: Plan
    steps: tuple[int, ...]
    worst_case_total_units: int
    epoch: int
    at: datetime


@dataclass(slots=True, kw_only=True)
class FakeDataset:
    """One dataset; `released` has the answers of this epoch by the hash of their query."""

    name: str
    schema: Schema
    guarantee: Mapping[str, str | None]
    budget_units: int
    limit_floor_units: int
    capacity: int
    rows: DatasetRows
    version: int = 1
    epoch: int = 1
    sequence: int = 0
    worst_case_units: int = 0
    released: dict[str, Release] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """The public facts, as the service lists them."""
        rho = Fraction(self.budget_units, UNITS_PER_RHO)
        return {
            "name": self.name,
            "guarantee": dict(self.guarantee),
            "budget_rho": rho_text(self.budget_units),
            "budget_units": self.budget_units,
            "mu": math.nextafter(math.sqrt(2 * rho), math.inf),
            "limit_floor_rho": rho_text(self.limit_floor_units),
            "capacity": self.capacity,
            "rule": "skip",
            "epoch": self.epoch,
            "tables": self.schema.stated,
            "version": self.version,
            "archived": False,
        }

    def share_of(self, units: int) -> float:
        """A charge as a share of the budget."""
        return units / self.budget_units

    def largest_countable_norm(self, sigma: float) -> float:
        """The longest vector that the smallest limit can pay for, in units of `sigma`."""
        return sigma * math.sqrt(2 * self.limit_floor_units / UNITS_PER_RHO)

    def warnings(self, l2_clip: float, sigma: float) -> list[str]:
        """As the service warns of a clip beyond that norm."""
        norm = self.largest_countable_norm(sigma)
        if l2_clip <= norm:
            return []
        warning = (
            f"A vector longer than {norm:.6g} cannot be paid for from the smallest limit of this dataset, and the clip"
            f" is {l2_clip:.6g}: individuals with longer vectors are left out. A larger sigma or a smaller l2_clip"
            " keeps them."
        )
        return [warning]


def dataset_of(dataset: Dataset) -> FakeDataset:
    """A dataset as a real service describes it, without rows. Raises ValueError for a schema that cannot be read."""
    schema, guarantee = schema_of(dataset.tables), dataset.guarantee
    return FakeDataset(
        name=dataset.name,
        schema=schema,
        guarantee={name: _text(getattr(guarantee, name)) for name in ("epsilon", "delta")},
        budget_units=dataset.budget_units,
        limit_floor_units=_floor(schema, dataset.limit_floor_rho, dataset.budget_units),
        capacity=dataset.capacity,
        rows=DatasetRows(schema),
        version=dataset.version,
        epoch=dataset.epoch or 1,
    )


def registered_dataset(
    name: str,
    tables: Mapping[str, object],
    capacity: int,
    limit_floor_rho: Number | None,
    guarantee: Mapping[str, Number],
) -> FakeDataset:
    """A dataset as a curator registers it. Raises ValueError for a wrong schema or guarantee."""
    schema = schema_of(tables)
    if guarantee.keys() not in ({"rho"}, {"epsilon", "delta"}, set[str]()):
        raise ValueError("give epsilon and delta, or rho")
    if "epsilon" in guarantee:
        units = budget_units(Decimal(str(guarantee["epsilon"])), Decimal(str(guarantee["delta"])))
    else:
        units = units_of(guarantee.get("rho", 1))
    if units < 1:
        raise ValueError("the budget is smaller than 2^-40 rho")
    return FakeDataset(
        name=name,
        schema=schema,
        guarantee={each: _text(guarantee.get(each)) for each in ("epsilon", "delta")},
        budget_units=units,
        limit_floor_units=_floor(schema, limit_floor_rho, units),
        capacity=capacity,
        rows=DatasetRows(schema),
    )


def _floor(schema: Schema, stated: Number | None, budget: int) -> int:
    if stated is not None:
        return units_of(stated)
    return 0 if schema.has_limits else budget


def units_of(rho: Number) -> int:
    """A rho in units of 2^-40, rounded down."""
    return math.floor(Fraction(str(rho)) * UNITS_PER_RHO)


def _text(number: object) -> str | None:
    return None if number is None else str(Decimal(str(number)))


def budget_units(epsilon: Decimal, delta: Decimal) -> int:
    """The largest budget at which Gaussian differential privacy gives (epsilon, delta), in units of 2^-40 rho.

    By the curve of Dong, Roth and Su (2022), Corollary 2.13, in doubles. The service certifies it in 100
    digits; the two agree to about nine. Raises ValueError unless epsilon is positive and delta between 0 and 1.
    """
    if not (0 < epsilon < math.inf and 0 < delta < 1):
        raise ValueError(f"epsilon must be positive and delta between 0 and 1, got {epsilon} and {delta}")
    low, high = 0, 2**61
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _delta(float(epsilon), middle) <= float(delta) else (low, middle)
    return low


def epsilon_of_units(units: int, delta: Decimal) -> float:
    """The epsilon of a total charge at this delta, in doubles."""
    wanted = float(delta)
    low, high = 0.0, 1.0
    if _delta(0.0, units) <= wanted:
        return 0.0
    while _delta(high, units) > wanted:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _delta(middle, units) <= wanted else (middle, high)
    return high


def _delta(epsilon: float, units: int) -> float:
    mu = math.sqrt(2 * units / UNITS_PER_RHO)
    if mu == 0:
        return 0.0
    far = _phi(-mu / 2 - epsilon / mu)
    return _phi(mu / 2 - epsilon / mu) - (math.exp(epsilon + math.log(far)) if far > 0 else 0.0)


def _phi(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2
