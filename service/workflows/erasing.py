"""Erasure: the record goes, the account stays under a keyed tombstone, and no other individual's number moves."""

import numpy as np

from service.workflows.acting import Preparation
from service.workflows.desk import Act
from service.workflows.ports import LongAct, Transaction
from service.workflows.prepared import Ground
from service.workflows.reading import slot_of
from service.workflows.records import DatasetRecord
from service.workflows.secrets import Pepper
from service.workflows.state import DatasetState


def erasing(record: DatasetRecord, key: str, pepper: Pepper) -> Preparation[None]:
    """Delete an individual's rows. The slot is never another's; the same person coming back resumes its spending."""

    def prepare(transaction: LongAct, ground: Ground) -> Act[None]:
        slot = slot_of(transaction, key)
        transaction.delete_records(slot)
        change = ground.memory.changed(emptied=np.array([slot]))

        def act(transaction: Transaction, state: DatasetState) -> None:
            # Only now: an act that lowers this limit holds the dataset's lock and waits for the account's row.
            transaction.erase(slot, pepper.tombstone(record.id, key))
            transaction.journal("erase", {"slot": slot})
            state.after_commit(lambda: state.memory.put(change))

        return act

    return prepare
