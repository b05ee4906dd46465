"""The fake service behind its HTTP: its analysts and releases, and the handlers of the routes for analysts."""

import json
import math
import random
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._coordinates import by_coordinate
from sparing._rooms.fake import (
    Gaussian,
    Plan,
    Query,
    QueryProblem,
    answer_of,
    in_words,
    notes_of,
    promise_of,
    rho_of_units,
    shown_of,
)
from sparing._testing_dataset import FakeDataset, Release
from sparing._testing_http import (
    Refused,
    checked_key,
    cursor_at,
    cursor_of,
    document_of,
    entries_in,
    invalid,
    invalid_query,
    limit_of,
    name_in,
    unknown_dataset,
)
from sparing._testing_parameters import KeptParameters

START = datetime(2026, 1, 1, tzinfo=UTC)

Values = float | Sequence[float]
Answering = Callable[[Mapping[str, Any]], Values | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """An answer that a test has registered, in query units."""

    values: Values
    sigma: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """The reply that was given under an idempotency key, and its request."""

    request: tuple[str, bool]
    body: dict[str, Any]
    release: Release
    dataset: str
    at: datetime


@dataclass(slots=True, kw_only=True)
class Analyst:
    """An analyst; `replies` has the replies by idempotency key, in the order in which they were first sent."""

    dataset: str | None = None
    allowance_units: int | None = None
    spent_units: dict[str, int] = field(default_factory=dict)
    replies: dict[str, _Stored] = field(default_factory=dict)
    parameters: KeptParameters = field(default_factory=KeptParameters)

    def left_rho(self, dataset: str) -> str | None:
        """The rest of the allowance on a dataset, in rho; None if no allowance was set."""
        if self.allowance_units is None:
            return None
        return _rho_text(max(self.allowance_units - self.spent_units.get(dataset, 0), 0))


@dataclass(slots=True, kw_only=True)
class Service:
    """The state of the fake service, with a method for each route. Threads must not use it at the same time."""

    has_noise: bool
    rng: random.Random
    datasets: dict[str, FakeDataset] = field(default_factory=dict)
    analysts: dict[str, Analyst] = field(default_factory=dict)
    registered: deque[Registered] = field(default_factory=deque)
    answering: Answering | None = None
    _answered: int = 0

    def list_datasets(self, analyst: Analyst, params: Mapping[str, str]) -> dict[str, Any]:
        """`GET /datasets`: the datasets by name, a page at a time."""
        limit, after = limit_of(params.get("limit")), name_in(params.get("cursor"))
        names = [name for name in sorted(self.datasets) if analyst.dataset in (None, name) and name > after]
        rows = [self.datasets[name].row() for name in names[:limit]]
        return {"items": rows, "next": cursor_at(names[limit - 1]) if names[limit:] else None}

    def dataset(self, analyst: Analyst, name: str) -> FakeDataset:
        """The dataset of this name. Raises Refused if there is none or the analyst may not query it."""
        names = sorted(self.datasets) if analyst.dataset is None else [analyst.dataset]
        if name not in self.datasets or name not in names:
            raise unknown_dataset(name, names)
        return self.datasets[name]

    def ask(self, analyst: Analyst, name: str, key: str | None, content: bytes) -> dict[str, Any]:
        """`POST /datasets/{dataset}/queries`."""
        return self._answer(analyst, name, checked_key(key), content)

    def monitor(self, analyst: Analyst, name: str) -> dict[str, Any]:
        """`GET /datasets/{dataset}/monitor`."""
        dataset = self.dataset(analyst, name)
        facts = dataset.monitor_facts()
        if facts is None:
            raise Refused("not-found", "This dataset has no monitor.")
        return facts | {"values": list(dataset.ticks)}

    def cancel(self, analyst: Analyst, name: str, key: str | None) -> object:
        """`DELETE /datasets/{dataset}/queries`. Raises Refused, as every query is answered at once and none waits."""
        checked_key(key)
        self.dataset(analyst, name)
        raise Refused("query-not-waiting")

    def preview(self, analyst: Analyst, name: str, content: bytes) -> dict[str, Any]:
        """`POST /datasets/{dataset}/queries/preview`."""
        dataset, plan, _ = self._planned(analyst, name, content)
        return _preview_of(plan, dataset, analyst.left_rho(name))

    def ask_many(self, analyst: Analyst, name: str, content: bytes, request_id: str) -> dict[str, Any]:
        """`POST /datasets/{dataset}/queries/batch`: for each entry an answer or a problem document."""
        entries = entries_in(content)
        self.dataset(analyst, name)
        answers = []
        for entry in entries:
            try:
                key, query = checked_key(entry.get("idempotency_key")), json.dumps(entry["query"]).encode()
                answers.append(self._answer(analyst, name, key, query))
            except Refused as refusal:
                answers.append(document_of(refusal, request_id))
        return {"answers": answers}

    def release(self, analyst: Analyst, query: str) -> dict[str, Any]:
        """`GET /queries/{query}`."""
        for stored in analyst.replies.values():
            if str(stored.release.query_id) == query:
                return stored.body
        raise Refused("not-found")

    def releases(self, analyst: Analyst, params: Mapping[str, str]) -> dict[str, Any]:
        """`GET /queries`: the releases, newest first, a page at a time. A cursor is the number of older releases."""
        limit, before = limit_of(params.get("limit")), cursor_of(params.get("cursor"))
        stored = list(analyst.replies.values())[:before]
        shown = stored[::-1][:limit]
        left = len(stored) - len(shown)
        rows = [_release_row_of(each.release, each.dataset, each.at) for each in shown]
        return {"items": rows, "next": f"p{left}" if left else None}

    def allowances(self, analyst: Analyst) -> list[dict[str, Any]]:
        """`GET /allowances`."""
        allowed = None if analyst.allowance_units is None else _rho_text(analyst.allowance_units)
        return [
            {
                "dataset": name,
                "allowance_rho": allowed,
                "spent_rho": _rho_text(analyst.spent_units.get(name, 0)),
                "left_rho": analyst.left_rho(name),
            }
            for name in sorted(self.datasets)
            if analyst.dataset in (None, name)
        ]

    def _planned(self, analyst: Analyst, name: str, content: bytes) -> tuple[FakeDataset, Plan, Query]:
        """The queried dataset, the plan of the query in a body, and the query. Raises Refused for a wrong query."""
        try:
            query = analyst.parameters.query_in(name, content)
            dataset = self.dataset(analyst, name)
            return dataset, dataset.plan(query), query
        except QueryProblem as problem:
            raise invalid_query(problem) from None

    def _answer(self, analyst: Analyst, name: str, key: str, content: bytes) -> dict[str, Any]:
        dataset, plan, query = self._planned(analyst, name, content)
        request, at = (plan.query_hash, plan.reuse), START + timedelta(seconds=self._answered)
        known = analyst.replies.get(key)
        if known is not None and known.request != request:
            text = Refused("idempotency-key-reused").title
            raise Refused("idempotency-key-reused", errors=[("Idempotency-Key", text)])
        if known is None:
            reusable = dataset.released.get(plan.query_hash) if plan.reuse else None
            release = reusable or self._release(analyst, dataset, plan, at)
            body = _answer_of(release, dataset, reused=reusable is not None)
            known = _Stored(request=request, body=body, release=release, dataset=name, at=at)
            analyst.replies[key] = known
            analyst.parameters.keep(name, query)
            self._answered += 1
        return known.body

    def _release(self, analyst: Analyst, dataset: FakeDataset, plan: Plan, at: datetime) -> Release:
        refuse_no_tick(dataset, plan)
        plan, steps = self._steps(analyst, dataset, plan)
        if dataset.is_tick(plan):
            dataset.ticks.append(math.ldexp(steps[0], plan.scale.grid_log2))
        units = plan.scale.worst_case_units
        analyst.spent_units[dataset.name] = analyst.spent_units.get(dataset.name, 0) + units
        dataset.sequence += 1
        dataset.worst_case_units += units
        release = Release(
            query_id=uuid.UUID(int=self.rng.getrandbits(128), version=4),
            seq=dataset.sequence,
            plan=plan,
            values=tuple(steps),
            worst_case_total_units=dataset.worst_case_units,
            epoch=dataset.epoch,
            asked_at=at,
            tick=len(dataset.ticks) if dataset.is_tick(plan) else 0,
        )
        dataset.released[plan.query_hash] = release
        return release

    def _steps(self, analyst: Analyst, dataset: FakeDataset, plan: Plan) -> tuple[Plan, list[int]]:
        """The plan with the sigma that a fresh answer states, and the numbers of this answer in grid steps."""
        if self.registered and self.registered[0].sigma is not None:
            plan = _with_sigma(plan, self.registered[0].sigma)
        _refuse_above_allowance(analyst, dataset, plan)
        if self.registered:
            return plan, _steps_of(self.registered.popleft().values, plan)
        values = None if self.answering is None else self.answering(json.loads(plan.canonical))
        if values is not None:
            return plan, _steps_of(values, plan)
        if not dataset.has_rows:
            raise Refused(
                "not-in-fake",
                f"The dataset {dataset.name!r} has no rows and no answer is registered: give rows to add_dataset, or"
                " call answer() before the query.",
            )
        return plan, dataset.counted(plan, self._words if self.has_noise else None)

    def _words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(self.rng.randbytes(8 * count), dtype="<u8").astype(np.uint64)


def _with_sigma(plan: Plan, sigma: float) -> Plan:
    """The plan as if the query had asked for this sigma, in query units. Raises ValueError if it has not one sigma."""
    if plan.scale.sigmas or not isinstance(plan.scale.law, Gaussian):
        raise ValueError("the query has a sigma for each item, or a scale; register its answer without one")
    law = replace(plan.scale.law, size_steps=math.ldexp(sigma, -plan.scale.grid_log2))
    units = law.charge(plan.scale.charged_squared_steps)
    return replace(plan, scale=replace(plan.scale, law=law, worst_case_units=units))


def refuse_no_tick(dataset: FakeDataset, plan: Plan) -> None:
    """Raise Refused for a tick beyond the last one."""
    if dataset.monitor is not None and dataset.is_tick(plan) and len(dataset.ticks) >= dataset.monitor.ticks:
        raise invalid("select[0].exhausted", f"the monitor's {dataset.monitor.ticks} ticks are used up")


def _refuse_above_allowance(analyst: Analyst, dataset: FakeDataset, plan: Plan) -> None:
    spent, cost = analyst.spent_units.get(dataset.name, 0), plan.scale.worst_case_units
    if analyst.allowance_units is not None and spent + cost > analyst.allowance_units:
        left = _rho_text(analyst.allowance_units - spent)
        raise Refused(
            "allowance-exceeded", f"The query may cost rho {_rho_text(cost)}; rho {left} of your allowance is left."
        )


def _steps_of(values: Values, plan: Plan) -> list[int]:
    """Registered values in grid steps. Raises ValueError for wrong values, as this is a mistake in the test."""
    listed = [values] if isinstance(values, int | float) else list(values)
    if len(listed) != plan.dimension:
        raise ValueError(f"the registered answer has {len(listed)} values, and the query {plan.dimension}")
    grids = by_coordinate(plan.noise.grid, plan.answered.axes(has_places=bool(plan.scale.sigmas)), plan.dimension)
    steps = [round(value / grid) for value, grid in zip(listed, grids, strict=True)]
    if plan.noise.grid == 1 and steps != listed:
        raise ValueError(f"the query's grid is 1, so that its answer holds whole numbers, not {listed}")
    return steps


def _answer_of(release: Release, dataset: FakeDataset, *, reused: bool) -> dict[str, Any]:
    said = answer_of(shown_of(release.plan), release, dataset, reused=reused)
    return said | {"values": said["values"].tolist()}


def _epsilon_of(dataset: FakeDataset, units: int) -> float | None:
    delta = dataset.guarantee["delta"]
    if delta is None and dataset.accounting.has_delta:
        return None
    return dataset.accounting.epsilon_of_units(units, Decimal(delta or 0))


def _preview_of(plan: Plan, dataset: FakeDataset, allowance_left_rho: str | None) -> dict[str, Any]:
    """Everything public about a query. Its public cost is made up, as no real machine answers."""
    units, canonical = plan.scale.worst_case_units, json.loads(plan.canonical)
    promise = promise_of(plan, dataset, worst_cases_before=dataset.worst_case_units)
    noise = promise.noise
    return {
        "dimension": plan.dimension,
        "grid": noise.grid,
        "sigma": noise.sigma,
        "scale": noise.scale,
        "half_width_95": noise.half_width_95,
        "l2_clip": plan.scale.bounds if plan.scale.sigmas else plan.scale.l2_charged,
        "worst_case_rho": promise.worst_case_rho,
        "worst_case_share": promise.worst_case_share,
        "worst_case_epsilon": _epsilon_of(dataset, units),
        "largest_countable_norm": promise.largest_countable_norm,
        "warnings": promise.warnings,
        "allowance_left_rho": allowance_left_rho,
        "coverage_certified": promise.is_certified,
        "coverage_words": promise.coverage_words,
        "certified_left_share": promise.certified_left_share,
        "notes": notes_of(plan),
        "estimates": [item.title for item in plan.layout.estimated],
        "canonical": canonical,
        "words": in_words(canonical),
        "query_hash": plan.query_hash,
        "public_cost": {"time_ms": 1.0, "memory_bytes": 2**20, "delay_ms": 0.0},
    }


def _release_row_of(release: Release, dataset: str, at: datetime) -> dict[str, Any]:
    """One of an analyst's own releases in a listing."""
    plan, canonical = release.plan, json.loads(release.plan.canonical)
    return {
        "id": str(release.query_id),
        "dataset": dataset,
        "sequence": release.seq,
        "query": canonical,
        "words": in_words(canonical),
        "sigma": plan.noise.sigma,
        "dimension": plan.dimension,
        "worst_case_rho": _rho_text(plan.scale.worst_case_units),
        "released_at": at.isoformat().replace("+00:00", "Z"),
        "epoch": release.epoch,
    }


def _rho_text(units: int) -> str:
    return str(rho_of_units(units))
