"""A state machine of backups and restores, whose laws hold after every step."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from io import BytesIO
from typing import Any
from uuid import UUID

import numpy as np
import orjson
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from numpy.typing import NDArray

from service.core.charge import LIMIT_UNITS_MAX
from service.ledger.model.api_keys import Pepper
from service.ledger.model.errors import Fenced
from service.ledger.model.rows import Head
from service.ledger.model.views import Principal
from service.maintenance.reconcile import reconcile
from service.maintenance.verify.report import verify_all
from service.query.keys import Key
from service.query.parse import parse_query
from service.reads.ledger import promised
from service.workflows.datasets import Registration
from service.workflows.replica import Replica
from tests.contracts.stores import spent_by
from tests.factories import SeededEntropy
from tests.laws.filter_world import registration
from tests.laws.reference import UNIT, clipped_count
from tests.memory.cache import MemoryWitness
from tests.memory.store import MemoryStore
from tests.waiting import PATIENCE_S

NAME = "north"


KEYS = st.sampled_from([f"p{n}" for n in range(5)])


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Backup:
    """A copy of the database, and the keys by slot in it."""

    kept: dict[int, Any]
    keys: dict[int, str]
    forgotten: frozenset[str]


@dataclass
class Truth:
    """The units truly spent, by key, and the limit that each individual states, the same each time it joins.

    `left_out` are the keys that a query has ever left out, also one that a restore has forgotten. Those whose limit was
    ever lower than they state, by their own act or since they joined after a burn, are `lowered`: a restore of a copy
    that knows of neither may let them in again.
    """

    spent: dict[str, int] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    lowered: set[str] = field(default_factory=set)
    joined: set[str] = field(default_factory=set)

    @staticmethod
    def limit(key: str) -> int:
        return 2**40 if key == "p0" else 2 * 2**40


def price(left: int, sigma: float, query_rule: str) -> int:
    """Units that a count costs an individual that has only so many left."""
    units, whole = (clipped_count(each, Fraction(sigma))[1] for each in (left, LIMIT_UNITS_MAX))
    return units if query_rule == "clip" or units == whole else 0


def individual(key: str) -> Principal:
    """The principal of an individual that reads its account."""
    return Principal(
        id=UUID(int=9), role="individual", name=key, dataset=NAME, individual=Key(key), allowance_units=None
    )


class RestoreMachine(RuleBasedStateMachine):
    """One dataset, one witness, and several backups."""

    def __init__(self, filter_rule: str = "skip") -> None:
        super().__init__()
        self.filter_rule = filter_rule
        self.store, self.witness, self.entropy = MemoryStore(), MemoryWitness(), SeededEntropy()
        self.truth = Truth()
        self.keys: dict[int, str] = {}
        self.forgotten: frozenset[str] = frozenset()
        self.backups: list[Backup] = []
        self.asked = 0
        self.replica = self.open()

    def open(self) -> Replica:
        """A new replica over the store."""
        return Replica(
            store=self.store, witness=self.witness, pepper=Pepper(bytes(32)), entropy=self.entropy, clock=lambda: NOW
        )

    def teardown(self) -> None:
        self.replica.close()

    @property
    def head(self) -> Head:
        """The database's head."""
        return self.store.head(1)

    @initialize()
    def register(self) -> None:
        """One dataset, one analyst, a backup of the empty dataset and one with two individuals."""
        self.replica.curators.register(Registration.model_validate(registration(NAME, self.filter_rule)))
        self.analyst = self.replica.principals.create(role="analyst", name="ana")[0]
        self.back_up()
        self.join({"p0", "p1"}, 5)
        self.back_up()

    @rule(keys=st.sets(KEYS, min_size=1, max_size=3), age=st.sampled_from([2, 7]))
    def join(self, keys: set[str], age: int) -> None:
        """Register individuals, new or returning."""
        present = {person.key for person in self.store.kept[1].people.values()}
        wanted = sorted(keys - present)
        rows = "".join(f"{key},{age},{Truth.limit(key) // 2**40}\n" for key in wanted)
        body = BytesIO(f"person_id,age,limit_rho\n{rows}".encode())
        self.replica.curators.append_rows(NAME, "people", "text/csv", body)
        people = self.store.kept[1].people
        self.keys |= {slot: person.key for slot, person in people.items() if person.key in wanted}
        self.truth.joined |= set(wanted)
        limits = {str(person.key): person.limit_units for person in people.values()}
        self.truth.lowered |= {key for key in wanted if limits[key] < Truth.limit(key)}

    @rule(
        age=st.sampled_from([0, 5]),
        sigma=st.sampled_from([0.7, 1.0, 3.0]),
        query_rule=st.sampled_from(["skip", "clip"]),
    )
    def ask(self, age: int, sigma: float, query_rule: str = "skip") -> None:
        """Answer a query; its charges count for ever, and none of them is of a paused individual.

        Under the drop rule none is of an individual that was ever left out, whatever was restored since. Under the clip
        rule an individual that cannot pay for all pays for the longest vector that it can.
        """
        self.asked += 1
        people, before = self.store.kept[1].people, self.spent()
        paused = {slot for slot, person in people.items() if person.paused}
        self.answer(age, sigma, query_rule)
        with self.store.transaction(1, lock=False) as transaction:
            (entry,) = transaction.entries(after=transaction.head.seq - 1)
        charged, charges, left_out = entry.decode()
        if self.filter_rule == "drop":
            for_good = self.truth.left_out - self.truth.lowered
            assert not for_good & {self.keys[slot] for slot in charged.tolist()}
        paid = dict(zip(charged.tolist(), charges.tolist(), strict=True)) | dict.fromkeys(left_out.tolist(), 0)
        for slot, units in paid.items():
            key, left = self.keys[slot], people[slot].limit_units - int(before[slot])
            is_out = slot in paused or (self.filter_rule == "drop" and units == 0 and key in self.truth.left_out)
            assert units == (0 if is_out else price(left, sigma, query_rule))
            self.truth.spent[key] = self.truth.spent.get(key, 0) + units
        self.truth.left_out |= {self.keys[slot] for slot in left_out.tolist()}

    def answer(self, age: int, sigma: float, query_rule: str = "skip") -> None:
        """Ask and wait."""
        query = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": sigma}, "reuse": False, "rule": query_rule}
        body = orjson.dumps(query | {"where": {"ge": [{"col": "age"}, age]}})
        self.replica.analysts.submit(self.analyst, NAME, f"k{self.asked}", parse_query(body)).result(timeout=PATIENCE_S)

    @rule(key=KEYS)
    def erase(self, key: str) -> None:
        """Erase an individual; its account stays."""
        if key in {person.key for person in self.store.kept[1].people.values()}:
            self.replica.curators.erase_individual(NAME, key)

    @rule(key=KEYS, to=st.sampled_from(["0.5", "0.75", "0"]))
    def lower(self, key: str, to: str = "0.5") -> None:
        """Lower a limit, at most to what is spent and kept; a restore may undo that."""
        if key in {person.key for person in self.store.kept[1].people.values()}:
            me = individual(key)
            own = self.replica.individuals.budgets(me)[0]
            with localcontext(prec=100):
                present = Decimal(own.budget_rho) + Decimal(own.reserve_rho)
            limit = max(min(Decimal(to), present), Decimal(own.lowest_limit_rho))
            self.replica.individuals.lower_limit(me, NAME, limit_rho=limit)
            self.truth.lowered.add(key)

    @rule(key=KEYS, paused=st.booleans())
    def pause(self, key: str, paused: bool = True) -> None:
        """Pause or resume an individual, possibly repeatedly; a restore may undo either."""
        if key in {person.key for person in self.store.kept[1].people.values()}:
            me = individual(key)
            before = self.replica.individuals.budgets(me)[0]
            after = (
                self.replica.individuals.lower_limit(me, NAME, pause=True)
                if paused
                else self.replica.individuals.resume(me, NAME)
            )
            assert after == replace(before, paused=paused)

    @rule()
    def epoch(self) -> None:
        """Open an epoch, an act that changes no account."""
        self.replica.curators.open_epoch(NAME)

    @rule()
    def back_up(self) -> None:
        """A consistent copy of the database; the witness is not in it."""
        self.backups.append(Backup(dict(self.store.kept), dict(self.keys), self.forgotten))

    @precondition(lambda self: len(self.backups) > 1)
    @rule(data=st.data(), is_running=st.booleans())
    def restore(self, data: st.DataObject, is_running: bool) -> None:
        """Restore any backup."""
        self.put_back(data.draw(st.sampled_from(self.backups)), is_running)

    def put_back(self, backup: Backup, is_running: bool) -> None:
        """Restore a backup, find the dataset closed unless nothing is missing, and reconcile."""
        if not is_running:
            self.replica.close()
        before = replace(self.head, checkpoint_seq=0)
        self.store.kept, self.keys = dict(backup.kept), dict(backup.keys)
        self.forgotten = backup.forgotten | (self.truth.joined - set(self.keys.values()))
        if not is_running:
            self.replica = self.open()
            self.replica.readiness.check_witnesses()
        if replace(self.head, checkpoint_seq=0) != before:
            self.closed_and_reconciled()
        assert reconcile(self.store, self.witness, NAME, burn_units=None, clock=lambda: NOW) is None

    def closed_and_reconciled(self) -> None:
        """Queries and acts are refused with the reason; after reconciling both work again."""
        self.asked += 1
        with pytest.raises(Fenced):
            self.answer(0, 1.0)
        with pytest.raises(Fenced):
            self.replica.curators.open_epoch(NAME)
        assert self.replica.readiness.check_witnesses() == ["ledger-rollback"]
        assert any(report.findings for report in verify_all(self.store, self.witness))
        done = reconcile(self.store, self.witness, NAME, burn_units=None, clock=lambda: NOW)
        assert done is not None
        assert self.replica.readiness.check_witnesses() == []

    def spent(self) -> NDArray[np.int64]:
        """The spent totals by slot: every entry from the first on."""
        with self.store.transaction(1, lock=False) as transaction:
            return spent_by(transaction.entries(after=0), transaction.head.slots)

    def account(self, key: str) -> tuple[int, int]:
        """The spent total and limit of an individual in the database."""
        ((slot, person),) = [(n, each) for n, each in self.store.kept[1].people.items() if each.key == key]
        return int(self.spent()[slot]), person.limit_units

    def hold(self) -> None:
        """Check all invariants, in a history written by hand."""
        self.remaining_budgets_are_at_most_the_true_ones()
        self.promises_cover_all_that_may_be_spent()
        self.everybody_is_told_the_same_totals()
        self.the_ledger_replays()

    @invariant()
    def remaining_budgets_are_at_most_the_true_ones(self) -> None:
        """G3: the remaining budget is at most the true one; an individual in every history has its true total.

        Or its whole limit: a burn stops there, and a copy may hold a lowered limit that charges elsewhere exceeded.
        Erased individuals count: they may come back.
        """
        spent = self.spent()
        for slot, key in self.keys.items():
            limit, truth = self.store.kept[1].people[slot].limit_units, self.truth.spent.get(key, 0)
            assert spent[slot] <= limit
            assert truth <= Truth.limit(key)
            assert limit - spent[slot] + truth <= Truth.limit(key)
            assert key in self.forgotten or spent[slot] >= min(truth, limit)

    @invariant()
    def promises_cover_all_that_may_be_spent(self) -> None:
        """The promise covers the limit that each has stated, and "so far" covers all that was truly spent."""
        spent, kept = self.spent(), self.store.kept[1]
        with self.store.transaction(1, lock=False) as transaction:
            for slot, key in [(slot, person.key) for slot, person in kept.people.items() if person.key is not None]:
                limit, truth = kept.people[slot].limit_units, self.truth.spent.get(key, 0)
                found = promised(kept.record, transaction, slot)
                assert found.limit_units >= max(Truth.limit(key), truth)
                assert found.spent_units_max(limit_units=limit, spent_units=int(spent[slot])) >= truth

    @invariant()
    def everybody_is_told_the_same_totals(self) -> None:
        """Each spent total is one number: by entries, by pages and later entries, to itself and to the curator."""
        spent, people = self.spent(), self.store.kept[1].people
        told = {row.key: row.spent_units for row in self.replica.curators.budgets(NAME, cursor=None, limit=100).items}
        present = {person.key: slot for slot, person in people.items() if person.key is not None}
        assert told == {key: int(spent[slot]) for key, slot in present.items()}
        for key, slot in present.items():
            (own,) = self.replica.individuals.budgets(individual(key))
            assert Fraction(own.spent_rho) == told[key] * UNIT <= Fraction(own.budget_rho)
            with self.store.transaction(1, lock=False) as transaction:
                assert transaction.account_of(slot).spent == told[key]

    @invariant()
    def the_ledger_replays(self) -> None:
        """Burns are entries like others: chained, counted, within limits, and in the pages."""
        assert [report.findings for report in verify_all(self.store, self.witness)] == [[]] * len(self.store.kept)
