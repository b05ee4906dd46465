"""The curator's calls: register, append, erase, open an epoch, read the budgets and the acts, hand out keys."""

from typing import Annotated
from uuid import UUID

from fastapi import Body, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.routing import compile_path

from service.api.auth import CurrentReplica, guarded_router
from service.api.models import CuratorDataset, Epoch, NewPrincipal, Rho, for_curator
from service.api.pagination import LIMIT_DEFAULT, Cursor, Limit, opaque
from service.api.uploads import UPLOAD_BODY, Spooled
from service.workflows.datasets import Registration
from service.workflows.model.views import ActRow, BudgetRow, BudgetSummary, Page, PrincipalRow, Role, UploadReport

router = guarded_router("curator")
all_datasets_router = guarded_router("curator", for_all_datasets=True)  # datasets and keys are handed out here

_ROWS = "/datasets/{dataset}/tables/{table}/rows"
UPLOAD_PATH = compile_path(f"/v1{_ROWS}")[0]  # the one path whose bodies may be large


class PrincipalRequest(BaseModel):
    """The principal to get a key. An individual needs `dataset` and `individual`; only an analyst has an allowance."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    role: Role
    name: Annotated[str, Field(min_length=1, max_length=128)]
    dataset: Annotated[str, Field(max_length=63)] | None = None
    individual: Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00]+$")] | None = None
    allowance_rho: Rho | None = None


@all_datasets_router.post("/datasets", status_code=201)
def register(replica: CurrentReplica, registration: Annotated[Registration, Body()]) -> CuratorDataset:
    """Register a dataset: its guarantee and its public schema, for good."""
    return for_curator(replica.curators.register(registration))


@router.post(_ROWS, openapi_extra=UPLOAD_BODY)
def append_rows(replica: CurrentReplica, dataset: str, table: str, upload: Spooled) -> UploadReport:
    """Append rows to a table, all or none."""
    return replica.curators.append_rows(dataset, table, upload.content_type, upload.source)


# A key may hold anything, a slash too: `path` takes the rest of the address.
@router.delete("/datasets/{dataset}/individuals/{key:path}", status_code=204, response_class=Response)
def erase_individual(replica: CurrentReplica, dataset: str, key: str) -> None:
    """Erase an individual's record; the account stays as a tombstone, so that no individual's budget starts anew."""
    replica.curators.erase_individual(dataset, key)


@router.post("/datasets/{dataset}/epochs", status_code=201)
def open_epoch(replica: CurrentReplica, dataset: str) -> Epoch:
    """Open the next public epoch: queries asked before are answered afresh from now on."""
    return Epoch(epoch=replica.curators.open_epoch(dataset))


@router.get("/datasets/{dataset}/budgets")
def read_budgets(
    replica: CurrentReplica, dataset: str, cursor: Cursor = None, limit: Limit = LIMIT_DEFAULT
) -> Page[BudgetRow]:
    """The account of every individual."""
    return opaque(replica.curators.budgets(dataset, cursor=cursor, limit=limit))


@router.get("/datasets/{dataset}/budgets/summary")
def read_budget_summary(replica: CurrentReplica, dataset: str) -> BudgetSummary:
    """How much budget is left, over all individuals."""
    return replica.curators.budget_summary(dataset)


@router.get("/datasets/{dataset}/acts")
def read_acts(
    replica: CurrentReplica, dataset: str, cursor: Cursor = None, limit: Limit = LIMIT_DEFAULT
) -> Page[ActRow]:
    """The acts on a dataset, newest first: uploads, lowered limits, erasures, epochs, reconciliations.

    The key of an erased individual is in none of them.
    """
    return opaque(replica.curators.acts(dataset, cursor=cursor, limit=limit))


@all_datasets_router.post("/principals", status_code=201)
def create_principal(replica: CurrentReplica, wish: Annotated[PrincipalRequest, Body()]) -> NewPrincipal:
    """Hand out a key. It is in this reply and nowhere else."""
    principal, key = replica.principals.create(
        role=wish.role,
        name=wish.name,
        dataset=wish.dataset,
        individual=wish.individual,
        allowance_rho=wish.allowance_rho,
    )
    return NewPrincipal.of(principal, key)


@all_datasets_router.get("/principals")
def list_principals(replica: CurrentReplica, cursor: Cursor = None, limit: Limit = LIMIT_DEFAULT) -> Page[PrincipalRow]:
    """The principals that hold a key, or held one; never the keys."""
    return opaque(replica.principals.listed(cursor=cursor, limit=limit))


@all_datasets_router.delete("/principals/{principal}", status_code=204, response_class=Response)
def revoke_principal(replica: CurrentReplica, principal: UUID) -> None:
    """Revoke a key, for good."""
    replica.principals.revoke(principal)
