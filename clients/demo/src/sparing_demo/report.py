"""The findings of the demo, as numbers. Nothing here talks to the service or draws."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from sparing import Answer, BudgetRow, Guarantee, LedgerRow, half_width
from sparing_demo.dataset import Area
from sparing_demo.strategy import topic_of


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaResult:
    """One query: the answer that the analyst got, beside numbers that only the curator knows."""

    number: int  # 1 for the query asked first
    area: Area
    topic: str
    answer: float  # people
    half_width_95: float  # people
    truth: int  # people
    charged: int  # people counted
    left_out: int  # visitors of the area that could not pay any more
    certified: bool  # public arithmetic alone proved that no individual was left out
    reused: bool

    @property
    def error(self) -> float:
        """Answer minus truth, in people."""
        return self.answer - self.truth

    @property
    def is_inside(self) -> bool:
        """Tell whether the error bar covers the truth.

        It fails more often than stated, because left-out people are missing.
        """
        return abs(self.error) <= self.half_width_95

    @property
    def is_inside_counted(self) -> bool:
        """Tell whether the error bar covers what was counted, as it promises."""
        return abs(self.answer - self.charged) <= self.half_width_95

    @property
    def active_share(self) -> float:
        """The share of the area's visitors that could still pay; 1 if the area has no visitors."""
        return active_share([self])


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """All individuals' accounts in a few numbers, after the last query."""

    people: int
    spent_share_mean: float  # of each person's own budget
    spent_share_max: float
    out_of_budget: int  # people who cannot afford another query that touches them
    remaining_share: tuple[int, ...]  # people per tenth of the budget that is left, least first


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The account that one individual reads."""

    person: str
    areas_visited: int
    promise_epsilon: float
    epsilon_so_far_time_uniform: float | None  # None: no less than the promise
    share_spent: float
    charged: int  # queries
    left_out: int  # queries
    untouched: int  # queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys that the demo made, for further queries."""

    analyst: str = field(repr=False)
    individual: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoReport:
    """All figures that the demo shows."""

    dataset: str
    guarantee: Guarantee
    budget_rho: Decimal
    worst_case_rho: Decimal  # of one query
    sigma: float
    grid: float
    results: tuple[AreaResult, ...]  # in the order asked
    budgets: Budgets
    account: Account
    keys: Keys
    base_url: str = ""
    seconds: float = 0.0  # for all queries together
    files: Mapping[str, Path] = field(default_factory=dict)

    @property
    def promise(self) -> str:
        """The guarantee for each individual, in symbols."""
        epsilon, delta = self.guarantee.epsilon, self.guarantee.delta
        if epsilon is None or delta is None:
            return f"(ρ = {self.budget_rho})"
        return f"(ε = {epsilon.normalize():f}, δ = {delta.normalize():e})"

    @property
    def answered(self) -> int:
        """The number of queries that got an answer."""
        return len(self.results)

    @property
    def half_width_95(self) -> float:
        """The error bar of every answer, in people, around what was counted, at 95 per cent."""
        return self.results[0].half_width_95

    @property
    def worst_case_answered(self) -> int:
        """The number of these queries that the budget allows if each charges every individual the worst case."""
        return worst_case_queries(budget_rho=self.budget_rho, worst_case_rho=self.worst_case_rho)

    @property
    def worst_case_half_width_95(self) -> float:
        """The error bar, in people, if worst-case charges had to allow all queries under the same guarantee.

        The charge of a query is 1 / (2 sigma^2), so k times as many queries need sqrt(k) times the noise.
        """
        needed = float(self.answered * self.worst_case_rho / self.budget_rho)
        return half_width(sigma=self.sigma * math.sqrt(max(1.0, needed)), grid=self.grid)

    @property
    def inside(self) -> int:
        """The number of error bars that cover the truth."""
        return sum(result.is_inside for result in self.results)

    @property
    def inside_counted(self) -> int:
        """The number of error bars that cover what was counted."""
        return sum(result.is_inside_counted for result in self.results)

    @property
    def reused(self) -> int:
        """The number of answers that had been released before, and so cost nothing."""
        return sum(result.reused for result in self.results)

    @property
    def largest(self) -> tuple[AreaResult, ...]:
        """The results with the largest released answers first, an order that the analyst can make as well."""
        return tuple(sorted(self.results, key=lambda result: -result.answer))

    @property
    def active_share(self) -> float:
        """The share of all visits to all areas that was counted."""
        return active_share(self.results)

    @property
    def active_share_last_50(self) -> float:
        """The share of the visits to the last fifty areas that was counted, when most budgets were used up."""
        return active_share(self.results[-50:])

    def share_found_by(self, number: int) -> float:
        """The share of all visits that were to the first `number` areas asked about."""
        return sum(r.truth for r in self.results[:number]) / sum(r.truth for r in self.results)


def area_results(
    asked: Sequence[tuple[Area, Answer]], *, ledger: Iterable[LedgerRow], truth: Mapping[str, int]
) -> tuple[AreaResult, ...]:
    """Set the ledger's counts and the truth beside each answer. Raises LookupError when the ledger lacks an answer."""
    rows = {row.sequence: row for row in ledger}
    return tuple(
        AreaResult(
            number=number,
            area=area,
            topic=topic_of(area),
            answer=answer.value,
            half_width_95=answer.half_widths[0],
            truth=truth.get(area.id, 0),
            charged=rows[answer.sequence].charged or 0,
            left_out=rows[answer.sequence].left_out or 0,
            certified=answer.coverage_certified,
            reused=answer.reused,
        )
        for number, (area, answer) in enumerate(asked, start=1)
    )


def budgets_of(rows: Iterable[BudgetRow], *, next_charge_rho: Decimal) -> Budgets:
    """All accounts in a few numbers; `next_charge_rho` is the charge of one more query."""
    accounts = list(rows)
    spent = [row.spent_units / row.budget_units if row.budget_units > 0 else 1.0 for row in accounts]
    tenths = Counter(10 * (row.budget_units - row.spent_units) // max(1, row.budget_units) for row in accounts)
    return Budgets(
        people=len(accounts),
        spent_share_mean=sum(spent) / max(1, len(accounts)),
        spent_share_max=max(spent, default=0.0),
        out_of_budget=sum(row.remaining_rho < next_charge_rho for row in accounts),
        remaining_share=(*(tenths[tenth] for tenth in range(9)), tenths[9] + tenths[10]),
    )


def worst_case_queries(*, budget_rho: Decimal, worst_case_rho: Decimal) -> int:
    """The number of queries that fit a budget if each charges everybody `worst_case_rho`."""
    return int(budget_rho // worst_case_rho)


def active_share(results: Sequence[AreaResult]) -> float:
    """The share of the visits to the areas of `results` whose visitor could still pay; 1 when there was no visit."""
    charged, visits = sum(r.charged for r in results), sum(r.charged + r.left_out for r in results)
    return charged / visits if visits > 0 else 1.0


def smoothed_active_shares(results: Sequence[AreaResult], *, window: int) -> list[float]:
    """The active share of the last `window` queries together, at each query, so that tiny areas hide no trend."""
    return [active_share(results[max(0, end - window) : end]) for end in range(1, len(results) + 1)]
