"""Erasure: the record goes, the account stays under a keyed tombstone, and nobody else's number moves."""

from service.workflows.desk import Act
from service.workflows.ports import Transaction
from service.workflows.reading import slot_of
from service.workflows.records import DatasetRecord
from service.workflows.secrets import Pepper
from service.workflows.state import DatasetState


def erasing(record: DatasetRecord, key: str, pepper: Pepper) -> Act[None]:
    """Delete an individual's rows. The slot is nobody else's ever; the same person coming back resumes its spending."""

    def act(transaction: Transaction, state: DatasetState) -> None:
        slot = slot_of(transaction, key)
        transaction.erase(slot, pepper.tombstone(record.id, key))
        transaction.journal("erase", {"slot": slot})
        state.memory.erase(slot)

    return act
