"""The preview of a query and an analyst's remaining allowance; all of it is public."""

from decimal import Decimal
from functools import lru_cache

import orjson

from service.accounting.coverage import coverage_certified, largest_countable_norm
from service.core.budget import epsilon_of_units
from service.core.units import rho_of_units
from service.query.plan import Plan
from service.query.words import in_words
from service.workflows.admission.admission import Admission
from service.workflows.model.analyst_views import Allowance, CostView, Preview
from service.workflows.model.rows import DatasetRecord
from service.workflows.model.views import Principal
from service.workflows.ports.store import Store
from service.workflows.writer.answer_document import share_of_budget, warnings_of


def preview(plan: Plan, record: DatasetRecord, principal: Principal, store: Store, admission: Admission) -> Preview:
    """Everything public about a query; touches no record and costs nothing."""
    cost = admission.cost_of(plan, record)
    worst_cases = [store.head(record.id).worst_case_units, plan.worst_case_units]
    canonical = orjson.loads(plan.canonical)
    return Preview(
        dimension=plan.dimension,
        grid=2.0**plan.grid_log2,
        sigma=plan.sigma,
        half_width_95=plan.half_width_95,
        l2_clip=plan.l2_clip,
        worst_case_rho=str(rho_of_units(plan.worst_case_units)),
        worst_case_share=share_of_budget(plan.worst_case_units, record),
        worst_case_epsilon=_epsilon(plan.worst_case_units, record.guarantee.delta),
        largest_countable_norm=largest_countable_norm(plan.sigma, record.limit_floor_units),
        warnings=tuple(warnings_of(plan.l2_clip, plan.sigma, record)),
        allowance_left_rho=_allowance(principal, record.name, store).left_rho,
        coverage_certified=coverage_certified(worst_cases, limit_floor_units=record.limit_floor_units),
        canonical=canonical,
        words=in_words(canonical),
        query_hash=plan.query_hash,
        public_cost=CostView(
            time_ms=cost.time_ns / 1e6, memory_bytes=cost.memory_bytes, delay_ms=admission.delay_ms(cost)
        ),
    )


@lru_cache(maxsize=1024)
def _epsilon(units: int, delta: str | None) -> float | None:
    """The epsilon of a worst case, None without a delta; finding it takes ten milliseconds."""
    return None if delta is None else epsilon_of_units(units, Decimal(delta))


def allowances(principal: Principal, store: Store) -> list[Allowance]:
    """The analyst's worst-case allowance on each dataset it may ask."""
    names = [principal.dataset] if principal.dataset else [record.name for record in store.datasets()]
    return [_allowance(principal, name, store) for name in names]


def _allowance(principal: Principal, dataset: str, store: Store) -> Allowance:
    spent = store.worst_cases_of(principal.id).get(dataset, 0)
    allowed = principal.allowance_units
    return Allowance(
        dataset=dataset,
        allowance_rho=None if allowed is None else str(rho_of_units(allowed)),
        spent_rho=str(rho_of_units(spent)),
        left_rho=None if allowed is None else str(rho_of_units(max(allowed - spent, 0))),
    )
