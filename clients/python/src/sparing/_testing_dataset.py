"""A dataset of the fake service: its public facts, its records and accounts, and its released answers."""

import json
import uuid
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from sparing._models import Dataset, KeyComparison
from sparing._rooms.fake import (
    DIGEST,
    GAUSSIAN,
    SALT_BYTES,
    Accounting,
    DatasetMemory,
    Entropy,
    EventsTable,
    Key,
    Law,
    Monitor,
    Plan,
    Query,
    Schema,
    TickCounts,
    accounting_of,
    answer,
    answerable,
    coefficients,
    contributions,
    key_digests,
    monitor_of,
    reduced,
    rho_of_units,
    units_down,
)
from sparing._testing_rows import CodedRows, coded
from sparing._wire import json_of

Number = int | float | Decimal | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A released answer in grid steps, with the totals that its ledger entry would have."""

    query_id: uuid.UUID
    seq: int
    plan: Plan
    values: tuple[int, ...]
    worst_case_total_units: int
    epoch: int
    asked_at: datetime
    tick: int = 0

    @property
    def worst_case_units(self) -> int:
        """The public worst case of the query, in units."""
        return self.plan.scale.worst_case_units

    @property
    def dimension(self) -> int:
        """The number of coordinates."""
        return self.plan.dimension

    @property
    def grid_log2(self) -> int:
        """The grid as a power of two."""
        return self.plan.scale.grid_log2

    @property
    def law(self) -> Law:
        """The law of the noise; for a tick, the law with the tick's number."""
        return self.plan.scale.law.numbered(self.tick)

    @property
    def item_sigmas(self) -> tuple[float, ...]:
        """The sigma of each select item; empty if all items share one sigma."""
        return self.plan.scale.sigmas

    def steps(self) -> NDArray[np.int64]:
        """The released integers (dimension,)."""
        return np.array(self.values, dtype=np.int64)


@dataclass(slots=True, kw_only=True)
class FakeDataset:
    """One dataset; `released` has the answers of the present epoch by the hash of their query."""

    name: str
    schema: Schema
    guarantee: Mapping[str, str | None]
    budget_units: int
    limit_floor_units: int
    capacity: int
    accounting: Accounting = GAUSSIAN
    keys: KeyComparison = "exact"
    monitor: Monitor | None = None
    version: int = 1
    epoch: int = 1
    sequence: int = 0
    worst_case_units: int = 0
    released: dict[str, Release] = field(default_factory=dict)
    ticks: list[float] = field(default_factory=list)  # of the monitor
    _memory: DatasetMemory = field(init=False)
    _ticks: TickCounts | None = field(init=False)
    _slots: dict[Key, int] = field(default_factory=dict)  # of each individual
    _held: dict[str, Counter[Key]] = field(default_factory=lambda: defaultdict(Counter))  # rows by table and key

    def __post_init__(self) -> None:
        self._memory = DatasetMemory(self.schema)
        self._ticks = None
        if self.monitor is not None:
            self._ticks = TickCounts(coefficients(self.monitor.ticks), self.monitor.threshold_units)

    @property
    def floor_units(self) -> int:
        """The smallest limit that is available to queries, without the monitor's reserve."""
        return self.limit_floor_units - (0 if self.monitor is None else self.monitor.reserve_units)

    def is_tick(self, plan: Plan) -> bool:
        """Tell whether a query is for a tick."""
        return plan.scale.law.is_free

    def monitor_facts(self) -> dict[str, Any] | None:
        """The monitor as the service describes it; None without a monitor."""
        if self.monitor is None:
            return None
        asked = len(self.ticks)
        facts = {"sigma": self.monitor.sigma, "asked": asked, "ended": asked >= self.monitor.ticks}
        return self.monitor.document | facts

    @property
    def has_rows(self) -> bool:
        """Tell whether any table has a row."""
        return bool(self._slots)

    def document(self) -> dict[str, Any]:
        """The public facts, as the service describes one dataset."""
        return self._facts() | {"tables": self.schema.model_dump(mode="json")}

    def row(self) -> dict[str, Any]:
        """The public facts, as the service lists a dataset."""
        return self._facts() | {"table_names": list(self.schema.tables)}

    def _facts(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "guarantee": dict(self.guarantee),
            "budget_rho": str(rho_of_units(self.budget_units)),
            "budget_units": self.budget_units,
            "accounting": self.accounting.document,
            "monitor": self.monitor_facts(),
            "unit": self.accounting.unit,
            "mu": self.accounting.mu_of_units(self.budget_units),
            "limit_floor_rho": str(rho_of_units(self.limit_floor_units)),
            "capacity": self.capacity,
            "rule": "skip",
            "keys": self.keys,
            "epoch": self.epoch,
            "version": self.version,
            "archived": False,
        }

    def add(self, table: str, rows: object) -> None:
        """Add rows, all or none. Raises ValueError, which names the table, and a wrong row with its column."""
        if table not in self.schema.tables:
            raise ValueError(f"there is no table {table!r}; the dataset has {', '.join(self.schema.tables)}")
        declared = self.schema.tables[table]
        found = coded(table, declared, rows, self.keys)
        if isinstance(declared, EventsTable):
            self._add_events(table, declared, found)
        else:
            self._add_individuals(table, found)

    def plan(self, query: Query) -> Plan:
        """The query, compiled for this dataset. Raises QueryProblem for a wrong query."""
        return answerable(
            query,
            self.schema,
            capacity=self.capacity,
            budget_units=self.budget_units,
            floor_units=self.floor_units,
            pricing=self.accounting,
            monitor=self.monitor,
        )

    def counted(self, plan: Plan, entropy: Entropy | None) -> list[int]:
        """The answer from the rows, in grid steps; every active individual is charged.

        The noise is drawn from `entropy`; without entropy there is no noise.
        """
        noise = np.zeros(plan.dimension, dtype=np.int64)
        if entropy is not None:
            noise = plan.scale.law.draw(plan.dimension, entropy)
        if self._ticks is not None and self.is_tick(plan):
            self._ticks.grow(self._memory.accounts.size)
            tick: list[int] = self._ticks.release(self._memory, len(self.ticks) + 1, noise).values.tolist()
            return tick
        blocks, added_to = contributions(plan, self._memory), noise
        if plan.reduce is not None:
            added_to = np.zeros(plan.terms.dimension, dtype=np.int64)
        values = answer(blocks, self._memory.accounts, plan.terms, noise=added_to).values
        if plan.reduce is not None:
            values = noise + reduced(values, plan.reduce)
        steps: list[int] = values.tolist()
        return steps

    def _add_individuals(self, table: str, rows: CodedRows) -> None:
        known = set(self._slots)
        for number, (key, limit) in enumerate(zip(rows.keys, rows.limits.tolist(), strict=True), start=1):
            if key in known:
                raise ValueError(f"{table}, row {number}: {key!r} has a row already")
            if limit > self.budget_units or 0 <= limit < self.limit_floor_units:
                raise ValueError(f"{table}, row {number}: the limit is not between limit_floor_rho and the budget")
            known.add(key)
        self._join(rows)

    def _add_events(self, table: str, declared: EventsTable, rows: CodedRows) -> None:
        if declared.unknown_individuals == "drop":
            rows = rows.of(self._slots)
        held = self._held[table].copy()
        new: dict[Key, None] = {}
        for number, key in enumerate(rows.keys, start=1):
            if key not in self._slots:
                if declared.unknown_individuals == "reject":
                    raise ValueError(
                        f"{table}, row {number}: there is no individual {key!r}; add the table of individuals first"
                    )
                new[key] = None
            held[key] += 1
            if held[key] > declared.rows_per_individual:
                raise ValueError(f"{table}, row {number}: {key!r} has more than {declared.rows_per_individual} rows")
        nulls = self._memory.null_codes(self.schema.individuals_name, len(new))
        self._join(CodedRows(keys=list(new), codes=nulls, limits=np.full(len(new), -1, dtype=np.int64)))
        slots = np.array([self._slots[key] for key in rows.keys], dtype=np.int64)
        self._memory.add_events(table, slots, rows.codes)
        self._held[table] = held

    def _join(self, rows: CodedRows) -> None:
        """Give new individuals their slots, records and accounts."""
        first, end = len(self._slots), len(self._slots) + len(rows.keys)
        if end > self.capacity:
            raise ValueError(f"the dataset's capacity is {self.capacity} individuals")
        limits = np.where(rows.limits < 0, self.budget_units, rows.limits)
        limits = np.maximum(limits - (self.limit_floor_units - self.floor_units), 0)
        codes = {**rows.codes, DIGEST: key_digests(bytes(SALT_BYTES), rows.keys)}
        self._memory.add_individuals(np.arange(first, end, dtype=np.int64), codes, limits)
        self._slots.update(zip(rows.keys, range(first, end), strict=True))


def dataset_of(dataset: Dataset) -> FakeDataset:
    """A dataset without rows, from the description by a real service. Raises ValueError for an unreadable schema."""
    schema = _schema_of(dataset.tables)
    return FakeDataset(
        name=dataset.name,
        schema=schema,
        guarantee={name: _text(getattr(dataset.guarantee, name)) for name in ("epsilon", "delta")},
        budget_units=dataset.budget_units,
        limit_floor_units=_floor(schema, dataset.limit_floor_rho, dataset.budget_units),
        capacity=dataset.capacity,
        accounting=accounting_of(dataset.accounting),
        keys=cast("KeyComparison", dataset.keys),
        monitor=_monitor_of(None if dataset.monitor is None else asdict(dataset.monitor), dataset.budget_units),
        version=dataset.version,
        epoch=dataset.epoch or 1,
    )


def registered_dataset(
    name: str,
    tables: Mapping[str, object],
    capacity: int,
    limit_floor_rho: Number | None,
    accounting: Accounting,
    keys: KeyComparison,
    monitor: Mapping[str, object] | None,
    guarantee: Mapping[str, Number],
) -> FakeDataset:
    """A dataset without rows, as a curator registers it. Raises ValueError for a wrong schema or guarantee."""
    schema = _schema_of(tables)
    if accounting.has_delta and guarantee.keys() not in ({"rho"}, {"epsilon", "delta"}, set[str]()):
        raise ValueError("give epsilon and delta, or rho")
    if not accounting.has_delta and guarantee.keys() != {"epsilon"}:
        raise ValueError("the guarantee of pure differential privacy is epsilon alone")
    if "epsilon" in guarantee:
        epsilon, delta = (Decimal(str(guarantee.get(name, 0))) for name in ("epsilon", "delta"))
        units = accounting.budget_units(epsilon=epsilon, delta=delta)
    else:
        units = units_of(guarantee.get("rho", 1))
    if units < 1:
        raise ValueError("the budget is smaller than 2^-40 rho")
    if monitor is not None and monitor.keys() != {"rho", "ticks", "share"}:
        raise ValueError("a monitor has rho, ticks and share")
    return FakeDataset(
        name=name,
        schema=schema,
        guarantee={each: _text(guarantee.get(each)) for each in ("epsilon", "delta")},
        budget_units=units,
        limit_floor_units=_floor(schema, limit_floor_rho, units),
        capacity=capacity,
        accounting=accounting,
        keys=keys,
        monitor=_monitor_of(monitor, units),
    )


def stated_accounting(stated: str | Mapping[str, object]) -> Accounting:
    """The accounting that a registration states: a word, or a kind with its order and conversion. Raises ValueError."""
    if isinstance(stated, str) or stated.get("kind") == "pure":
        return accounting_of(stated)
    return accounting_of({"conversion": "optimal", **stated})


def _monitor_of(stated: Mapping[str, object] | None, budget_units: int) -> Monitor | None:
    """The monitor that is stated. Raises ValueError."""
    if stated is None:
        return None
    return monitor_of({**stated, "rho": str(stated["rho"])}, budget_units=budget_units)


def units_of(rho: Number) -> int:
    """A rho in units of 2^-40, rounded down. Raises ValueError if the rho is negative or above 2^21."""
    return units_down(Fraction(str(rho)))


def _schema_of(tables: Mapping[str, object]) -> Schema:
    """The schema of a registration's `tables`. Raises ValueError naming the table and column."""
    try:
        return Schema.model_validate(json.loads(json_of(tables)))
    except ValidationError as error:
        [first, *_] = error.errors()
        raise ValueError(f"{'.'.join(map(str, ('tables', *first['loc'])))}: {first['msg']}") from None


def _floor(schema: Schema, stated: Number | None, budget: int) -> int:
    if stated is not None:
        return units_of(stated)
    return 0 if schema.has_budget_column else budget


def _text(number: object) -> str | None:
    return None if number is None else str(Decimal(str(number)))
