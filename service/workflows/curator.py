"""The use cases of curators: register and change datasets, read budgets and acts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from secrets import token_bytes
from typing import BinaryIO

import numpy as np

from service.background import in_background
from service.engine.key_digests import SALT_BYTES
from service.ledger.model.api_keys import Pepper
from service.ledger.model.errors import RegistrationChanged
from service.ledger.model.individual_views import Receipt, RunDivergence
from service.ledger.model.journal import UploadOutcome, UploadRequest
from service.ledger.model.rows import DatasetRecord
from service.ledger.model.views import (
    ActRow,
    BudgetRow,
    CuratorDataset,
    CuratorDatasetRow,
    FilePreview,
    Page,
    UploadReport,
)
from service.ledger.ports.row_reader import FirstRowsRequest, RowReader
from service.ledger.ports.store import Store
from service.ledger.ports.transaction import LongAct, Transaction
from service.query.keys import Key
from service.reads import accounts
from service.reads.account_files import PAGE_ROWS, AccountFile, AccountFiles, FileForm
from service.reads.act_log import acts
from service.reads.individual_record import IndividualRecord, individual_record
from service.reads.ledger import number_of, receipts, slot_of, snapshot
from service.workflows.corrections import Value, correcting
from service.workflows.datasets import Counts, Registration, listed_datasets, register
from service.workflows.principals import Principals
from service.workflows.registration_changes import Archiving, Extension, archiving, delete, extending
from service.workflows.uploads import first_rows, store_upload
from service.writer.committer import BaseVersion, Operation, Result
from service.writer.operations import ATTEMPTS_MAX, Preparation, act_beside, next_epoch
from service.writer.registry import DatasetRegistry
from service.writer.replication.exchange import ReplicaExchange
from service.writer.state import DatasetState


class Curators:
    """Everything a curator can do. Thread-safe."""

    def __init__(
        self,
        *,
        store: Store,
        registry: DatasetRegistry,
        exchange: ReplicaExchange,
        pepper: Pepper,
        principals: Principals,
        amend: Callable[[DatasetRecord], None],
        reader: RowReader,
        vector_bytes_max: int,
    ) -> None:
        """`amend` starts the amendment of a dataset's ledger after an erasure. Uploads are read by `reader`."""
        self._store, self._registry, self._exchange, self._pepper = store, registry, exchange, pepper
        self._principals, self._amend, self._reader = principals, amend, reader
        self.new_salt: Callable[[], bytes] = partial(token_bytes, SALT_BYTES)
        self.files = AccountFiles()
        self._vector_bytes_max = vector_bytes_max
        self._counts = Counts(store)

    def register(self, registration: Registration) -> CuratorDataset:
        """Register a dataset. Raises NameTaken, DatasetMissing, InvalidRequest."""
        witness, bytes_max = self._registry.witness, self._vector_bytes_max
        record = register(registration, self._store, witness, salt=self.new_salt(), vector_bytes_max=bytes_max)
        self._registry.displace(record)
        return self._counts.of(record)

    def datasets(self, bound: str | None, *, cursor: str | None, limit: int) -> Page[CuratorDatasetRow]:
        """The datasets of a curator by name, only `bound` unless that is None.

        Raises InvalidRequest on an unknown cursor.
        """
        records, following = listed_datasets(self._store, bound, cursor=cursor, limit=limit)
        return Page(items=tuple(map(self._counts.row_of, records)), next=following)

    def dataset(self, name: str) -> CuratorDataset:
        """One dataset. Raises NotFound."""
        return self._counts.of(self._registry.record(name))

    def append_rows(
        self, dataset: str, table: str, content_type: str, source: BinaryIO, *, accept: Iterable[str] = ()
    ) -> UploadReport:
        """Append rows, all or nothing. Raises NotFound, InvalidRequest naming rows and columns."""
        request = UploadRequest(table=table, content_type=content_type, accept=tuple(accept))
        return self.upload(dataset, request, source).report

    def upload(self, dataset: str, request: UploadRequest, source: BinaryIO) -> UploadOutcome:
        """Append rows by a request with options; `source` must be seekable.

        Raises KeyConflict, and what `append_rows` raises.
        """

        def store(record: DatasetRecord) -> UploadOutcome:
            source.seek(0)
            return store_upload(record, self._registry.writer(record), self._pepper, request, source, self._reader)

        return self._as_registered(dataset, store)

    def preview_file(self, request: FirstRowsRequest, source: BinaryIO) -> FilePreview:
        """The first rows of a file that belongs to no table yet; nothing is stored.

        Raises InvalidRequest, Unavailable.
        """
        return in_background(lambda: first_rows(source, request, self._reader), name="file-preview")

    def prepare_uploads(self) -> None:
        """Prepare for reading uploads, so that the first one need not wait; a service can start without this."""
        self._reader.open()

    def erase_individual(self, dataset: str, individual: str) -> None:
        """Erase a record and the keys to it; the account stays as a tombstone. Raises NotFound."""
        record, key = self._named(dataset, individual)
        self._run_in_background(
            record, lambda: act_beside(self._registry.writer(record), erasing(record, key, self._pepper))
        )
        self._principals.forget(dataset, key)
        self._amend(record)

    def open_epoch(self, dataset: str) -> int:
        """Start the next public epoch, in which no earlier answer is reused; returns its number. Raises NotFound."""
        return self._registry.writer(self._registry.record(dataset)).act(next_epoch)

    def extend(self, dataset: str, extension: Extension) -> CuratorDataset:
        """Add categories, columns, tables or capacity, and open an epoch. Raises NotFound, InvalidRequest."""
        return self._change(dataset, extending(extension, vector_bytes_max=self._vector_bytes_max))

    def archive(self, dataset: str, wish: Archiving) -> CuratorDataset:
        """End all queries and uploads of a dataset for good; its ledger is kept. Raises NotFound."""
        return self._change(dataset, archiving(wish))

    def correct(self, dataset: str, individual: str, values: Mapping[str, Value]) -> UploadReport:
        """Change columns of one individual's row; its events stay. Raises NotFound, InvalidRequest, DatasetArchived."""

        def correct(record: DatasetRecord) -> UploadReport:
            return act_beside(self._registry.writer(record), correcting(record, record.key_of(individual), values))

        return self._as_registered(dataset, correct)

    def delete(self, dataset: str) -> None:
        """Delete a dataset that never answered, and the keys to it. Raises NotFound, DatasetNotEmpty, Unavailable."""
        record = self._registry.record(dataset)
        self._registry.guard(record).refuse_if_closed()
        delete(self._store, record)
        self._principals.forget(dataset)
        self._registry.forget(record)

    def budgets(self, dataset: str, *, cursor: str | None, limit: int) -> Page[BudgetRow]:
        """The individuals' accounts, by key. Raises NotFound."""
        record = self._registry.record(dataset)
        return accounts.budgets(record, self._registry.writer(record), self._exchange, cursor=cursor, limit=limit)

    def export(self, dataset: str, form: FileForm) -> AccountFile:
        """A file of the accounts of all individuals, read page by page as its pieces are asked for. Raises NotFound."""
        self._registry.record(dataset)
        return self.files.begin(self._pages(dataset), form)

    def account(self, dataset: str, individual: str) -> BudgetRow:
        """One individual's account, by its key. Raises NotFound."""
        record, key = self._named(dataset, individual)
        return accounts.one_account(record, key, self._registry.writer(record), self._exchange)

    def record(self, dataset: str, individual: str) -> IndividualRecord:
        """One individual's record as the service holds it. Raises NotFound."""
        record, key = self._named(dataset, individual)
        with snapshot(self._registry.guard(record)) as transaction:
            return individual_record(record, transaction, slot_of(transaction, key), key)

    def divergence(self, dataset: str, individual: str) -> RunDivergence:
        """The divergence of one individual's record along the run, a sealed diagnostic. Raises NotFound."""
        record, key = self._named(dataset, individual)
        return accounts.divergence(record, key, self._registry.writer(record), self._exchange)

    def receipts(self, dataset: str, individual: str, *, cursor: str | None, limit: int) -> Page[Receipt]:
        """The cost of each query to one individual, newest first. Raises NotFound."""
        record, key = self._named(dataset, individual)
        askers = self._principals.askers
        return receipts(record, self._registry.guard(record), key, askers, cursor=cursor, limit=limit)

    def erasure_requests(self, dataset: str, *, cursor: str | None, limit: int) -> Page[str]:
        """The keys of the individuals that ask to be erased, in the order of their requests. Raises NotFound.

        A page looks at `limit` requests. Where all of these are done, the page is empty and has a next page.
        """
        with snapshot(self._registry.guard(self._registry.record(dataset))) as transaction:
            asked = transaction.erasures_asked(after=number_of(cursor, default=0), limit=limit)
            open_slots = [each.slot for each in asked if not each.is_done]
            keys = tuple(key for slot in open_slots for key in _key_in(transaction, slot))
        return Page(items=keys, next=str(asked[-1].number) if len(asked) == limit else None)

    def acts(self, dataset: str, *, cursor: str | None, limit: int) -> Page[ActRow]:
        """The dataset's log of acts, newest first. Raises NotFound, Unavailable, Fenced."""
        return acts(self._registry.guard(self._registry.record(dataset)), cursor=cursor, limit=limit)

    def _named(self, dataset: str, individual: str) -> tuple[DatasetRecord, Key]:
        """The registration, and the key of an individual that a request names. Raises NotFound."""
        record = self._registry.record(dataset)
        return record, record.key_of(individual)

    def _pages(self, dataset: str) -> Iterator[list[BudgetRow]]:
        page = self.budgets(dataset, cursor=None, limit=PAGE_ROWS)
        yield list(page.items)
        while page.next is not None:
            page = self.budgets(dataset, cursor=page.next, limit=PAGE_ROWS)
            yield list(page.items)

    def _change(self, dataset: str, change: Preparation[DatasetRecord]) -> CuratorDataset:
        """Change a registration, and load the dataset under it before anybody asks."""
        record = self._registry.record(dataset)
        writer = self._registry.writer(record)
        changed = self._run_in_background(record, lambda: act_beside(writer, change))
        writer.catch_up()
        return self._counts.of(changed)

    def _as_registered(self, dataset: str, act: Callable[[DatasetRecord], Result]) -> Result:
        """Call `act` with the present registration, and again where the dataset was extended meanwhile.

        Raises NotFound.
        """
        record = self._registry.record(dataset)
        for _ in range(ATTEMPTS_MAX - 1):
            try:
                return self._run_in_background(record, partial(act, record))
            except RegistrationChanged:
                self._registry.writer(record).catch_up()
                record = self._registry.record(dataset)
        return self._run_in_background(record, partial(act, record))

    def _run_in_background(self, record: DatasetRecord, task: Callable[[], Result]) -> Result:
        return in_background(task, name=f"act-{record.name}")


def _key_in(transaction: Transaction, slot: int) -> list[Key]:
    """The key of the individual in a slot; empty where none is."""
    found = transaction.keys_of(after_slot=slot - 1, limit=1, bytes_max=1)
    return [key for taken, key in found if taken == slot]


def erasing(record: DatasetRecord, key: Key, pepper: Pepper) -> Preparation[None]:
    """Delete an individual's rows.

    No other individual gets its slot; an individual that returns keeps its spent total.
    """

    def prepare(transaction: LongAct, base: BaseVersion) -> Operation[None]:
        slot = slot_of(transaction, key)
        transaction.delete_records(slot)
        change = base.records.changed(emptied=np.array([slot]))

        def act(transaction: Transaction, state: DatasetState) -> None:
            # Not earlier: an act that lowers this limit holds the dataset's lock and waits for the account's row.
            transaction.erase(slot, pepper.tombstone(record.id, key))
            transaction.journal("erase", {"slot": slot})
            state.after_commit(lambda: state.put(change))

        return act

    return prepare
