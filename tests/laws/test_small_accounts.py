"""Every reachable state of one individual with a small account, under every rule and every order of events.

Nothing is sampled: all states with limits up to six prices and prices up to four are visited from every limit, through
queries, burns, pauses, lowered limits, erasures, returns, corrections and starts. Each query and burn makes an entry of
the ledger, and the entries that lead to a state give it again when they are replayed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from service.core.laws import Gaussian
from service.core.release import Contributions, QueryTerms, Release
from service.core.renyi_filter import Touched
from service.engine.pages import Counters
from service.ledger.model.journal import told_slots
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.pieces import pieces_of
from service.maintenance.reconcile import burn
from service.query.division import PAGE_SLOTS
from service.query.keys import Key
from service.writer.shards.shard import measure_of
from service.writer.state import DatasetState
from tests.contracts.stores import AT, dataset, entry
from tests.core.injected import seeded
from tests.core.releases import answer
from tests.memory.shards import only_shard
from tests.memory.store import MemoryStore

LIMIT_MAX, PRICE_MAX = 6, 4
UNIT = 2
"""Units of a squared step at SIGMA: 2^40 / (2 * 2^38)."""
SIGMA = 2.0**19
STEP = 2**8
"""Steps of a vector's entry: a price of one is STEP^2 squared steps, so that a shortened vector is not zero at once."""
FINE_SIGMA = SIGMA * STEP
BURNS = (1, 2 * UNIT + 1, LIMIT_MAX * UNIT)
FIRST = slice(0, 1)


class State(NamedTuple):
    """An account in prices and their fractions: `spent` in units, and who it is."""

    limit: int
    largest: int
    spent: int
    is_out: bool
    is_paused: bool
    is_present: bool


class Query(NamedTuple):
    """A query: its price for the record as it is now, and whether it shortens."""

    price: int
    shortens: bool


Later = tuple[State, list[LedgerEntry]]
"""The step after a state: another state, and the entries that were made."""
QUERIES = [Query(price, shortens) for price in range(PRICE_MAX + 1) for shortens in (False, True)]


class Account:
    """The memory of a dataset of one individual, which is put into a state and follows what happens."""

    def __init__(self, rule: str) -> None:
        self.rule, self.store = rule, MemoryStore()
        self.state = DatasetState(self.store.add_dataset(dataset()))
        with self.store.transaction(1, lock=True) as transaction:
            transaction.add_individuals(np.array([0]), [Key("p0")], np.array([LIMIT_MAX * UNIT]))
            transaction.journal("rows", told_slots(joined=np.arange(1), rows=np.arange(1)), slots=1)
            transaction.commit()
            self.state.catch_up(transaction)

    def stand(self, state: State) -> None:
        """Put memory into a state."""
        accounts = only_shard(self.state).memory.accounts
        accounts.set_limits(FIRST, state.limit * UNIT)
        accounts.set_spent(FIRST, state.spent)
        accounts.paused[FIRST] = state.is_paused
        only_shard(self.state).memory.counters.set(FIRST, 3, int(state.is_out))

    def seen(self, state: State) -> State:
        """The state with the account as memory has it."""
        account = self.state.account(0)
        return state._replace(spent=account.spent, is_out=account.queries_left_out > 0)

    def asked(self, state: State, query: Query) -> Later:
        """The state after a query, and its entry; none where the query does not touch the individual."""
        if not state.is_present or query.price == 0 or (self.rule == "drop" and state.is_paused):
            return state, []
        self.stand(state)
        terms = QueryTerms(
            dimension=PRICE_MAX, law=Gaussian(FINE_SIGMA), norm_squared_max=PRICE_MAX * STEP**2, shortens=query.shortens
        )
        accounts, counters = only_shard(self.state).memory.accounts, only_shard(self.state).memory.counters
        dropped = counters.have_been_left_out if self.rule == "drop" else None
        release = answer([block_of(query.price)], accounts, terms, entropy=seeded(1), dropped=dropped)
        for block in release.blocks:
            counters.count(block.touched, block.active)
        made = self.entry_of(release, terms)
        self.state.released(made)
        return self.seen(state), [made]

    def entry_of(self, release: Release, terms: QueryTerms) -> LedgerEntry:
        """The entry of a release."""
        pieces = pieces_of(
            release.blocks, measure_of(release), amount_max=terms.norm_squared_max, slots=1, salt=bytes(32)
        )
        return replace(entry(self.store.head(1), {}), seq=self.state.seq + 1, sigma=terms.law.size_steps, pieces=pieces)

    def burned(self, state: State, units: int) -> Later:
        """The state after a burn, and its entry."""
        self.stand(state)
        kept = self.store.kept[1]
        self.store.kept[1] = replace(kept, head=replace(kept.head, seq=self.state.seq))
        with self.store.transaction(1, lock=True) as transaction:
            made = burn(transaction, self.state, units=units, settled=(1, 0, 0), why="drill", at=AT)
        return self.seen(state), [made]

    def replayed(self, before: State, entries: Sequence[LedgerEntry]) -> State:
        """The state to which entries lead."""
        self.stand(before)
        for each in entries:
            self.state.apply(replace(each, seq=self.state.seq + 1))
        return self.seen(before)


def block_of(price: int) -> Contributions:
    """The individual with the vector of a query: as many entries as it has prices."""
    return Contributions(
        touched=Touched(np.array([0])),
        norms_squared=np.array([price * STEP**2]),
        dimension=PRICE_MAX,
        owners=np.zeros(price, dtype=np.int64),
        coordinates=np.arange(price),
        values=np.full(price, STEP),
    )


def acts(state: State) -> Iterator[State]:
    """Everything that an individual or a curator may do; a correction changes later prices, which are all asked."""
    yield state._replace(is_paused=not state.is_paused)
    yield state._replace(is_present=not state.is_present)  # erased, or returned to its account
    for limit in range(state.limit):
        if limit * UNIT >= state.spent:
            yield state._replace(limit=limit)


def restarted(state: State) -> State:
    """The state after a start, which loads the counters that decide."""
    counters = Counters()
    counters.grow(PAGE_SLOTS)
    counters.set(FIRST, 3, int(state.is_out))
    return state._replace(is_out=bool(counters.have_been_left_out(Touched(np.array([0])))[0]))


def expected(state: State, query: Query, rule: str) -> int | None:
    """The units that a query charges; None where it leaves the individual out.

    A shortened vector costs all that is left: a step less in each of its entries costs less than a unit.
    """
    if not state.is_present or query.price == 0 or (rule == "drop" and state.is_paused):
        return 0
    room, whole = state.limit * UNIT - state.spent, query.price * UNIT
    if state.is_paused or (rule == "drop" and state.is_out):
        return None
    if whole <= room:
        return whole
    return room if query.shortens and room > 0 else None


def followed(account: Account, state: State) -> Iterator[Later]:
    """Everything that may follow on a state; what each query and burn does is looked at."""
    assert restarted(state) == state
    yield from ((later, []) for later in acts(state))
    for query in QUERIES:
        units = expected(state, query, account.rule)
        after, entries = account.asked(state, query)
        assert after == state._replace(spent=state.spent + (units or 0), is_out=state.is_out or units is None)
        yield after, entries
    for units in BURNS:
        after, entries = account.burned(state, units)
        assert after == state._replace(spent=min(state.spent + units, state.limit * UNIT))
        yield after, entries


@pytest.mark.parametrize("rule", ["skip", "drop"])
def test_no_state_that_can_be_reached_breaks_the_filter(rule: str) -> None:
    """No total above the largest limit, who is out under drop stays out, what fits is whole, and ledgers replay."""
    account = Account(rule)
    ledgers: dict[State, list[LedgerEntry]] = {
        State(limit, limit, 0, is_out=False, is_paused=False, is_present=True): [] for limit in range(LIMIT_MAX + 1)
    }
    todo = sorted(ledgers)
    while todo:
        state = todo.pop()
        for later, entries in followed(account, state):
            assert later.spent <= later.limit * UNIT <= later.largest * UNIT
            assert later.is_out or not state.is_out
            if later not in ledgers:
                ledgers[later] = ledgers[state] + entries
                todo.append(later)
    for state, entries in ledgers.items():
        assert account.replayed(state._replace(spent=0, is_out=False), entries) == state
    assert any(state.is_out and state.spent < state.limit * UNIT for state in ledgers)
    assert any(each.kind == "burn" for entries in ledgers.values() for each in entries)
    assert len(ledgers) > 1000
