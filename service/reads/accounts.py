"""Accounts for individuals and curators: from memory, from the cache of other replicas, or from the database.

The caller's thread reads a snapshot of the database to learn which accounts are wanted and the position of the ledger.
It copies the accounts from memory, if the writer has caught up with the snapshot and pauses soon. Otherwise it uses
slices of accounts from the cache, but only slices of exactly the database's position: the same registration, fence,
sequence, hash and data version. If the cache lacks them too, the account of a single individual is read from the
database, outside the writer. For a page of accounts the writer catches up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from service.ledger.model.errors import Unavailable
from service.ledger.model.individual_views import MyBudget, RunDivergence
from service.ledger.model.rows import DatasetRecord, Head, OwnAccount
from service.ledger.model.views import BudgetRow, Page
from service.ledger.ports.cache import SLICE_SLOTS, AccountSlice, LedgerPosition
from service.ledger.ports.transaction import Transaction
from service.query.keys import Key
from service.reads.ledger import (
    PAGE_BYTES_MAX,
    Promised,
    budget_row,
    is_full,
    my_budget_view,
    number_of,
    promised,
    run_divergence,
    slot_of,
    snapshot,
)
from service.writer.replication.exchange import ReplicaExchange
from service.writer.state import DatasetState
from service.writer.threads import WriterThread

SLICES_MAX: Final = 16
"""More slices than this are neither read nor shared: accounts in so many slices are read faster from memory."""

People = Sequence[tuple[int, Key]]
"""(slot, key) of each individual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The individuals whose accounts are wanted, and the head of the snapshot that listed them."""

    people: People
    place: LedgerPosition
    head: Head

    @classmethod
    def of(cls, record: DatasetRecord, transaction: Transaction, people: People) -> Self:
        """The accounts of `people`, as of a snapshot."""
        return cls(people=people, place=LedgerPosition.of(record, transaction.head), head=transaction.head)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the slices that hold the accounts."""
        return sorted({slot // SLICE_SLOTS for slot, _ in self.people})


def my_budget(record: DatasetRecord, key: Key, writer: WriterThread, exchange: ReplicaExchange) -> MyBudget:
    """One individual's own account. Raises NotFound, Unavailable, Fenced."""
    wanted, promise = _promised(record, key, writer)
    return my_budget_view(record, _one(wanted, writer, exchange), promise)


def one_account(record: DatasetRecord, key: Key, writer: WriterThread, exchange: ReplicaExchange) -> BudgetRow:
    """One individual's account for a curator. Raises NotFound, Unavailable, Fenced."""
    with snapshot(writer.guard) as transaction:
        wanted = Wanted.of(record, transaction, [(slot_of(transaction, key), key)])
    return budget_row(key, _one(wanted, writer, exchange))


def divergence(record: DatasetRecord, key: Key, writer: WriterThread, exchange: ReplicaExchange) -> RunDivergence:
    """The divergence of one individual's record along the run, for a curator. Raises NotFound, Unavailable, Fenced."""
    wanted, promise = _promised(record, key, writer)
    return run_divergence(record, _one(wanted, writer, exchange), promise, key=key, sequence=wanted.head.seq)


def budgets(
    record: DatasetRecord, writer: WriterThread, exchange: ReplicaExchange, *, cursor: str | None, limit: int
) -> Page[BudgetRow]:
    """The individuals' accounts in slot order; the cursor is the last slot shown. Raises Unavailable, Fenced, Busy."""
    after = number_of(cursor, default=-1)
    with snapshot(writer.guard) as transaction:
        people = transaction.keys_of(after_slot=after, limit=limit, bytes_max=PAGE_BYTES_MAX)
        wanted = Wanted.of(record, transaction, people)
    found = _without_waiting(wanted, writer, exchange)
    if found is None:
        found = _caught_up(wanted, writer, exchange)
    items = tuple(budget_row(key, account) for (_, key), account in zip(people, found, strict=True))
    has_next = is_full([len(key.encode()) for _, key in people], limit=limit)
    return Page(items=items, next=str(people[-1][0]) if has_next else None)


def _promised(record: DatasetRecord, key: Key, writer: WriterThread) -> tuple[Wanted, Promised]:
    """The individual whose account is wanted, and its promise, both from one snapshot."""
    with snapshot(writer.guard) as transaction:
        slot = slot_of(transaction, key)
        return Wanted.of(record, transaction, [(slot, key)]), promised(record, transaction, slot)


def _one(wanted: Wanted, writer: WriterThread, exchange: ReplicaExchange) -> OwnAccount:
    """The one account that is wanted. It is read from the database where neither memory nor the cache has it."""
    found = _without_waiting(wanted, writer, exchange)
    if found is not None:
        return found[0]
    ((_, key),) = wanted.people
    with snapshot(writer.guard) as transaction:
        return transaction.account_of(slot_of(transaction, key))


def _without_waiting(wanted: Wanted, writer: WriterThread, exchange: ReplicaExchange) -> list[OwnAccount] | None:
    """The accounts from memory or the cache, without waiting long for the writer; None if neither has them."""
    look = partial(_copied, wanted, exchange)
    copied = writer.peek(look) or writer.look_soon(look)
    return _from_cache(wanted, exchange) if copied is None else _share(copied, exchange)


def _caught_up(wanted: Wanted, writer: WriterThread, exchange: ReplicaExchange) -> list[OwnAccount]:
    """The accounts from memory, after memory has caught up with the database. Raises Unavailable."""
    writer.catch_up()
    copied = writer.look(partial(_copied, wanted, exchange))
    if copied is None:
        raise Unavailable
    return _share(copied, exchange)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Copied:
    """Accounts in the order of `Wanted.people`, as one column for each field of OwnAccount; and slices to share."""

    columns: Sequence[NDArray[Any]]
    slices: Sequence[AccountSlice]


def _copied(wanted: Wanted, exchange: ReplicaExchange, state: DatasetState) -> _Copied | None:
    """A copy of the wanted accounts, and of slices that the cache lacks; None if memory is behind the snapshot."""
    if not state.has_come_to(wanted.head):
        return None
    slots = np.array([slot for slot, _ in wanted.people], dtype=np.int64)
    numbers = wanted.numbers if state.is_at(wanted.head) else []
    missing = [number for number in numbers if exchange.wants(wanted.place, number)]
    return _Copied(
        columns=state.copy_accounts(slots)[:-1],
        slices=[_slice(wanted.place, number, state) for number in missing if len(numbers) <= SLICES_MAX],
    )


def _share(copied: _Copied, exchange: ReplicaExchange) -> list[OwnAccount]:
    """The copied accounts, as rows. The copied slices are shared through the cache."""
    exchange.read(copied.slices)
    return [OwnAccount(*own) for own in zip(*(column.tolist() for column in copied.columns), strict=True)]


def _from_cache(wanted: Wanted, exchange: ReplicaExchange) -> list[OwnAccount] | None:
    """The accounts from the cache; None unless the cache has all of them at the wanted position."""
    if not exchange.is_open or len(wanted.numbers) > SLICES_MAX:
        return None
    slices = exchange.slices(wanted.place.genesis, wanted.numbers)
    current = {each.number: each for each in slices if each.place == wanted.place}
    found = []
    for slot, _ in wanted.people:
        number, row = divmod(slot, SLICE_SLOTS)
        held = current.get(number)
        if held is None or row >= held.limits.size:
            return None
        columns = (held.limits, held.spent, held.paused, held.charged, held.left_out)
        found.append(OwnAccount(*(column[row].item() for column in columns)))
    return found


def _slice(place: LedgerPosition, number: int, state: DatasetState) -> AccountSlice:
    """A copy of one slice of accounts."""
    copied = state.copy_accounts(slice(number * SLICE_SLOTS, (number + 1) * SLICE_SLOTS))
    return AccountSlice(
        place=place,
        number=number,
        limits=copied.limit,
        spent=copied.spent,
        paused=copied.paused,
        charged=copied.charged,
        left_out=copied.left_out,
    )
