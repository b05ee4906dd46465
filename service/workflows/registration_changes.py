"""Changes of a registration: extending it, archiving a dataset that has answered, deleting one that never has.

All of them are public acts. An extension opens a new epoch, because the same words may stand for a longer vector.
"""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from service.ledger.model.errors import DatasetArchived, DatasetNotEmpty, InvalidRequest, Unavailable
from service.ledger.model.rows import DatasetRecord, registration_digest
from service.ledger.ports.store import CommitUnclear, NotEmpty, Store, StoreUnavailable
from service.ledger.ports.transaction import LongAct, Transaction
from service.query.schema import ClosedModel, Schema, doc, extension_errors
from service.workflows.datasets import CAPACITY_MAX, VECTOR_BYTES_MAX, refuse_vectors
from service.writer.committer import BaseVersion, Operation
from service.writer.operations import Preparation, Settled
from service.writer.state import DatasetState


class Extension(ClosedModel):
    """Additions to a dataset; nothing of them can be taken away again."""

    capacity: Annotated[
        Annotated[int, Field(strict=True, ge=1, le=CAPACITY_MAX)] | None,
        doc("The new capacity, not below the present one; left out, it stays."),
    ] = None
    tables: Annotated[
        Schema | None, doc("All tables as they shall be, with those that are there; left out, they stay.")
    ] = None

    def of(self, record: DatasetRecord) -> DatasetRecord:
        """The extended registration; `record` itself where nothing changes. Raises InvalidRequest naming fields."""
        capacity = record.capacity if self.capacity is None else self.capacity
        schema = record.schema if self.tables is None else self.tables
        errors = extension_errors(record.schema, schema, capacity_old=record.capacity, capacity_new=capacity)
        if errors:
            raise InvalidRequest(*errors)
        if (capacity, schema) == (record.capacity, record.schema):
            return record
        return replace(record, capacity=capacity, schema=schema, version=record.version + 1)


class Archiving(ClosedModel):
    """The end of a dataset: whether the rows of its tables are kept."""

    rows: Annotated[Literal["keep", "delete"], doc("Whether the rows of all tables are kept or deleted.")]


def extending(extension: Extension, *, vector_bytes_max: int = VECTOR_BYTES_MAX) -> Preparation[DatasetRecord]:
    """Extend a registration. Raises InvalidRequest, DatasetArchived.

    Vectors that take no more memory than before are accepted, even if the bound has been lowered since.
    """

    def prepare(transaction: LongAct, base: BaseVersion) -> Operation[DatasetRecord] | Settled[DatasetRecord]:  # noqa: ARG001
        record = transaction.registration()
        _refuse_archived(record)
        extended = extension.of(record)
        if extended is record:
            return Settled(result=record)
        if extended.capacity * extended.schema.vector_bytes > record.capacity * record.schema.vector_bytes:
            refuse_vectors(extended.schema, extended.capacity, vector_bytes_max)
        transaction.extend_tables(extended.schema)

        def act(transaction: Transaction, state: DatasetState) -> DatasetRecord:
            digest = registration_digest(extended.capacity, extended.schema)
            epoch = transaction.head.epoch + 1
            transaction.set_registration(extended)
            detail = {"version": extended.version, "capacity": extended.capacity, "digest": digest, "epoch": epoch}
            transaction.journal("extend", detail, epoch=epoch)
            state.after_commit(state.invalidate_all)
            return extended

        return act

    return prepare


def archiving(wish: Archiving) -> Preparation[DatasetRecord]:
    """Archive a dataset: it takes no query and no row from now on, and accounts, ledger and answers stay.

    Archiving again may delete rows that were kept.
    """

    def prepare(transaction: LongAct, base: BaseVersion) -> Operation[DatasetRecord] | Settled[DatasetRecord]:  # noqa: ARG001
        record = transaction.registration()
        if record.is_archived and wish.rows == "keep":
            return Settled(result=record)
        archived = replace(record, is_archived=True)
        if wish.rows == "delete":
            transaction.delete_all_records()

        def act(transaction: Transaction, state: DatasetState) -> DatasetRecord:
            transaction.set_registration(archived)
            transaction.journal("archive", {"rows": wish.rows})
            state.after_commit(state.invalidate_all)
            return archived

        return act

    return prepare


def delete(store: Store, record: DatasetRecord) -> None:
    """Delete a dataset that never answered. Raises DatasetNotEmpty, Unavailable."""
    try:
        store.delete_dataset(record.id)
    except NotEmpty as refusal:
        raise DatasetNotEmpty from refusal
    except (StoreUnavailable, CommitUnclear) as fault:
        raise Unavailable from fault


def _refuse_archived(record: DatasetRecord) -> None:
    if record.is_archived:
        raise DatasetArchived
