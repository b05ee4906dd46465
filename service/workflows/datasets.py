"""Datasets: their registration, and the views of them for analysts (public) and curators (with counts).

A registration is public and is not read off the data. An extension may add to it (`registration_changes`).
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

import rfc8785
from pydantic import Field

from service.accounting.accountings import Accounting, OrderTooLow, accounting_of
from service.accounting.monitor import Monitor, NoiseTooLarge, monitor_of
from service.core.charge import rho_of_units, units_down
from service.core.laws import Gaussian
from service.ledger.model.errors import DatasetArchived, InvalidRequest, NameTaken, RegistrationChanged, Unavailable
from service.ledger.model.ledger_entry import genesis
from service.ledger.model.rows import DatasetRecord
from service.ledger.model.stated_guarantee import (
    Guarantee,
    GuaranteeMismatch,
    PositiveDecimal,
    StatedAccounting,
    StatedGuarantee,
    stated_accounting,
)
from service.ledger.model.stated_monitor import MonitorFacts, StatedMonitor
from service.ledger.model.views import CuratorDataset, CuratorDatasetRow, DatasetRow, DatasetRule, PublicDataset
from service.ledger.ports.store import Store
from service.ledger.ports.transaction import Transaction
from service.ledger.ports.witness import Witness, WitnessUnavailable
from service.query.keys import KeyComparison
from service.query.schema import ClosedModel, Schema, VectorColumn, doc, optional
from service.reads.ledger import unknown_cursor
from service.reads.monitor import monitor_facts
from service.writer.rollback.losses import refuse_missing

CAPACITY_DEFAULT = 2**20
CAPACITY_MAX = 2**31
VECTOR_BYTES_MAX = 2**32
_NAME = r"^[a-z0-9][a-z0-9_-]{0,62}$"


class Registration(ClosedModel):
    """A dataset to register: its guarantee and its public schema, for good."""

    name: Annotated[str, Field(pattern=_NAME), doc("The name of the dataset, which paths use.")]
    guarantee: Annotated[
        StatedGuarantee, doc("The guarantee to every individual, over everything ever released; it never changes.")
    ]
    capacity: Annotated[
        int,
        Field(strict=True, ge=1, le=CAPACITY_MAX),
        doc("The most individuals that the dataset takes; public, and the bound behind every public cost."),
    ] = CAPACITY_DEFAULT
    tables: Annotated[
        Schema, doc("The public schema: tables, columns and domains. Nothing in it is read off the data.")
    ]
    rule: DatasetRule = "skip"
    monitor: StatedMonitor | None = optional("A continual count of the exhausted, paid from a reserve of each limit.")
    accounting: StatedAccounting = "gdp"
    """The genesis binds the accounting, so that an entry can be priced in one way only."""
    keys: Annotated[
        KeyComparison,
        Field(exclude_if=lambda keys: keys == "exact"),
        doc(
            "How keys are compared in every table: as the texts that they are, without regard to case, as whole numbers"
            " or as UUIDs; for good. They are stored and listed in the form that is compared."
        ),
    ] = "exact"
    limit_floor_rho: Annotated[
        Annotated[PositiveDecimal, Field(le=1_000_000)] | None,
        doc("The smallest limit that an upload may state, in rho; the budget, or 0 with a budget column."),
    ] = None


def register(
    registration: Registration, store: Store, witness: Witness, *, salt: bytes, vector_bytes_max: int = VECTOR_BYTES_MAX
) -> DatasetRecord:
    """Store a new dataset, whose keys will be digested under the `salt`.

    Raises InvalidRequest on a budget below one unit, on a monitor that the budget cannot pay and on vectors that could
    take too much memory; NameTaken on a known name; DatasetMissing on a name that the witness knows and the store
    lacks; Unavailable when the witness cannot be read.
    """
    if store.dataset(registration.name) is not None:
        raise NameTaken
    stated = registration.model_dump(mode="json", by_alias=True)
    accounting = accounting_of(stated["accounting"])
    budget = _budget_units(registration.guarantee, accounting)
    if budget < 1:
        raise InvalidRequest.of("guarantee", "the budget is smaller than one unit of 2^-40 rho")
    floor = _limit_floor(registration, budget)
    monitor = _monitor(registration.monitor, accounting, budget_units=budget, floor_units=floor)
    refuse_vectors(registration.tables, registration.capacity, vector_bytes_max)
    instance = store.deletions(registration.name) + 1
    canonical = rfc8785.dumps(stated if instance == 1 else stated | {"instance": instance})
    record = DatasetRecord(
        id=0,
        name=registration.name,
        guarantee=Guarantee(epsilon=_text(registration.guarantee.epsilon), delta=_text(registration.guarantee.delta)),
        budget_units=budget,
        limit_floor_units=floor,
        capacity=registration.capacity,
        rule=registration.rule,
        accounting=accounting,
        keys=registration.keys,
        monitor=monitor,
        schema=registration.tables,
        genesis=genesis(registration.name, canonical),
        salt=salt,
        instance=instance,
    )
    try:
        refuse_missing(witness, record)
    except WitnessUnavailable as fault:
        raise Unavailable from fault
    return store.add_dataset(record)


def _budget_units(guarantee: StatedGuarantee, accounting: Accounting) -> int:
    try:
        return guarantee.budget_units(accounting)
    except OrderTooLow as refusal:
        raise InvalidRequest.of("accounting.order", str(refusal)) from None
    except GuaranteeMismatch as refusal:
        raise InvalidRequest.of("guarantee", str(refusal)) from None


def _monitor(
    stated: StatedMonitor | None, accounting: Accounting, *, budget_units: int, floor_units: int
) -> Monitor | None:
    """The monitor that is stated. Raises InvalidRequest where it has no price, or leaves nothing for queries."""
    if stated is None:
        return None
    if Gaussian.word not in accounting.mechanisms:
        raise InvalidRequest.of("monitor", "has no finite charge in this dataset: its noise is a Gaussian")
    if units_down(Fraction(stated.rho)) < 1:
        raise InvalidRequest.of("monitor.rho", "is smaller than one unit of 2^-40 rho")
    try:
        monitor = monitor_of(stated.model_dump(mode="json"), budget_units=budget_units)
    except NoiseTooLarge as refusal:
        raise InvalidRequest.of("monitor.rho", f"is too small: {refusal}") from None
    if monitor.reserve_units >= floor_units:
        raise InvalidRequest.of("monitor.rho", "must be below the smallest limit, of which it is kept back")
    if monitor.threshold_units > floor_units - monitor.reserve_units:
        raise InvalidRequest.of("monitor.share", "must be smaller: individuals could have less left from the beginning")
    return monitor


def refuse_vectors(schema: Schema, capacity: int, bytes_max: int) -> None:
    """Raise InvalidRequest, which names a column, if the vectors of all individuals could take over `bytes_max`."""
    people, taken = schema.individuals_name, 0
    for name, column in schema.tables[people].columns.items():
        if isinstance(column, VectorColumn):
            taken += capacity * column.vector_bytes
            if taken > bytes_max:
                message = f"vectors of {capacity} individuals could take {taken} bytes, of at most {bytes_max}"
                raise InvalidRequest.of(f"tables.{people}.columns.{name}", f"{message}: lower capacity or length")


def refuse_changed(record: DatasetRecord, transaction: Transaction) -> None:
    """Raise DatasetArchived, or RegistrationChanged where the dataset has been extended since `record` was read."""
    now = transaction.registration()
    if now.is_archived:
        raise DatasetArchived
    if now.version != record.version:
        raise RegistrationChanged


def _limit_floor(registration: Registration, budget: int) -> int:
    """The smallest limit that an individual may have: the budget itself, unless uploads may state limits."""
    if registration.limit_floor_rho is not None:
        floor = units_down(Fraction(registration.limit_floor_rho))
        if floor > budget:
            raise InvalidRequest.of("limit_floor_rho", "the floor exceeds the dataset's budget")
        return floor
    return 0 if registration.tables.has_budget_column else budget


def _text(number: Decimal | None) -> str | None:
    return None if number is None else str(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """Counts taken at `version` of the data, or at a later one."""

    version: tuple[int, int]
    individuals: int
    rows: dict[str, int]


class Counts:
    """Counts of individuals and rows, cached for each version of a dataset's data: counting a million is slow."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._counted: dict[bytes, _Counted] = {}  # by genesis: a database that was put back gives a number again

    def of(self, record: DatasetRecord) -> CuratorDataset:
        """The dataset with its counts now, or after an act that was committed during the count."""
        seq, counted = self._at_head(record)
        return CuratorDataset(
            sequence=seq,
            individuals=counted.individuals,
            rows=counted.rows,
            warnings=warnings(record, counted.individuals),
            tables=record.schema,
            **_public_facts(record, self._store),
        )

    def row_of(self, record: DatasetRecord) -> CuratorDatasetRow:
        """The dataset as it is listed, with the counts of `of`."""
        seq, counted = self._at_head(record)
        return CuratorDatasetRow(
            sequence=seq,
            individuals=counted.individuals,
            table_names=tuple(record.schema.tables),
            **_public_facts(record, self._store),
        )

    def _at_head(self, record: DatasetRecord) -> tuple[int, _Counted]:
        head = self._store.head(record.id)  # read first, so that the cached counts are not older than their version
        version, counted = (head.fence, head.data_version), self._counted.get(record.genesis)
        if counted is None or counted.version != version:
            individuals, rows = self._store.row_counts(record.id)
            counted = self._counted[record.genesis] = _Counted(version=version, individuals=individuals, rows=rows)
        return head.seq, counted


def warnings(record: DatasetRecord, individuals: int) -> tuple[str, ...]:
    """Probable mistakes in a registration: a delta above 1/n, n being the number of individuals or else the capacity.

    With such a delta somebody's whole record may be published.
    """
    people = individuals or record.capacity
    if record.guarantee.delta is None or Decimal(record.guarantee.delta) * people <= 1:
        return ()
    whose = "the dataset has" if individuals else "the capacity admits"
    large = f"delta is {record.guarantee.delta}, more than 1 in the {people:,} individuals that {whose}"
    return (f"{large}: a guarantee with such a delta may publish the record of one of them",)


def public_dataset(record: DatasetRecord, store: Store) -> PublicDataset:
    """The public part of a dataset. Reads no record, so that its time does not depend on the number of records."""
    return PublicDataset(tables=record.schema, **_public_facts(record, store))


def dataset_row(record: DatasetRecord, store: Store) -> DatasetRow:
    """The dataset as it is listed. Reads no record."""
    return DatasetRow(table_names=tuple(record.schema.tables), **_public_facts(record, store))


def listed_datasets(
    store: Store, bound: str | None, *, cursor: str | None, limit: int
) -> tuple[list[DatasetRecord], str | None]:
    """(datasets that a principal may see, by name; cursor of the next page, which is the last name).

    Raises InvalidRequest on an unknown cursor.
    """
    if cursor is not None and re.fullmatch(_NAME, cursor) is None:
        raise unknown_cursor()
    if bound is not None:
        own = store.dataset(bound) if cursor is None else None
        return ([] if own is None else [own]), None
    found = store.datasets_after(cursor, limit=limit + 1)
    return found[:limit], found[limit - 1].name if len(found) > limit else None


def _public_facts(record: DatasetRecord, store: Store) -> dict[str, Any]:
    return {
        "name": record.name,
        "guarantee": record.guarantee,
        "budget_rho": str(rho_of_units(record.budget_units)),
        "budget_units": record.budget_units,
        "accounting": stated_accounting(record.accounting),
        "monitor": None if record.monitor is None else _monitor_now(record.id, record.monitor, store),
        "unit": record.accounting.unit,
        "mu": record.accounting.mu_of_units(record.budget_units),
        "limit_floor_rho": str(rho_of_units(record.limit_floor_units)),
        "capacity": record.capacity,
        "rule": record.rule,
        "keys": record.keys,
        "epoch": store.head(record.id).epoch,
        "version": record.version,
        "archived": record.is_archived,
    }


def _monitor_now(dataset_id: int, monitor: Monitor, store: Store) -> MonitorFacts:
    with store.transaction(dataset_id, lock=False) as transaction:
        return monitor_facts(monitor, transaction)
