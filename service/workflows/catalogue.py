"""Datasets that can be asked about, as they are shown to analysts, and with their counts to curators."""

from dataclasses import dataclass

from service.core.budget import mu_of_units
from service.core.units import rho_of_units
from service.workflows.model.rows import DatasetRecord
from service.workflows.model.views import DatasetCounts, DatasetView, PublicDataset
from service.workflows.ports.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """How many there were at a version of the data or later."""

    version: tuple[int, int]
    individuals: int
    rows: dict[str, int]


class Counts:
    """How many people and rows each dataset has, counted once for a version of its data: a million take a while."""

    def __init__(self, store: Store) -> None:
        """Nothing is counted yet."""
        self._store = store
        self._counted: dict[int, _Counted] = {}

    def of(self, record: DatasetRecord) -> DatasetCounts:
        """As of now, or of an act that has come while it was counted."""
        head = self._store.head(record.id)  # first, so that what is kept is no older than the version it is kept under
        version, counted = (head.fence, head.data_version), self._counted.get(record.id)
        if counted is None or counted.version != version:
            individuals, rows = self._store.row_counts(record.id)
            counted = self._counted[record.id] = _Counted(version=version, individuals=individuals, rows=rows)
        return DatasetCounts(sequence=head.seq, individuals=counted.individuals, rows=counted.rows)


def dataset_view(record: DatasetRecord, store: Store, counts: Counts) -> DatasetView:
    """The public part with the counts, which only its curator sees."""
    return DatasetView(public=public_dataset(record, store), counts=counts.of(record))


def public_dataset(record: DatasetRecord, store: Store) -> PublicDataset:
    """The public part. Looks at no record, and so takes no time that depends on how many there are."""
    return PublicDataset(
        name=record.name,
        guarantee=record.guarantee,
        budget_rho=str(rho_of_units(record.budget_units)),
        budget_units=record.budget_units,
        mu=mu_of_units(record.budget_units),
        limit_floor_rho=str(rho_of_units(record.limit_floor_units)),
        capacity=record.capacity,
        rule=record.rule,
        epoch=store.head(record.id).epoch,
        tables=record.schema,
    )
