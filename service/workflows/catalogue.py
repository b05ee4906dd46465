"""What there is to ask about: a dataset as it is shown to analysts, and with its counts to curators."""

from service.core.budget import mu_of_units
from service.core.units import rho_of_units
from service.workflows.ports import Store
from service.workflows.records import DatasetRecord
from service.workflows.views import DatasetCounts, DatasetView, PublicDataset


def dataset_view(record: DatasetRecord, store: Store) -> DatasetView:
    """The public part with the counts, which only its curator sees."""
    individuals, rows = store.row_counts(record.id)
    counts = DatasetCounts(sequence=store.head(record.id).seq, individuals=individuals, rows=rows)
    return DatasetView(public=public_dataset(record, store), counts=counts)


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
