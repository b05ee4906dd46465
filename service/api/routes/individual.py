"""An individual's own account, and no other: the principal says whose it is, and no path or parameter does."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Body, Response
from pydantic import Field, model_validator

from service.api.auth import Caller, CurrentReplica, guarded_router
from service.api.models import Rho
from service.api.pagination import LIMIT_DEFAULT, Cursor, Limit, opaque
from service.api.responses import BINARY, NPZ, Accept, npz_of, preferred
from service.ledger.model.individual_views import MyBudget, Receipt
from service.ledger.model.views import Page
from service.query.schema import ClosedModel, doc
from service.reads.individual_record import IndividualRecord, as_arrays

router = guarded_router("individual")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureRequest:
    """The answer to the question whether the curator is asked to erase the individual."""

    requested: Annotated[bool, doc("Whether the curator is asked to erase the individual.")]


class LowerLimit(ClosedModel):
    """Either a lower limit, for good, or a pause, until it is ended."""

    limit_rho: Annotated[
        Rho | None,
        doc("The new limit in rho, `reserve_rho` included: not above the present one, nor below `lowest_limit_rho`."),
    ] = None
    pause: Annotated[bool, Field(strict=True), doc("`true` to take part in no query until the pause is ended.")] = False

    @model_validator(mode="after")
    def _one_of_two(self) -> "LowerLimit":
        if (self.limit_rho is None) != self.pause:
            raise ValueError("state either limit_rho, or pause: true")
        return self


@router.get("/me/budgets", summary="Read your account")
def list_my_budgets(replica: CurrentReplica, caller: Caller) -> list[MyBudget]:
    """The caller's own account: what was promised and what is spent, per dataset."""
    return replica.individuals.budgets(caller)


@router.get("/me/receipts", summary="List your receipts")
def list_my_receipts(
    replica: CurrentReplica, caller: Caller, cursor: Cursor = None, limit: Limit = LIMIT_DEFAULT
) -> Page[Receipt]:
    """Receipts: the cost of each query to the caller, newest first."""
    return opaque(replica.individuals.receipts(caller, cursor=cursor, limit=limit))


@router.get(
    "/me/record/{dataset}",
    summary="Read your record",
    response_model=IndividualRecord,
    responses={200: {"content": {NPZ: BINARY}}},
)
def read_my_record(
    replica: CurrentReplica, caller: Caller, dataset: str, response: Response, accept: Accept = None
) -> IndividualRecord | Response:
    """The caller's own record as the service holds it: values clipped and coded, at most 1,000 rows a table. As npz
    each vector is an array of its own, and all else the text `record`.
    """  # noqa: D205 - one paragraph in the OpenAPI document
    record = replica.individuals.record(caller, dataset)
    if preferred(accept, is_large=lambda: False) == NPZ:
        lengths = replica.individuals.vector_lengths(caller, dataset)
        return Response(npz_of(as_arrays(record, lengths)), media_type=NPZ, headers={"Vary": "Accept"})
    response.headers["Vary"] = "Accept"
    return record


@router.get("/me/erasure/{dataset}", summary="Read whether you asked to be erased")
def read_my_erasure(replica: CurrentReplica, caller: Caller, dataset: str) -> ErasureRequest:
    """Tell whether the caller has asked the curator for an erasure."""
    return ErasureRequest(requested=replica.individuals.is_erasure_asked(caller, dataset))


@router.post("/me/erasure/{dataset}", status_code=202, summary="Ask to be erased")
def ask_for_my_erasure(replica: CurrentReplica, caller: Caller, dataset: str) -> ErasureRequest:
    """Ask the curator to erase the caller's record. The spent total stays, as a tombstone."""
    replica.individuals.ask_erasure(caller, dataset)
    return ErasureRequest(requested=True)


@router.post("/me/budgets/{dataset}/lower", summary="Lower your limit, or pause")
def lower_my_limit(
    replica: CurrentReplica, caller: Caller, dataset: str, wish: Annotated[LowerLimit, Body()]
) -> MyBudget:
    """Lower one's own limit, which can never be raised again; or pause: take part in no query until `resume`."""
    return replica.individuals.lower_limit(caller, dataset, limit_rho=wish.limit_rho, pause=wish.pause)


@router.post("/me/budgets/{dataset}/resume", summary="End your pause")
def end_my_pause(replica: CurrentReplica, caller: Caller, dataset: str) -> MyBudget:
    """End one's own pause; repeating this changes nothing. A limit that was lowered stays lowered."""
    return replica.individuals.resume(caller, dataset)
