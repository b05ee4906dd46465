"""The operator's probes. Without a key they give public codes alone, with a key also those of its datasets by name."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Request

from service.api.auth import CurrentReplica, authenticated
from service.api.middleware.request_context import DrainState
from service.api.parameters import PublicRoute
from service.api.places import current_places
from service.api.problems import Refusal
from service.ledger.model.errors import WorkflowError
from service.ledger.ports.store import StoreUnavailable
from service.query.schema import doc
from service.workflows.readiness import ReadinessReport, ShardHealth
from service.workflows.replica import Replica

router = APIRouter(tags=["ops"], route_class=PublicRoute)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """This process answers queries; which datasets it does not answer for."""

    status: Annotated[Literal["ready"], doc("Always `ready`.")] = "ready"
    closed: Annotated[
        dict[str, int], doc("The number of closed datasets by public code, such as `ledger-rollback`; empty for none.")
    ]
    datasets: Annotated[
        dict[str, str],
        doc("With a key: the code of each dataset that it may use, `open` or why it is closed. Empty without one."),
    ]
    shards: Annotated[
        dict[str, ShardHealth], doc("With a curator's key: the shards of each dataset that is divided. Empty for none.")
    ]


@router.get("/livez", summary="Check that the process lives", response_description="The process lives.")
async def check_liveness() -> dict[str, str]:
    """The process and its event loop are alive; nothing else is asked."""
    return {"status": "live"}


@router.get("/readyz", summary="Check that queries can be answered", response_description="Queries can be answered.")
async def check_readiness(request: Request, replica: CurrentReplica) -> Ready:
    """Tell whether queries can be answered. 503 with public codes while none can, or while every dataset is closed."""
    drain_state: DrainState = request.app.state.drain_state
    report = None if drain_state.draining else await _report(request, replica)
    codes = ["draining"] if report is None else report.codes
    if report is None or codes:
        raise Refusal("not-ready", f"Not ready: {', '.join(codes)}.", headers={"Retry-After": "1"})
    datasets, shards = await _datasets(request, replica)
    return Ready(closed=report.counts(), datasets=datasets, shards=shards)


async def _report(request: Request, replica: Replica) -> ReadinessReport:
    """The report, at most a second old. Probes that come together share one check, and most need no thread."""
    known = replica.readiness.remembered()
    return await current_places(request).probes.run(None, replica.readiness.report) if known is None else known


async def _datasets(request: Request, replica: Replica) -> tuple[dict[str, str], dict[str, ShardHealth]]:
    """The datasets of the request's key by name. Without a valid key there are none, and the probe is not refused."""
    try:
        principal = await authenticated(request, replica)
        if principal is None:
            return {}, {}
        names = partial(replica.readiness.datasets_for, principal)
        datasets = await current_places(request).reads.run(principal.role, principal.id, names)
        return datasets, replica.readiness.shards_for(principal)
    except (Refusal, WorkflowError, StoreUnavailable):
        return {}, {}
