"""Erasure: the record is deleted, the account stays under a keyed tombstone, and no other account changes."""

import numpy as np

from service.workflows.model.api_keys import Pepper
from service.workflows.model.rows import DatasetRecord
from service.workflows.ports.transaction import LongAct, Transaction
from service.workflows.reads.ledger import slot_of
from service.workflows.writer.committer import Operation
from service.workflows.writer.operations import Preparation
from service.workflows.writer.prepared import BaseVersion
from service.workflows.writer.state import DatasetState


def erasing(record: DatasetRecord, key: str, pepper: Pepper) -> Preparation[None]:
    """Delete an individual's rows. No other individual gets its slot; if it returns, it keeps its spent total."""

    def prepare(transaction: LongAct, base: BaseVersion) -> Operation[None]:
        slot = slot_of(transaction, key)
        transaction.delete_records(slot)
        change = base.memory.changed(emptied=np.array([slot]))

        def act(transaction: Transaction, state: DatasetState) -> None:
            # Not earlier: an act that lowers this limit holds the dataset's lock and waits for the account's row.
            transaction.erase(slot, pepper.tombstone(record.id, key))
            transaction.journal("erase", {"slot": slot})
            state.after_commit(lambda: state.put_records(change))

        return act

    return prepare
