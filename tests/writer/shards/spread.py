"""A dataset of which each of three shards has people: a few on both sides of the edges of three pages."""

import numpy as np

from service.ledger.model.journal import told_slots
from service.maintenance.verify.report import verify_all
from service.query.columns import codings_of
from service.query.division import PAGE_SLOTS
from service.query.keys import Key
from service.workflows.replica import Replica
from tests.digests import with_digests
from tests.factories import PEOPLE, VISITS, register, upload
from tests.memory.store import MemoryStore

SLOTS = [*range(60), *range(PAGE_SLOTS - 60, PAGE_SLOTS + 60), *range(2 * PAGE_SLOTS, 2 * PAGE_SLOTS + 60)]
"""The slots of the people: the others were handed out and never came back, as after erasures."""
KEYS = {slot: f"p{slot}" for slot in SLOTS}
SEEN = (KEYS[0], KEYS[PAGE_SLOTS - 1], KEYS[PAGE_SLOTS], KEYS[2 * PAGE_SLOTS + 3])
"""The keys on both sides of the edges of pages."""


def filled(replica: Replica, store: MemoryStore, **more: int) -> None:
    """The dataset with its people and some visits."""
    visits = VISITS | {"unknown_individuals": "create", "rows_per_individual": 4} | more
    register(replica, tables={"people": PEOPLE, "visits": visits}, capacity=200_000)
    record = replica.registry.record("survey")
    slots, number = np.array(SLOTS), np.arange(len(SLOTS))
    codings = codings_of(record.schema.tables["people"].columns)
    codes = {"country": number % 2, "age": number % 90, "spend": number % 7 * 1000}
    with store.transaction(1, lock=True) as transaction:
        transaction.add_individuals(slots, list(map(Key, KEYS.values())), np.full(slots.size, record.budget_units))
        columns = {name: codes[name].astype(coding.dtype) for name, coding in codings.items()}
        transaction.add_records("people", slots, with_digests(columns, KEYS.values()))
        everybody = np.arange(slots[-1] + 1)
        transaction.journal("rows", told_slots(joined=everybody, rows=slots), slots=everybody.size)
        transaction.commit()
    upload(replica, "visits", [(key, 1 + at % 3) for at, key in enumerate(KEYS.values()) if at % 4 == 0])


def findings(store: MemoryStore) -> list[str]:
    """The findings of a verification, without those that most slots hold nobody."""
    return [each for report in verify_all(store) for each in report.findings if not each.startswith("individuals")]
