"""A service that filters exactly and adds no noise, so that the demo's figures can be checked exactly."""

import csv
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from sparing import half_width
from sparing_demo.dataset import WebVisits, read_web_visits

UNITS_PER_RHO = 2**40
BUDGET_UNITS = 30_802_265_000  # about the 0.028 rho that (1, 1e-6) allows


@dataclass
class FakeService:
    """Datasets of one individuals and one events table; counts where a category equals a value."""

    noise: Callable[[int], float] = lambda sequence: 0.0
    tables: dict[str, Any] | None = None
    rows: dict[str, int] = field(default_factory=lambda: {"people": 0, "visits": 0})
    visitors: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # by area
    spent: dict[str, int] = field(default_factory=dict)
    ledger: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)  # by canonical query
    receipts: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    calls: list[str] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        where = request.url.path.removeprefix("/v1/")
        self.calls.append(f"{request.method} {where}")
        body = request.read()
        match request.method, where.split("/"):
            case "POST", ["datasets"]:
                self.tables = json.loads(body)["tables"]
                return self._dataset(201)
            case "GET", ["datasets", "web-visits"]:
                return self._dataset(200)
            case "POST", ["datasets", "web-visits", "tables", table, "rows"]:
                return self._upload(table, body)
            case "POST", ["principals"]:
                return self._principal(json.loads(body))
            case "POST", ["datasets", "web-visits", "queries"]:
                return self._ask(json.loads(body))
            case "GET", ["datasets", "web-visits", "ledger"]:
                return _page(self.ledger[::-1], request, 100)
            case "GET", ["datasets", "web-visits", "budgets"]:
                return _page(list(self.spent), request, 10_000, self._budget)
            case "GET", ["me", "budgets"]:
                return httpx.Response(200, json=[self._my_budget(_person(request))])
            case "GET", ["me", "receipts"]:
                return _page(self.receipts[_person(request)], request, 100, self._receipt)
        return httpx.Response(404, json={"type": "urn:sparing:problem:not-found", "status": 404})

    def _dataset(self, status: int) -> httpx.Response:
        if self.tables is None:
            return httpx.Response(404, json={"type": "urn:sparing:problem:not-found", "status": 404})
        view = {
            "name": "web-visits",
            "guarantee": {"epsilon": "1", "delta": "0.000001"},
            "budget_rho": str(BUDGET_UNITS / UNITS_PER_RHO),
            "budget_units": BUDGET_UNITS,
            "mu": 0.2367,
            "capacity": 50_000,
            "rule": "skip",
            "epoch": 1,
            "tables": self.tables,
            "sequence": len(self.ledger),
            "individuals": len(self.spent),
            "rows": self.rows,
        }
        return httpx.Response(status, json=view)

    def _upload(self, table: str, body: bytes) -> httpx.Response:
        rows = [(key, value) for key, value, *_ in list(csv.reader(io.StringIO(body.decode())))[1:]]
        self.rows[table] += len(rows)
        for key, value in rows:
            if table == "people":
                self.spent[key] = 0
            else:
                self.visitors[value].append(key)
        return httpx.Response(200, json={"rows": len(rows), "individuals": len({key for key, _ in rows})})

    def _principal(self, wish: dict[str, Any]) -> httpx.Response:
        key = f"key-of-{wish.get('individual', 'analyst')}"
        return httpx.Response(201, json={**wish, "id": "1", "key": key})

    def _ask(self, question: dict[str, Any]) -> httpx.Response:
        canonical = json.dumps(question, sort_keys=True)
        known = self.answers.get(canonical)
        if known is not None:
            return httpx.Response(200, json={**known, "reused": True})
        (_, area), sigma = question["where"]["eq"], question["noise"]["sigma"]
        charge = -int(-UNITS_PER_RHO // (2 * sigma * sigma))
        charged, left_out = self._filter(self.visitors[area], charge)
        sequence = len(self.ledger) + 1
        common = {"sequence": sequence, "sigma": sigma, "grid": 1.0, "dimension": 1, "epoch": 1}
        common["worst_case_rho"] = str(charge / UNITS_PER_RHO)
        self.ledger.append(
            {
                **common,
                "query_id": str(sequence),
                "analyst": "demo analyst",
                "query": question,
                "charged": charged,
                "left_out": left_out,
                "asked_at": "2026-11-21T09:00:00Z",
                "previous_hash": "",
                "hash": "",
            }
        )
        self.answers[canonical] = {
            **common,
            "id": str(sequence),
            "values": [charged + self.noise(sequence)],
            "labels": [{"select": "count"}],
            "axes": [{"select": [{"select": "count", "offset": 0, "size": 1}]}],
            "half_width_95": half_width(sigma=sigma, grid=1.0),
            "coverage_certified": sequence * charge <= BUDGET_UNITS,
            "reused": False,
            "released_at": "2026-11-21T09:00:00Z",
            "table": "visitors",
        }
        return httpx.Response(200, json=self.answers[canonical])

    def _filter(self, visitors: Iterable[str], charge: int) -> tuple[int, int]:
        counts = {"charged": 0, "left_out": 0}
        for key in visitors:
            outcome = "charged" if self.spent[key] + charge <= BUDGET_UNITS else "left_out"
            self.spent[key] += charge if outcome == "charged" else 0
            self.receipts[key].append(outcome)
            counts[outcome] += 1
        return counts["charged"], counts["left_out"]

    def _budget(self, key: str) -> dict[str, Any]:
        spent = self.spent[key]
        return {
            "key": key,
            "budget_rho": str(BUDGET_UNITS / UNITS_PER_RHO),
            "spent_rho": str(spent / UNITS_PER_RHO),
            "remaining_rho": str((BUDGET_UNITS - spent) / UNITS_PER_RHO),
            "spent_units": spent,
            "budget_units": BUDGET_UNITS,
            "paused": False,
            "queries_charged": self.receipts[key].count("charged"),
            "queries_left_out": self.receipts[key].count("left_out"),
        }

    def _my_budget(self, key: str) -> dict[str, Any]:
        mine = self._budget(key)
        share = mine["spent_units"] / BUDGET_UNITS
        promise = {"promise_rho": "0.028", "promise_epsilon": 1.0, "promise_epsilon_replace_one": 2.1}
        so_far = {
            "promise_of": "largest_limit",
            "epsilon_so_far_time_uniform": None,
            "delta": "1e-6",
            "lowest_limit_rho": "0",
        }
        return {**mine, "dataset": "web-visits", "share_spent": share, **promise, **so_far}

    def _receipt(self, outcome: str) -> dict[str, Any]:
        costs = {"charged_rho": "0", "asked_rho": "0"}
        return {"query_id": "1", "asked": {}, "at": "2026-11-21T09:00:00Z", "outcome": outcome, **costs}


def _person(request: httpx.Request) -> str:
    return request.headers["Authorization"].removeprefix("Bearer key-of-")


def _page(
    every: Sequence[Any], request: httpx.Request, limit: int, row_of: Callable[[Any], dict[str, Any]] = dict
) -> httpx.Response:
    start = int(request.url.params.get("cursor", "0"))
    more = str(start + limit) if start + limit < len(every) else None
    return httpx.Response(200, json={"items": [*map(row_of, every[start : start + limit])], "next": more})


@pytest.fixture(scope="session")
def make_service() -> Callable[[], FakeService]:
    """A factory of empty services."""
    return FakeService


@pytest.fixture
def service() -> FakeService:
    """An empty service."""
    return FakeService()


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client repeats requests without waiting."""
    monkeypatch.setattr("sparing._retry.RETRY_WAIT_BASE_S", 0.0)


@pytest.fixture(scope="session")
def web_visits() -> WebVisits:
    """The data that ships with the demo."""
    return read_web_visits()
