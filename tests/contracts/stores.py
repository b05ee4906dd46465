"""Fixtures for the contract suites: a small dataset, entries that chain, and both stores by name."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import numpy as np
from numpy.typing import NDArray

from service.arrays import uniform
from service.engine.pages import PageTotals
from service.ledger.model.ledger_entry import LedgerEntry, answer_digest
from service.ledger.model.pieces import Measure, Quantities, pieces_of
from service.ledger.model.rows import AnswerRecord, DatasetRecord, Head, PrincipalRecord
from service.ledger.model.stated_guarantee import Guarantee
from service.ledger.ports.store import Store
from service.query.division import PAGE_SLOTS
from service.query.keys import Key
from service.query.schema import Schema
from service.store.postgres.store import PostgresStore
from tests.digests import SALT
from tests.keys import LEDGER_KEY
from tests.memory.store import MemoryStore

STORES = ("memory", "postgres")
ANALYST = UUID(int=7)
AT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
WORST_CASE_UNITS = 1_374_389_535
SCHEMA = Schema.model_validate(
    {
        "people": {
            "kind": "individuals",
            "key": "person_id",
            "columns": {
                "country": {"type": "category", "categories": ["NO", "SE"]},
                "age": {"type": "integer", "lower": -5, "upper": 120},
                "spend": {"type": "real", "lower": -2.5, "upper": 500},
                "member": {"type": "boolean"},
                "limit_rho": {"type": "budget"},
            },
        },
        "visits": {"kind": "events", "key": "person_id", "columns": {"item": {"type": "category", "size": 100_000}}},
    }
)


@contextmanager
def open_store(name: str, database_url: str | None) -> Iterator[Store]:
    """A fresh store of one kind."""
    if name == "memory":
        yield MemoryStore()
        return
    if database_url is None:
        raise ValueError("the Postgres store needs a database")
    store = PostgresStore(database_url, LEDGER_KEY)
    yield store
    store.close()


def dataset(name: str = "survey") -> DatasetRecord:
    """A registration that is not stored yet."""
    return DatasetRecord(
        id=0,
        name=name,
        guarantee=Guarantee(epsilon="1", delta="1E-6"),
        budget_units=30_802_248_609,
        limit_floor_units=0,
        capacity=200_000,
        rule="skip",
        schema=SCHEMA,
        genesis=bytes(31) + b"g",
        salt=SALT,
    )


def entry(
    head: Head, charged: dict[int, int], left_out: tuple[int, ...] = (), *, slots: int = 200_000, **other: Any
) -> LedgerEntry:
    """The entry that continues a head: `charged` units by slot, of `slots` slots; others would pay the worst case."""
    return _entry(head, charged, left_out, Measure.UNITS, unpaid=WORST_CASE_UNITS, slots=slots, **other)


def priced_entry(
    head: Head,
    charged: dict[int, int],
    left_out: tuple[int, ...] = (),
    *,
    slots: int = 200_000,
    one_norm: bool = False,
    **other: Any,
) -> LedgerEntry:
    """The entry that continues a head, by squared norms; each slot left out has the squared norm 1."""
    measure = Measure.ONE_NORM if one_norm else Measure.NORMS
    return _entry(head, charged, left_out, measure, unpaid=1, slots=slots, **other)


def _entry(
    head: Head,
    charged: dict[int, int],
    left_out: tuple[int, ...],
    measure: Measure,
    *,
    unpaid: int,
    slots: int,
    query_id: UUID | None = None,
    salt: bytes = bytes(range(32)),
    **other: Any,
) -> LedgerEntry:
    touched = np.array(sorted([*charged, *left_out]), dtype=np.int64)
    amounts = np.array([charged.get(slot, unpaid) for slot in touched.tolist()], dtype=np.int64)
    told = Quantities(
        measure=measure,
        touched=touched,
        active=np.isin(touched, list(charged)),
        amounts=uniform(int(amounts[0]), amounts.size) if measure is Measure.ONE_NORM else amounts,
    )
    draft = LedgerEntry(
        seq=head.seq + 1,
        query_id=query_id or uuid4(),
        analyst_id=ANALYST,
        analyst="ana",
        epoch=head.epoch,
        canonical=b'{"version":1}',
        query_hash="q",
        sigma=20.0,
        grid_log2=0,
        dimension=2,
        worst_case_units=WORST_CASE_UNITS,
        worst_case_total_units=head.worst_case_units + WORST_CASE_UNITS,
        charged_count=len(charged),
        left_out_count=len(left_out),
        charged_units=0,
        values=np.array([5, -3], dtype=">i8").tobytes(),
        asked_at=AT,
        previous_hash=head.hash,
        hash=b"",
        salt=salt,
        pieces=pieces_of(told.blocks(), told.measure, amount_max=2**62, slots=slots, salt=salt),
        answer_digest=answer_digest(salt, ANALYST, f"key-{head.seq + 1}"),
        acts=head.data_version,
        acts_hash=head.journal_hash,
    )
    draft = replace(draft, charged_units=sum(draft.decode()[1].tolist()))
    return replace(draft, **other).sealed()


def spent_by(entries: Iterable[LedgerEntry], slots: int) -> NDArray[np.int64]:
    """The spent total of each slot after these entries, from nothing, (slots,) units."""
    spent = np.zeros(slots, dtype=np.int64)
    for each in entries:
        charged, charges, _ = each.decode()
        spent[charged] += charges
    return spent


def totals(entries: Iterable[LedgerEntry], page: int = 0) -> PageTotals:
    """The totals of a page after these entries, added up slot by slot."""
    found = PageTotals.zero()
    for each in entries:
        charged, charges, left_out = (part.tolist() for part in each.decode())
        for slot, units in zip(charged, charges, strict=True):
            if slot // PAGE_SLOTS == page:
                found.spent[slot % PAGE_SLOTS] += units
                found.charged[slot % PAGE_SLOTS] += each.kind == "query"
        for slot in left_out:
            if slot // PAGE_SLOTS == page:
                found.left_out[slot % PAGE_SLOTS] += each.kind == "query"
    return found


def burn(head: Head, charged: dict[int, int]) -> LedgerEntry:
    """The burn that continues a head: no answer, no noise, only charges."""
    return entry(
        head,
        charged,
        kind="burn",
        canonical=b'{"burn":{"units":"9","why":"ledger-rollback"}}',
        settled=b"[1,9,3]",
        query_hash="",
        sigma=0.0,
        dimension=0,
        values=b"",
    )


def answer(shown: LedgerEntry, key: str = "key-1") -> AnswerRecord:
    """The stored answer that shows an entry."""
    return AnswerRecord(
        principal_id=ANALYST,
        key=key,
        request_hash=bytes(31) + b"r",
        seq=shown.seq,
        query_id=shown.query_id,
        body=b'{"values":[5,-3]}',
        at=AT,
    )


def wall_clock() -> datetime:
    """The machine's clock, by which both stores note when an act came."""
    return datetime.now(UTC)


def append(
    store: Store,
    record: DatasetRecord,
    charged: dict[int, int],
    left_out: tuple[int, ...] = (),
    *,
    key: str | None = None,
    units: int | None = None,
) -> LedgerEntry:
    """Commit the next entry with its answer, and what the query may cost the analyst if that is told."""
    with store.transaction(record.id, lock=True) as transaction:
        made = entry(transaction.head, charged, left_out)
        cost = {} if units is None else {ANALYST: units}
        transaction.append([made], [answer(made, key or f"key-{made.seq}")], cost)
        transaction.commit()
    return made


def ledger(store: Store, record: DatasetRecord) -> list[LedgerEntry]:
    """All entries."""
    with store.transaction(record.id, lock=False) as transaction:
        return list(transaction.entries(after=0))


def join(store: Store, record: DatasetRecord, limits: Mapping[str, int]) -> None:
    """Commit the first individuals, by key, with their limits."""
    with store.transaction(record.id, lock=True) as transaction:
        transaction.add_individuals(np.arange(len(limits)), list(map(Key, limits)), np.array(list(limits.values())))
        transaction.journal("rows", {}, slots=len(limits))
        transaction.commit()


def principal(number: int, **fields: Any) -> PrincipalRecord:
    """A principal that is not stored yet: an analyst of all datasets unless the fields say otherwise."""
    usual: dict[str, Any] = {
        "id": UUID(int=number),
        "role": "analyst",
        "name": f"ana {number}",
        "dataset": None,
        "individual": None,
        "allowance_units": None,
        "key_hash": bytes(32),
        "created_at": AT,
    }
    return PrincipalRecord(**(usual | fields))
