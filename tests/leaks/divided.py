"""The worlds of `tests.leaks.worlds` over three shards: the one person has a shard alone, the others the other two."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from service.engine.memory import NO_SLOTS
from service.ledger.model.journal import told_slots
from service.ledger.ports.telemetry import NULL_TELEMETRY
from service.query.division import PAGE_SLOTS
from service.workflows.replica import Replica
from tests.factories import SeededEntropy, open_replica, register, upload
from tests.leaks.worlds import (
    KINDS,
    RHO,
    TABLES,
    Kind,
    N,
    Row,
    World,
    people,
    session,
    slot_of_one,
    upload_people,
    visits_of,
)
from tests.memory.shards import MemoryShards, dividing
from tests.memory.store import MemoryStore

SHARDS: Final = 3
TIMED: Final = {"accounts", "prepare"}
"""Calls that follow on a pause between queries, and looks, which are had again where a query is under way."""


@dataclass
class DividedWorld(World):
    """And the calls of each shard at each exchange."""

    calls: list[list[list[str]]]


def pages_of_one(*, is_last: bool) -> tuple[int, int]:
    """How many come before the second page begins and before the third: the one person has a page alone."""
    place = slot_of_one(is_last=is_last)
    return ((N - 1) // 2, place) if is_last else (place, place + 1)


def divided_slot_of_one(*, is_last: bool) -> int:
    """The slot of the one person, the first of its page."""
    return (2 if is_last else 1) * PAGE_SLOTS


@contextmanager
def divided_dataset(
    one: str, kind: Kind, *, is_last: bool = True
) -> Iterator[tuple[Replica, MemoryShards, MemoryStore]]:
    """A replica with the dataset over three shards, with the one person as the kind says."""
    store, backend = MemoryStore(), MemoryShards()
    with open_replica(store, SeededEntropy(9), options=dividing(backend, SHARDS)) as replica:
        register(replica, rho=RHO, tables=TABLES, capacity=SHARDS * PAGE_SLOTS)
        present: list[Row | None] = [row for row in people() if row[0] != one]
        own = kind.row(next(row for row in people() if row[0] == one))
        present.insert(slot_of_one(is_last=is_last), own)
        second, third = pages_of_one(is_last=is_last)
        for page, rows in enumerate((present[:second], present[second:third], present[third:])):
            _turn_to(store, page)
            if any(rows):
                upload_people(replica, [row for row in rows if row is not None])
        keys = {row[0] for row in present if row is not None}
        upload(replica, "visits", [visit for visit in visits_of(one, kind.visits) if visit[0] in keys])
        kind.before(replica, one)
        yield replica, backend, store


def _turn_to(store: MemoryStore, page: int) -> None:
    """Hand out all slots before a page to individuals that never come."""
    if page > 0:
        with store.transaction(1, lock=True) as transaction:
            detail = {"table": "people", **told_slots(joined=NO_SLOTS, rows=NO_SLOTS)}
            transaction.journal("rows", detail, slots=page * PAGE_SLOTS)
            transaction.commit()


def lived_divided(one: str, kind: str, *, is_last: bool = True) -> DividedWorld:
    """The world of `lived`, over three shards."""
    counted: list[list[int]] = []
    with divided_dataset(one, KINDS[kind], is_last=is_last) as (replica, backend, store):

        def amid() -> None:
            KINDS[kind].amid(replica, one)

        def note() -> None:
            counted.append([len(channel.calls) for channel in backend.channels])

        exchanges = asyncio.run(session(replica, NULL_TELEMETRY, amid=amid, each=note))
        with store.transaction(1, lock=False) as transaction:
            entries = list(transaction.entries(after=0))
        accounts = {
            row.key: row.spent_units for row in replica.curators.budgets("survey", cursor=None, limit=1000).items
        }
        calls = [
            [
                [call for call in channel.calls[begin:end] if call not in TIMED]
                for channel, begin, end in zip(backend.channels, before, after, strict=True)
            ]
            for before, after in zip(counted[::2], counted[1::2], strict=True)
        ]
    return DividedWorld(exchanges, entries, accounts, calls)
