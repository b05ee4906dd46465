"""The fake service behind its requests: datasets, analysts, releases, and the handlers of the analysts' routes."""

import random
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sparing._testing_dataset import FakeDataset, Release
from sparing._testing_documents import answer_of, preview_of, release_row_of
from sparing._testing_plan import Plan, plan_of
from sparing._testing_problems import Refused, document_of, invalid, not_found, not_in_fake
from sparing._testing_requests import checked_key, cursor_of, entries_in, limit_of, query_of
from sparing._testing_rows import counted_steps
from sparing._testing_scale import rho_text

__all__ = ["Analyst", "Registered", "Service"]

UNCLIPPED_ROWS_MAX = 64
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
    """The reply to an idempotency key."""

    request: tuple[str, bool]
    body: dict[str, Any]
    release: Release
    dataset: str
    at: datetime


@dataclass(slots=True, kw_only=True)
class Analyst:
    """The holder of a key; `replies` are in the order in which they were sent first."""

    dataset: str | None = None
    allowance_units: int | None = None
    spent_units: dict[str, int] = field(default_factory=dict)
    replies: dict[str, _Stored] = field(default_factory=dict)

    def left_rho(self, dataset: str) -> str | None:
        """The rest of the allowance on a dataset; None where there is none."""
        if self.allowance_units is None:
            return None
        return rho_text(max(self.allowance_units - self.spent_units.get(dataset, 0), 0))


@dataclass(slots=True, kw_only=True)
class Service:
    """Everything that the fake remembers. Not for several threads at a time."""

    has_noise: bool
    rng: random.Random
    datasets: dict[str, FakeDataset] = field(default_factory=dict)
    analysts: dict[str, Analyst] = field(default_factory=dict)
    registered: deque[Registered] = field(default_factory=deque)
    answering: Answering | None = None
    _answered: int = 0

    def list_datasets(self, analyst: Analyst) -> list[dict[str, Any]]:
        """`GET /datasets`."""
        return [each.document() for name, each in sorted(self.datasets.items()) if analyst.dataset in (None, name)]

    def dataset(self, analyst: Analyst, name: str) -> FakeDataset:
        """A dataset that the analyst may ask. Raises Refused."""
        if name not in self.datasets or analyst.dataset not in (None, name):
            raise not_found()
        return self.datasets[name]

    def ask(self, analyst: Analyst, name: str, key: str | None, content: bytes) -> dict[str, Any]:
        """`POST /datasets/{dataset}/queries`."""
        checked = checked_key(key)
        query = query_of(content)
        return self._answer(analyst, self.dataset(analyst, name), checked, query)

    def cancel(self, analyst: Analyst, name: str, key: str | None) -> object:
        """`DELETE /datasets/{dataset}/queries`. Raises Refused: every query is answered at once, and none waits."""
        checked_key(key)
        self.dataset(analyst, name)
        raise Refused("query-not-waiting")

    def preview(self, analyst: Analyst, name: str, content: bytes) -> dict[str, Any]:
        """`POST /datasets/{dataset}/queries/preview`."""
        query = query_of(content)
        dataset = self.dataset(analyst, name)
        return preview_of(_plan(query, dataset), dataset, analyst.left_rho(name))

    def ask_many(self, analyst: Analyst, name: str, content: bytes, request_id: str) -> dict[str, Any]:
        """`POST /datasets/{dataset}/queries/batch`: for each entry an answer or a problem document."""
        entries = entries_in(query_of(content))
        dataset = self.dataset(analyst, name)
        answers = []
        for entry in entries:
            try:
                answers.append(
                    self._answer(analyst, dataset, checked_key(entry.get("idempotency_key")), entry["query"])
                )
            except Refused as refusal:
                answers.append(document_of(refusal, request_id))
        return {"answers": answers}

    def release(self, analyst: Analyst, query: str) -> dict[str, Any]:
        """`GET /queries/{query}`."""
        for stored in analyst.replies.values():
            if stored.release.id == query:
                return stored.body
        raise not_found()

    def releases(self, analyst: Analyst, params: Mapping[str, str]) -> dict[str, Any]:
        """`GET /queries`: newest first, a page at a time. A cursor is the number of older releases."""
        limit, before = limit_of(params.get("limit")), cursor_of(params.get("cursor"))
        stored = list(analyst.replies.values())[:before]
        shown = stored[::-1][:limit]
        left = len(stored) - len(shown)
        rows = [release_row_of(each.release, each.dataset, each.at) for each in shown]
        return {"items": rows, "next": f"p{left}" if left else None}

    def allowances(self, analyst: Analyst) -> list[dict[str, Any]]:
        """`GET /allowances`."""
        allowed = None if analyst.allowance_units is None else rho_text(analyst.allowance_units)
        return [
            {
                "dataset": name,
                "allowance_rho": allowed,
                "spent_rho": rho_text(analyst.spent_units.get(name, 0)),
                "left_rho": analyst.left_rho(name),
            }
            for name in sorted(self.datasets)
            if analyst.dataset in (None, name)
        ]

    def _answer(self, analyst: Analyst, dataset: FakeDataset, key: str, query: object) -> dict[str, Any]:
        plan = _plan(query, dataset)
        request, at = (plan.query_hash, plan.reuse), START + timedelta(seconds=self._answered)
        known = analyst.replies.get(key)
        if known is not None and known.request != request:
            text = Refused("idempotency-key-reused").title
            raise Refused("idempotency-key-reused", errors=[("Idempotency-Key", text)])
        if known is None:
            reusable = dataset.released.get(plan.query_hash) if plan.reuse else None
            release = reusable or self._release(analyst, dataset, plan, at)
            body = answer_of(release, dataset, reused=reusable is not None)
            known = _Stored(request=request, body=body, release=release, dataset=dataset.name, at=at)
            analyst.replies[key] = known
            self._answered += 1
        return known.body

    def _release(self, analyst: Analyst, dataset: FakeDataset, plan: Plan, at: datetime) -> Release:
        plan, steps = self._steps(analyst, dataset, plan)
        units = plan.scale.worst_case_units
        analyst.spent_units[dataset.name] = analyst.spent_units.get(dataset.name, 0) + units
        dataset.sequence += 1
        dataset.worst_case_units += units
        release = Release(
            id=str(uuid.UUID(int=self.rng.getrandbits(128), version=4)),
            sequence=dataset.sequence,
            plan=plan,
            steps=tuple(steps),
            worst_case_total_units=dataset.worst_case_units,
            epoch=dataset.epoch,
            at=at,
        )
        dataset.released[plan.query_hash] = release
        return release

    def _steps(self, analyst: Analyst, dataset: FakeDataset, plan: Plan) -> tuple[Plan, list[int]]:
        """The numbers of a fresh answer in grid steps, and the plan with the sigma that it states."""
        if self.registered and self.registered[0].sigma is not None:
            sigma_steps = self.registered[0].sigma / plan.scale.grid
            plan = replace(plan, scale=replace(plan.scale, sigma_steps=sigma_steps))
        _refuse_above_allowance(analyst, dataset, plan)
        if self.registered:
            return plan, _steps_of(self.registered.popleft().values, plan)
        values = None if self.answering is None else self.answering(plan.query)
        if values is not None:
            return plan, _steps_of(values, plan)
        if not dataset.rows:
            raise not_in_fake(
                f"The dataset {dataset.name!r} has no rows and no answer is registered: give rows to add_dataset, or"
                " call answer() before the query."
            )
        counted = counted_steps(plan, dataset.rows)
        if not self.has_noise:
            return plan, counted
        return plan, [steps + round(self.rng.gauss(0, plan.scale.sigma_steps)) for steps in counted]


def _plan(query: object, dataset: FakeDataset) -> Plan:
    plan = plan_of(query, dataset.schema, capacity=dataset.capacity, budget_units=dataset.budget_units)
    _refuse_unclipped(plan, dataset)
    return plan


def _refuse_unclipped(plan: Plan, dataset: FakeDataset) -> None:
    """As the service refuses an event table whose natural bound is too large to be meant."""
    rows = plan.table.rows_per_individual
    if not plan.table.is_events or all(item.extent.is_once for item in plan.items):
        return
    kept = rows if plan.rows_kept is None else plan.rows_kept
    if min(kept, rows) <= UNCLIPPED_ROWS_MAX or plan.query["per_individual"]["l2_clip"] is not None:
        return
    suggestion = "for a count, the number of rows of one individual that should count; or give `rows`"
    if "sigma" in plan.query["noise"]:
        norm = dataset.largest_countable_norm(plan.scale.sigma)
        suggestion += f"; with this sigma, at most {norm:.6g} to leave out no one"
    needed = f"is required where an individual may have more than {UNCLIPPED_ROWS_MAX} rows (here {rows})"
    raise invalid("per_individual.l2_clip", f"{needed}: {suggestion}")


def _refuse_above_allowance(analyst: Analyst, dataset: FakeDataset, plan: Plan) -> None:
    spent, cost = analyst.spent_units.get(dataset.name, 0), plan.scale.worst_case_units
    if analyst.allowance_units is not None and spent + cost > analyst.allowance_units:
        left = rho_text(analyst.allowance_units - spent)
        raise Refused(
            "allowance-exceeded", f"The query may cost rho {rho_text(cost)}; rho {left} of your allowance is left."
        )


def _steps_of(values: Values, plan: Plan) -> list[int]:
    """Registered values in grid steps. Raises ValueError: the mistake is the test's, and no reply of the service."""
    listed = [values] if isinstance(values, int | float) else list(values)
    if len(listed) != plan.dimension:
        raise ValueError(f"the registered answer has {len(listed)} values, and the query {plan.dimension}")
    steps = [round(value / plan.scale.grid) for value in listed]
    if plan.scale.grid_log2 == 0 and steps != listed:
        raise ValueError(f"the query's grid is 1, so that its answer holds whole numbers, not {listed}")
    return steps
