"""The datasets that can be asked about, for analysts and curators: schemas, counts for curators, previews."""

from service.api.auth import Caller, CurrentReplica, guarded_router
from service.api.pagination import LIMIT_DEFAULT, Cursor, Limit, opaque
from service.api.query_requests import QUERY_BODY, SentQuery
from service.ledger.model.analyst_views import Preview
from service.ledger.model.stated_monitor import MonitorTicks
from service.ledger.model.views import CuratorDataset, CuratorDatasetRow, DatasetRow, Page, PublicDataset

router = guarded_router("curator", "analyst")


@router.get("/datasets", summary="List the datasets")
def list_datasets(
    replica: CurrentReplica, caller: Caller, cursor: Cursor = None, limit: Limit = LIMIT_DEFAULT
) -> Page[CuratorDatasetRow] | Page[DatasetRow]:
    """The datasets that the caller may see, by name, without their schemas."""
    if caller.role != "curator":
        return opaque(replica.analysts.datasets(caller, cursor=cursor, limit=limit))
    return opaque(replica.curators.datasets(caller.dataset, cursor=cursor, limit=limit))


@router.get("/datasets/{dataset}", summary="Read a dataset")
def read_dataset(replica: CurrentReplica, caller: Caller, dataset: str) -> CuratorDataset | PublicDataset:
    """One dataset: its guarantee, budget and tables."""
    if caller.role != "curator":
        return replica.analysts.dataset(caller, dataset)
    return replica.curators.dataset(dataset)


@router.get("/datasets/{dataset}/monitor", summary="Read the ticks of a dataset's monitor")
def read_monitor(replica: CurrentReplica, caller: Caller, dataset: str) -> MonitorTicks:
    """The terms of the continual count of the exhausted, and every tick that was answered, to any analyst."""
    return replica.analysts.monitor(caller, dataset)


@router.post("/datasets/{dataset}/queries/preview", summary="Preview a query", openapi_extra=QUERY_BODY)
def preview(replica: CurrentReplica, caller: Caller, dataset: str, query: SentQuery) -> Preview:
    """Everything public about a query, without asking it."""
    return replica.analysts.preview(caller, dataset, query)
