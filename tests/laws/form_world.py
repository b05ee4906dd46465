"""Datasets in which a block says something: from nobody to everybody present, some exhausted, paused or erased.

The records are those of the few people of `node_world`, given to many.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.core.charge import LIMIT_UNITS_MAX
from service.core.release import Block
from service.ledger.model.analyst_views import StoredAnswer
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.rows import DatasetRecord, Head, SlotsInUse
from service.ledger.model.views import Principal
from service.query.division import PAGE_SLOTS
from service.query.keys import Key
from service.query.plan import Plan
from service.writer.batch import Batch
from service.writer.shards.divided import DividedShards
from service.writer.shards.shard import Shard
from service.writer.state import DatasetState
from service.writer.submission import QueryRequest
from tests.contracts.stores import dataset
from tests.core.contributions import sparse
from tests.core.injected import seeded
from tests.digests import with_digests
from tests.laws.forms import Form, as_they_come
from tests.laws.node_world import CAPACITY, SCHEMA, codes_of, crowd
from tests.memory.shards import divided
from tests.memory.store import MemoryConditionalAppend, MemoryStore
from tests.memory.transaction import MemoryTransaction

SLOTS = PAGE_SLOTS + 5003
"""Three stretches of pieces, on two pages; the last of either is not full."""
FIVE_PAGES = 4 * PAGE_SLOTS + 5003
ANALYST = Principal(id=UUID(int=1), role="analyst", name="ana", dataset=None, individual=None, allowance_units=None)
AT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
LIMITS = (0, 1, 2, 3, 5, 8, 40)
"""By slot, in thirds of the most that the queries may charge."""


@dataclass(frozen=True, kw_only=True)
class World:
    """A dataset as it is stored, and the snapshot that every replica is loaded from."""

    store: MemoryStore
    record: DatasetRecord
    snapshot: MemoryTransaction

    @property
    def head(self) -> Head:
        """The head of its ledger."""
        return self.snapshot.head

    def state(
        self,
        plans: Sequence[Plan],
        form: Form = as_they_come,
        *,
        without: int | None = None,
        shards: int = 1,
        opened: DividedShards | None = None,
    ) -> DatasetState:
        """A replica's memory, with limits such that these plans exhaust some people and not others.

        Some are paused and some are erased, `without` too. One shard gives its blocks in another form.
        """
        shard = ReformedShard(self.record)
        shard.form = form
        several = divided(self.record, shards) if shards > 1 else opened
        state = DatasetState(self.record, shards=several or shard)
        state.catch_up(self.snapshot)
        slots = np.arange(self.head.slots)
        most = max(plan.scale.worst_case_units for plan in plans)
        thirds = np.array([min(part * most // 3, LIMIT_UNITS_MAX) for part in LIMITS])
        are_there = state.copy_accounts(slots).present
        accounts = SlotsInUse(
            slots=slots, limits=thirds[slots * 13 % 17 % len(LIMITS)], present=are_there, paused=slots * 5 % 23 == 3
        )
        state.shards.set_accounts(accounts)
        gone = {*np.flatnonzero(are_there)[3::9001].tolist(), *([] if without is None else [without])}
        state.put(state.records().changed(emptied=np.array(sorted(gone), dtype=np.int64)))
        return state


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A batch that was answered: where the ledger stands after it, its entries, and what the analyst is sent."""

    head: Head
    entries: list[LedgerEntry]
    bodies: list[bytes]

    def bytes_of(self) -> dict[str, Any]:
        """All that is written of the batch."""
        return {
            "bodies": self.bodies,
            "values": [entry.values for entry in self.entries],
            "hashes": [entry.hash for entry in self.entries],
            "pieces": [[(piece.number, piece.content, piece.digest) for piece in each.pieces] for each in self.entries],
            "digests": [(entry.pieces_digest, entry.private_digest) for entry in self.entries],
            "counts": [(each.charged_count, each.left_out_count, each.charged_units) for each in self.entries],
        }


@cache
def world(density: float, all_slots: int = SLOTS) -> World:
    """So large a part of all slots hold an individual."""
    store = MemoryStore()
    record = store.add_dataset(replace(dataset(), schema=SCHEMA, capacity=CAPACITY))
    slots = np.flatnonzero(np.random.default_rng(5).random(all_slots) < density)
    who = slots * 7919 % 31 % len(crowd())
    records = [record_ for record_, _ in crowd().values()]
    visits = [rows for _, rows in crowd().values()]
    owners = np.repeat(slots, [len(visits[each]) for each in who.tolist()])
    starts = np.cumsum([0, *(len(rows) for rows in visits)])
    rows = [np.arange(starts[each], starts[each + 1]) for each in range(len(visits))]
    chosen = np.concatenate([np.empty(0, dtype=np.int64), *(rows[each] for each in who.tolist())])
    with store.transaction(record.id, lock=True) as transaction:
        transaction.add_individuals(slots, [Key(f"p{slot}") for slot in slots.tolist()], np.zeros(slots.size, np.int64))
        transaction.add_records("people", slots, with_digests(_taken(codes_of("people", records), who), slots))
        all_visits = [row for rows_ in visits for row in rows_]
        transaction.add_records("visits", owners, _taken(codes_of("visits", all_visits), chosen))
        transaction.journal("rows", {}, slots=all_slots)
        transaction.commit()
    return World(store=store, record=record, snapshot=MemoryTransaction(store, record.id, lock=False))


def _taken(codes: dict[str, NDArray[Any]], rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    return {name: column[rows] for name, column in codes.items()}


class ReformedShard(Shard):
    """A shard whose blocks come in another form."""

    form: Form = staticmethod(as_they_come)

    def contributions(self, plan: Plan) -> Iterator[Block]:
        """The individuals, vectors and norms of the engine, in the form of this world."""
        return self.form(map(sparse, super().contributions(plan)))


def ask(state: DatasetState, plans: Sequence[Plan], head: Head, *, words: int = 3) -> Asked:
    """One batch of fresh queries at `head`, not committed; the noise is the same for the same words."""
    appended = MemoryConditionalAppend(MemoryStore(), state.record.id, head, asked=())
    batch = Batch(transaction=appended, state=state, entropy=seeded(words))
    requests = [
        QueryRequest(
            analyst=ANALYST,
            key=f"{words} {number}",
            request_hash=bytes(32),
            plan=replace(plan, reuse=False),
            accepted_at=AT,
            version=state.record.version,
        )
        for number, plan in enumerate(plans)
    ]
    bodies = [bytes(outcome.body) for outcome in batch.answer_all(requests) if isinstance(outcome, StoredAnswer)]
    assert len(bodies) == len(plans)
    return Asked(head=appended.head, entries=batch.entries, bodies=bodies)


def told(state: DatasetState) -> dict[str, Any]:
    """All that a replica's memory says about accounts, counters and pages, as bytes where it is long."""
    written, columns = state.checkpoint(), state.copy_accounts(slice(0, state.slots_used))._asdict()
    pages = {
        number: [each.tobytes() for each in (totals.spent, totals.charged, totals.left_out)]
        for number, totals in written.pages.items()
    }
    return {name: column.tobytes() for name, column in columns.items()} | {
        "pages": pages,
        "checkpoint": (written.since, written.seq, written.hash),
        "position": state.position,
    }
