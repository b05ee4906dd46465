"""For the operator's probes: public codes alone, no key needed."""

from fastapi import APIRouter, Request

from service.api.auth import CurrentReplica
from service.api.middleware.request_context import DrainState
from service.api.problems import Refusal

router = APIRouter(tags=["ops"])


@router.get("/livez", summary="Check that the process lives", response_description="The process lives.")
async def check_liveness() -> dict[str, str]:
    """The process and its event loop are alive; nothing else is asked."""
    return {"status": "live"}


@router.get("/readyz", summary="Check that queries can be answered", response_description="Queries can be answered.")
def check_readiness(request: Request, replica: CurrentReplica) -> dict[str, str]:
    """Whether queries can be answered. 503 with public codes while they cannot."""
    drain_state: DrainState = request.app.state.drain_state
    codes = ["draining"] if drain_state.draining else replica.readiness.problems()
    if codes:
        raise Refusal("not-ready", f"Not ready: {', '.join(codes)}.", headers={"Retry-After": "1"})
    return {"status": "ready"}
