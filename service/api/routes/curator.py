"""The curator's calls: register, append, erase, open an epoch, read the budgets and the acts, hand out keys."""

from collections.abc import Mapping
from typing import Annotated, Any, Final
from uuid import UUID

import orjson
from fastapi import Body, Query, Response
from pydantic import AwareDatetime, Field, RootModel
from starlette.routing import compile_path

from service.api.auth import Caller, CurrentReplica, guarded_router
from service.api.models import Epoch, IndividualsKey, Rho
from service.api.pagination import LIMIT_DEFAULT, Cursor, Limit, opaque
from service.api.responses import JSON
from service.api.uploads import FILE_BODY, REPEATED, UPLOAD_BODY, Options, Spooled, SpooledColumns, names_in
from service.ledger.model.errors import InvalidRequest
from service.ledger.model.individual_views import Receipt, RunDivergence
from service.ledger.model.journal import FileForm, UploadRequest
from service.ledger.model.rows import PrincipalFilter
from service.ledger.model.views import (
    ALLOWANCE,
    EXPIRY,
    ActRow,
    AnalystRow,
    BudgetRow,
    CuratorDataset,
    FilePreview,
    KeyDataset,
    KeyIndividual,
    KeyName,
    KeyRole,
    NewPrincipal,
    Organisation,
    Page,
    PrincipalRow,
    Purpose,
    Role,
    UploadReport,
)
from service.ledger.ports.row_reader import FirstRowsRequest
from service.query.schema import COLUMNS_MAX, ClosedModel
from service.reads.individual_record import IndividualRecord
from service.workflows.corrections import Value
from service.workflows.datasets import Registration
from service.workflows.principals import INDIVIDUALS_MAX, shown
from service.workflows.registration_changes import Archiving, Extension

router = guarded_router("curator")
all_datasets_router = guarded_router("curator", for_all_datasets=True)  # datasets and keys are handed out here

_ROWS = "/datasets/{dataset}/tables/{table}/rows"
_PREVIEW = "/files/preview"
_INDIVIDUAL = "/datasets/{dataset}/individual"
_KEYS = "/datasets/{dataset}/individuals/keys"
KEYS_PATH = compile_path(f"/v1{_KEYS}")[0]
UPLOAD_PATH = compile_path(f"/v1{_ROWS}")[0]
PREVIEW_PATH = compile_path(f"/v1{_PREVIEW}")[0]
"""The path of file previews. Like UPLOAD_PATH it takes large bodies."""


_KEY_FORM: Final[Mapping[str, Any]] = {"min_length": 1, "max_length": 1000, "pattern": r"^[^\x00]+$"}
_KEY = Field(**_KEY_FORM)
Individual = Annotated[str, Query(**_KEY_FORM, description="The key of the individual.")]
"""The key is a parameter of the address, because it may be `..` or hold a slash.

Browsers resolve `%2e%2e` in a path.
"""
_NAME = Field(min_length=1, max_length=128)
_TEXT = Field(min_length=1, max_length=200)


class PrincipalRequest(ClosedModel):
    """The principal to get a key. An individual needs `dataset` and `individual`; only an analyst has an allowance."""

    role: KeyRole
    name: Annotated[KeyName, _NAME]
    dataset: Annotated[KeyDataset, Field(max_length=63)] = None
    individual: Annotated[KeyIndividual, _KEY] = None
    allowance_rho: Annotated[Rho | None, ALLOWANCE] = None
    organisation: Annotated[Organisation, _TEXT] = None
    purpose: Annotated[Purpose, _TEXT] = None
    expires_at: Annotated[AwareDatetime | None, EXPIRY] = None


class PrincipalChange(ClosedModel):
    """The facts to change; what is not named stays, and null removes a bound or a description."""

    name: Annotated[KeyName, _NAME] = ""
    allowance_rho: Annotated[Rho | None, ALLOWANCE] = None
    organisation: Annotated[Organisation, _TEXT] = None
    purpose: Annotated[Purpose, _TEXT] = None
    expires_at: Annotated[AwareDatetime | None, EXPIRY] = None


_ColumnText = Annotated[str, Field(max_length=63)]


class Correction(RootModel[Annotated[dict[_ColumnText, Value], Field(max_length=COLUMNS_MAX)]]):
    """New values by column."""


class IndividualKeys(
    RootModel[Annotated[list[Annotated[str, _KEY]], Field(fail_fast=True, max_length=INDIVIDUALS_MAX)]]
):
    """The keys of individuals."""


@all_datasets_router.post("/datasets", status_code=201, summary="Register a dataset")
def register_dataset(replica: CurrentReplica, registration: Annotated[Registration, Body()]) -> CuratorDataset:
    """Register a dataset: its guarantee and its public schema, for good."""
    return replica.curators.register(registration)


@all_datasets_router.post(_PREVIEW, summary="Preview a file", openapi_extra=FILE_BODY)
def preview_file(replica: CurrentReplica, upload: SpooledColumns) -> FilePreview:
    """The first rows of a Parquet file or an Arrow stream, from which a schema can be proposed; nothing is stored."""
    request = FirstRowsRequest(content_type=upload.content_type, bounds=upload.bounds)
    return replica.curators.preview_file(request, upload.source)


@router.patch("/datasets/{dataset}", summary="Extend a dataset")
def extend_dataset(replica: CurrentReplica, dataset: str, extension: Annotated[Extension, Body()]) -> CuratorDataset:
    """Add categories, columns, tables or capacity; a public act, which opens a new epoch."""
    return replica.curators.extend(dataset, extension)


@router.post("/datasets/{dataset}/archive", summary="Archive a dataset")
def archive_dataset(replica: CurrentReplica, dataset: str, wish: Annotated[Archiving, Body()]) -> CuratorDataset:
    """End all queries and uploads for good; a public act. Ledger, answers and accounts are kept."""
    return replica.curators.archive(dataset, wish)


@all_datasets_router.delete("/datasets/{dataset}", status_code=204, summary="Delete a dataset", response_class=Response)
def delete_dataset(replica: CurrentReplica, dataset: str) -> None:
    """Delete a dataset that never answered a query, with its rows and the keys that are good for it alone."""
    replica.curators.delete(dataset)


@router.post(_ROWS, summary="Append rows", openapi_extra=UPLOAD_BODY)
def append_rows(
    replica: CurrentReplica,
    caller: Caller,
    response: Response,
    dataset: str,
    table: str,
    options: Options,
    upload: Spooled,
) -> UploadReport:
    """Append rows to a table, all or none; the same key and bytes get the first report again."""
    for name, is_stated in (("delimiter", options.delimiter != ","), ("decimal", options.decimal != ".")):
        if is_stated and upload.content_type != "text/csv":
            raise InvalidRequest.of(name, "only CSV has one")
    request = UploadRequest(
        table=table,
        content_type=upload.content_type,
        form=FileForm(delimiter=options.delimiter, decimal=options.decimal, columns=names_in(options.columns)),
        accept=tuple(name for name in options.accept.split(",") if name),
        rows_over_limit=options.rows_over_limit,
        unknown_individuals=options.unknown_individuals,
        duplicates=options.duplicates,
        is_dry_run=options.dry_run,
        address=None if upload.key is None else (caller.id, upload.key),
        bounds=upload.bounds,
    )
    outcome = replica.curators.upload(dataset, request, upload.source)
    if outcome.is_repeat:
        response.headers[REPEATED] = "true"
    return outcome.report


@router.delete(_INDIVIDUAL, status_code=204, summary="Erase an individual", response_class=Response)
def erase_individual(replica: CurrentReplica, dataset: str, individual: Individual) -> None:
    """Erase an individual's record; the account stays as a tombstone, so that no individual's budget starts anew."""
    replica.curators.erase_individual(dataset, individual)


@router.patch(_INDIVIDUAL, summary="Correct a record")
def correct_record(
    replica: CurrentReplica, dataset: str, individual: Individual, correction: Annotated[Correction, Body()]
) -> UploadReport:
    """Correct columns of an individual's record; its events stay, and so does all that was charged."""
    return replica.curators.correct(dataset, individual, correction.root)


@router.post("/datasets/{dataset}/epochs", status_code=201, summary="Open an epoch")
def open_epoch(replica: CurrentReplica, dataset: str) -> Epoch:
    """Open the next public epoch: queries asked before are answered afresh from now on."""
    return Epoch(epoch=replica.curators.open_epoch(dataset))


@router.get("/datasets/{dataset}/budgets", summary="List the accounts")
def list_accounts(
    replica: CurrentReplica, dataset: str, cursor: Cursor = None, limit: Limit = LIMIT_DEFAULT
) -> Page[BudgetRow]:
    """The account of every individual."""
    return opaque(replica.curators.budgets(dataset, cursor=cursor, limit=limit))


@router.get(_INDIVIDUAL, summary="Read an account")
def read_account(replica: CurrentReplica, dataset: str, individual: Individual) -> BudgetRow:
    """The account of one individual, by its key."""
    return replica.curators.account(dataset, individual)


@router.get("/datasets/{dataset}/record", summary="Read a record")
def read_record(replica: CurrentReplica, dataset: str, individual: Individual) -> IndividualRecord:
    """The record of one individual as the service holds it: values clipped and coded, at most 1,000 rows a table."""
    return replica.curators.record(dataset, individual)


@router.get("/datasets/{dataset}/divergence", summary="Read the divergence of a record")
def read_divergence(replica: CurrentReplica, dataset: str, individual: Individual) -> RunDivergence:
    """How well the answers so far tell the dataset with one record from the one without it.

    It depends on the record and on the answers: it is not a guarantee, and must not leave the curator.
    """
    return replica.curators.divergence(dataset, individual)


@router.get("/datasets/{dataset}/receipts", summary="List the receipts of an individual")
def list_receipts(
    replica: CurrentReplica, dataset: str, individual: Individual, cursor: Cursor = None, limit: Limit = LIMIT_DEFAULT
) -> Page[Receipt]:
    """The cost of each query to one individual, newest first."""
    return opaque(replica.curators.receipts(dataset, individual, cursor=cursor, limit=limit))


@router.get(
    "/datasets/{dataset}/erasure-requests",
    summary="List the requests for erasure",
    response_description="The keys of the individuals.",
)
def list_erasure_requests(
    replica: CurrentReplica, dataset: str, cursor: Cursor = None, limit: Limit = LIMIT_DEFAULT
) -> Page[str]:
    """The keys of the individuals that ask to be erased, those who asked first first.

    A page looks at so many requests: it may be empty and have a next one, where all of these are done.
    """
    return opaque(replica.curators.erasure_requests(dataset, cursor=cursor, limit=limit))


@router.get("/datasets/{dataset}/acts", summary="List the acts")
def list_acts(
    replica: CurrentReplica, dataset: str, cursor: Cursor = None, limit: Limit = LIMIT_DEFAULT
) -> Page[ActRow]:
    """The acts on a dataset, newest first: uploads, lowered limits, erasures, epochs, reconciliations.

    The key of an erased individual is in none of them.
    """
    return opaque(replica.curators.acts(dataset, cursor=cursor, limit=limit))


@all_datasets_router.post("/principals", status_code=201, summary="Hand out a key")
def create_principal(replica: CurrentReplica, wish: Annotated[PrincipalRequest, Body()]) -> NewPrincipal:
    """Hand out a key. It is in this reply and nowhere else."""
    principal, key = replica.principals.create(**dict(wish))
    return shown(NewPrincipal, principal, key=key)


@all_datasets_router.get("/principals", summary="List the principals")
def list_principals(
    replica: CurrentReplica,
    cursor: Cursor = None,
    limit: Limit = LIMIT_DEFAULT,
    role: Annotated[Role | None, Query(description="The role of those that are listed.")] = None,
    dataset: Annotated[
        str | None, Query(max_length=63, description="The dataset that their keys are good for.")
    ] = None,
    search: Annotated[
        str,
        Query(
            max_length=200,
            pattern=r"^[^\x00]*$",
            description="Words that name, role, dataset, individual and organisation must have together.",
        ),
    ] = "",
) -> Page[PrincipalRow]:
    """The principals that hold a key, or held one; never the keys."""
    only = PrincipalFilter(role=role, dataset=dataset, words=tuple(search.split()))
    return opaque(replica.principals.listed(cursor=cursor, limit=limit, only=only))


@all_datasets_router.delete("/principals/{principal}", status_code=204, summary="Revoke a key", response_class=Response)
def revoke_principal(replica: CurrentReplica, principal: UUID) -> None:
    """Revoke a key, for good."""
    replica.principals.revoke(principal)


@all_datasets_router.patch("/principals/{principal}", summary="Change a principal")
def change_principal(
    replica: CurrentReplica, principal: UUID, wish: Annotated[PrincipalChange, Body()]
) -> PrincipalRow:
    """Change the name, the allowance, the description or the expiry of a principal, from its next request on."""
    return replica.principals.change(principal, wish.model_dump(exclude_unset=True))


@all_datasets_router.post("/principals/{principal}/key", status_code=201, summary="Replace a key")
def replace_key(replica: CurrentReplica, principal: UUID) -> NewPrincipal:
    """Replace a principal's key; the old one ends. The new one is in this reply and nowhere else."""
    changed, key = replica.principals.replace_key(principal)
    return shown(NewPrincipal, changed, key=key)


@router.get("/datasets/{dataset}/analysts", summary="List the analysts of a dataset")
def list_analysts(replica: CurrentReplica, dataset: str) -> list[AnalystRow]:
    """The analysts that may ask the dataset, with their allowances and the sum of their worst cases."""
    return replica.principals.analysts_of(dataset)


@router.post(_KEYS, status_code=201, summary="Hand out keys to individuals", response_model=list[IndividualsKey])
def create_individuals_keys(
    replica: CurrentReplica,
    dataset: str,
    individuals: Annotated[IndividualKeys, Body()],
    expires_at: Annotated[AwareDatetime | None, Query(description="When the keys end; left out, never.")] = None,
) -> Response:
    """Hand out a key to each of many individuals, all or none. The keys are in this reply and nowhere else."""
    made = replica.principals.create_individuals(dataset, individuals.root, expires_at=expires_at)
    keys = [IndividualsKey(individual=individual, api_key=api_key) for individual, api_key in made]
    return Response(orjson.dumps(keys), status_code=201, media_type=JSON)  # here, and not in the event loop
