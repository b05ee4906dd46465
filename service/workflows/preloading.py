"""Loading ahead: the first request finds the dataset in memory, and its head witnessed."""

from collections.abc import Callable

from service.incidents import report_incident
from service.workflows.model.errors import WorkflowError
from service.workflows.ports.store import Store, StoreUnavailable
from service.workflows.writer.registry import DatasetRegistry


def preload(store: Store, registry: DatasetRegistry, claims: Callable[[int], bool]) -> None:
    """Load every dataset that is not in memory yet, one after the other; what cannot be is left for who asks.

    Each is loaded as soon as it is claimed and before the next is: processes that start together share the datasets.
    """
    try:
        records = store.datasets()
    except StoreUnavailable:
        return
    for record in records:
        try:
            if not claims(record.id):
                continue
            registry.writer(record).catch_up()
            registry.guard(record).confirm_head_recorded()
        except (WorkflowError, StoreUnavailable):
            continue  # a caller that asks is told
        except Exception as error:  # noqa: BLE001 - and the others are loaded
            report_incident(error, f"loading of dataset {record.id}")
