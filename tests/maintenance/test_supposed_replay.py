"""A supposed replay against a reference in exact arithmetic, individual by individual."""

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from math import fsum, sqrt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.ledger.model.errors import InvalidRequest
from service.ledger.model.ledger_entry import LedgerEntry
from service.maintenance.supposed_replay import QueryOutcome, SupposedReplay
from service.workflows.individual import lowering, pausing
from tests.factories import analyst, ask, open_replica, register, upload
from tests.memory.store import MemoryStore
from tests.workflows.surveys import entries_of, writer_of

RHO = 2**40
KEYS = ("ann", "bob", "eve", "kim")
OWN_BUDGET = RHO // 2
BUDGETS = (RHO // 16, RHO // 4, OWN_BUDGET, 2 * RHO)
EVENTS = st.one_of(
    st.tuples(st.just("ask"), st.sampled_from([40.0, 150.0, 400.0]), st.sampled_from([None, "NO"])),
    st.tuples(st.sampled_from(["pause", "resume"]), st.sampled_from(KEYS), st.none()),
    st.tuples(st.just("lower"), st.sampled_from(KEYS), st.sampled_from([RHO // 32, RHO // 4, RHO // 2])),
)


@dataclass
class Reference:
    """One individual by the definitions of the rules, in units; its limit is what it has chosen, if anything."""

    rule: str
    budget: int
    chosen: int | None = None
    spent: Fraction = Fraction(0)
    left_out: int = 0
    paused: bool = False
    shares: list[float] = field(default_factory=list)

    def touch(self, price: int) -> str:
        """Decide about it in a query that costs it so much."""
        limit = self.budget if self.chosen is None else min(self.chosen, self.budget)
        room = limit - self.spent
        if self.paused:
            return "untouched" if self.rule == "drop" else "left out"
        if price <= room and not (self.rule == "drop" and self.left_out):
            self.spent += price
            self.shares.append(1.0)
            return "counted"
        if self.rule == "clip" and room > 0:
            self.shares.append(sqrt(room / price))
            self.spent = Fraction(limit)
            return "counted"
        self.left_out += 1
        return "left out"


def told(store: MemoryStore, rule: str, budget: int) -> tuple[list[tuple[set[int], set[int]]], float, list[int]]:
    """(counted, left out) slots by query, the contributions that are kept, and the spent totals."""
    outcomes: list[QueryOutcome] = []
    with store.transaction(1, lock=False) as transaction:
        record = transaction.registration()
        supposed = SupposedReplay(
            record,
            transaction,
            rule=rule,  # type: ignore[arg-type]
            budget_units=budget,
            accounting=record.accounting,
            tell=lambda _, outcome: outcomes.extend([outcome] if outcome else []),
        )
        supposed.run()
    sets = []
    for each in outcomes:
        touched, active = set(each.touched.slots().tolist()), set(each.touched.slots(each.active).tolist())
        assert (each.counted, each.left_out) == (len(active), len(touched - active))
        sets.append((active, touched - active))
    return sets, sum(each.kept for each in outcomes), supposed.spent.tolist()


def prices(entry: LedgerEntry) -> dict[int, int]:
    """The price of each individual that an entry touched."""
    found = entry.quantities()
    return dict(zip(found.touched.tolist(), found.prices(entry.law).tolist(), strict=True))


def happened(store: MemoryStore, events: list[tuple[str, Any, Any]]) -> list[tuple[str, Any, Any]]:
    """The events that the service took, with the sequence of each query; Ann to Kim add 0, 100, 200 and 500."""
    done: list[tuple[str, Any, Any]] = []
    with open_replica(store) as replica:
        register(replica)
        upload(
            replica, "people", [(key, "NO" if n % 2 else "SE", 30, [0, 100, 200, 500][n]) for n, key in enumerate(KEYS)]
        )
        writer, who = writer_of(replica), analyst(replica)
        for number, (kind, what, more) in enumerate(events):
            if kind == "ask":
                where: dict[str, Any] = {} if more is None else {"where": {"eq": [{"col": "country"}, more]}}
                query = {"select": [{"sum": {"column": "spend"}}], "noise": {"sigma": what}, "reuse": False, **where}
                ask(replica, who, f"k{number}", **query)
            elif kind == "lower":
                try:
                    writer.act(lowering(what, stated_units=more, reserve_units=0))
                except InvalidRequest:
                    continue
            else:
                writer.act(pausing(what, paused=kind == "pause"))
            done.append((kind, what, more))
    return done


def referred(
    done: list[tuple[str, Any, Any]], entries: list[LedgerEntry], rule: str, budget: int
) -> tuple[list[tuple[set[int], set[int]]], float, list[int]]:
    """The sets, the charge and the totals by the reference."""
    people, queue, sets = [Reference(rule, budget) for _ in KEYS], iter(entries), []
    for kind, what, more in done:
        if kind == "ask":
            found: dict[str, set[int]] = defaultdict(set)
            for slot, price in prices(next(queue)).items():
                found[people[slot].touch(price)].add(slot)
            sets.append((found["counted"], found["left out"]))
        elif kind == "lower":
            if more < OWN_BUDGET:  # as large as the budget is no choice
                people[KEYS.index(what)].chosen = more
        else:
            people[KEYS.index(what)].paused = kind == "pause"
    kept = fsum(share for person in people for share in person.shares)
    return sets, kept, [int(person.spent) for person in people]


@settings(deadline=None, max_examples=60)
@given(events=st.lists(EVENTS, max_size=14))
def test_every_rule_and_budget_is_the_reference(events: list[tuple[str, Any, Any]]) -> None:
    """Active sets and spent totals exactly, under each rule and under smaller and larger budgets."""
    store = MemoryStore()
    done = happened(store, events)
    entries = entries_of(store)
    for rule in ("skip", "drop", "clip"):
        for budget in BUDGETS:
            sets, kept, spent = told(store, rule, budget)
            wanted_sets, wanted, wanted_spent = referred(done, entries, rule, budget)
            assert sets == wanted_sets, (rule, budget)
            assert spent == wanted_spent, (rule, budget)
            assert kept == pytest.approx(wanted, rel=1e-12)
