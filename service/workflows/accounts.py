"""Accounts as individuals and curators read them: from memory, or from what another reading has left in the cache.

A line that holds the dataset and has nothing else to do is asked at once. Where it is busy, or would first have to load
a million people, slices of accounts may be at hand in the cache. They count only if they were taken at exactly the
place at which the database stands: the same registration, fence, sequence, hash and version of the records. A slice
that is older, or ahead, is as good as none.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from service.workflows.caching import SLICE_SLOTS, AccountSlice, Place
from service.workflows.desk import Act
from service.workflows.errors import Unavailable
from service.workflows.ports import StoreUnavailable, Transaction
from service.workflows.reading import budget_row, my_budget_view, number_of, slot_of
from service.workflows.records import DatasetRecord
from service.workflows.sharing import Exchange
from service.workflows.state import DatasetState
from service.workflows.threads import DatasetWriter
from service.workflows.views import BudgetRow, MyBudget, Page

SLICES_MAX: Final = 16
"""More slices than this are neither sought nor left: people so scattered are found faster in memory."""

Wanted = Callable[[Transaction], Sequence[tuple[int, str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One individual's account, in units."""

    slot: int
    key: str
    limit: int
    spent: int


def my_budget(record: DatasetRecord, key: str, line: DatasetWriter, exchange: Exchange) -> MyBudget:
    """One individual's own account. Raises NotFound."""
    (mine,) = _accounts(lambda transaction: [(slot_of(transaction, key), key)], record, line, exchange)
    return my_budget_view(record, mine.limit, mine.spent)


def budgets(
    record: DatasetRecord, line: DatasetWriter, exchange: Exchange, *, cursor: str | None, limit: int
) -> Page[BudgetRow]:
    """The individuals' accounts in slot order; the cursor is the last slot shown."""
    after = number_of(cursor, default=-1)
    found = _accounts(lambda transaction: transaction.keys_of(after_slot=after, limit=limit), record, line, exchange)
    items = tuple(budget_row(account.key, account.limit, account.spent) for account in found)
    return Page(items=items, next=str(found[-1].slot) if len(found) == limit else None)


def _accounts(wanted: Wanted, record: DatasetRecord, line: DatasetWriter, exchange: Exchange) -> list[Account]:
    found = None if line.is_at_hand or not exchange.is_open else _from_slices(wanted, record, line, exchange)
    return line.read(_from_memory(wanted, record, exchange)) if found is None else found


def _from_memory(wanted: Wanted, record: DatasetRecord, exchange: Exchange) -> Act[list[Account]]:
    """The line's own reading, which leaves what it has looked at for others."""

    def reading(transaction: Transaction, state: DatasetState) -> list[Account]:
        people, accounts = wanted(transaction), state.memory.accounts
        place, numbers = Place.of(record, transaction.head), _numbers(people)
        missing = [number for number in numbers if exchange.wants(place, number)] if len(numbers) <= SLICES_MAX else []
        exchange.read([_slice(place, number, state) for number in missing])
        return [
            Account(slot=slot, key=key, limit=int(accounts.limit[slot]), spent=int(accounts.spent[slot]))
            for slot, key in people
        ]

    return reading


def _from_slices(
    wanted: Wanted, record: DatasetRecord, line: DatasetWriter, exchange: Exchange
) -> list[Account] | None:
    """The same from the cache; None unless all of it is there, and of now."""
    try:
        with line.guard.transaction(lock=False) as transaction:
            people, place = wanted(transaction), Place.of(record, transaction.head)
    except StoreUnavailable as fault:
        raise Unavailable from fault
    numbers = _numbers(people)
    if len(numbers) > SLICES_MAX:
        return None
    current = {each.number: each for each in exchange.slices(record.genesis, numbers) if each.place == place}
    found = []
    for slot, key in people:
        number, row = divmod(slot, SLICE_SLOTS)
        held = current.get(number)
        if held is None or row >= held.limits.size:
            return None
        found.append(Account(slot=slot, key=key, limit=int(held.limits[row]), spent=int(held.spent[row])))
    return found


def _numbers(people: Iterable[tuple[int, str]]) -> list[int]:
    return sorted({slot // SLICE_SLOTS for slot, _ in people})


def _slice(place: Place, number: int, state: DatasetState) -> AccountSlice:
    """A copy: memory goes on."""
    rows, accounts = slice(number * SLICE_SLOTS, (number + 1) * SLICE_SLOTS), state.memory.accounts
    return AccountSlice(
        place=place, number=number, limits=accounts.limit[rows].copy(), spent=accounts.spent[rows].copy()
    )
