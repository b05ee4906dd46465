"""Loading ahead: whoever asks first finds the dataset in memory, and its head witnessed."""

from service.workflows.errors import WorkflowError
from service.workflows.incidents import report_incident
from service.workflows.lines import Lines
from service.workflows.ports import Store, StoreUnavailable, Transaction
from service.workflows.state import DatasetState


def preload(store: Store, lines: Lines) -> None:
    """Load every dataset that is not in memory yet, one after the other; what cannot be is left for who asks."""
    try:
        records = store.datasets()
    except StoreUnavailable:
        return
    for record in records:
        try:
            lines.line(record).read(_nothing)
            lines.guard(record).vouch_now()
        except (WorkflowError, StoreUnavailable):
            continue  # whoever asks is told
        except Exception as error:  # noqa: BLE001 - and the others are loaded
            report_incident(error, f"loading of dataset {record.id}")


def _nothing(_transaction: Transaction, _state: DatasetState) -> None:
    """What whoever wants nothing but the dataset in memory reads."""
