"""The datasets that can be asked about: the public schema for analysts, with counts for curators."""

from service.api.auth import Caller, TheHouse, guarded_router
from service.api.models import CuratedDataset, for_curator
from service.workflows.model.views import PublicDataset

router = guarded_router("curator", "analyst")


@router.get("/datasets")
def list_datasets(house: TheHouse, caller: Caller) -> list[CuratedDataset | PublicDataset]:
    """Every dataset that the caller may see."""
    if caller.role != "curator":
        return list(house.visible_datasets(caller))
    return [for_curator(view) for view in house.datasets() if caller.dataset in (None, view.public.name)]


@router.get("/datasets/{dataset}")
def read_dataset(house: TheHouse, caller: Caller, dataset: str) -> CuratedDataset | PublicDataset:
    """One dataset: its guarantee, budget and tables."""
    if caller.role != "curator":
        return house.visible_dataset(caller, dataset)
    return for_curator(house.dataset(dataset))
