"""Whatever backup is restored whenever: once reconciled, nobody has more left than the truth allows.

Nor by pausing: who pauses, and when the pause ends, is up to individuals, and a restore may bring any of it back.

The truth is kept beside the service: every charge of every answer that ever left it, in whichever history, is added
up and never taken back. Then any copy of the database is put in the place of the newest, also a copy of a history that
was given up before, under a running house or a new one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from numpy.typing import NDArray

from service.query.parse import parse_query
from service.testing.store import MemoryStore
from service.testing.witness import MemoryWitness
from service.workflows.datasets import Registration
from service.workflows.maintenance.reconcile import reconcile
from service.workflows.maintenance.verify.report import verify_all
from service.workflows.model.api_keys import Pepper
from service.workflows.model.errors import Fenced
from service.workflows.model.ledger_entry import replay
from service.workflows.model.rows import Head
from service.workflows.model.views import Principal
from service.workflows.reads.promised_limit import promised
from service.workflows.replica import Replica
from tests.factories import SeededEntropy
from tests.laws.test_filter import registration

NAME = "north"
KEYS = st.sampled_from([f"p{n}" for n in range(5)])
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Backup:
    """A copy of the database, and who was who in it."""

    kept: dict[int, Any]
    keys: dict[int, str]
    forgotten: frozenset[str]


@dataclass
class Truth:
    """What really was spent, in units by key, and the limit that each has stated, the same each time they join."""

    spent: dict[str, int] = field(default_factory=dict)
    joined: set[str] = field(default_factory=set)

    @staticmethod
    def limit(key: str) -> int:
        return 2**40 if key == "p0" else 2 * 2**40


class RestoreMachine(RuleBasedStateMachine):
    """One dataset, one witness, and a cupboard of backups."""

    def __init__(self) -> None:
        super().__init__()
        self.store, self.witness, self.entropy = MemoryStore(), MemoryWitness(), SeededEntropy()
        self.truth = Truth()
        self.keys: dict[int, str] = {}
        self.forgotten: frozenset[str] = frozenset()
        self.backups: list[Backup] = []
        self.asked = 0
        self.replica = self.open()

    def open(self) -> Replica:
        """A house over what the store holds."""
        return Replica(
            store=self.store, witness=self.witness, pepper=Pepper(bytes(32)), entropy=self.entropy, clock=lambda: NOW
        )

    def teardown(self) -> None:
        self.replica.close()

    @property
    def head(self) -> Head:
        """The database's own."""
        return self.store.head(1)

    @initialize()
    def register(self) -> None:
        """One dataset, one analyst, and backups of nothing and of two people."""
        self.replica.curators.register(Registration.model_validate(registration(NAME)))
        self.analyst = self.replica.principals.create(role="analyst", name="ana")[0]
        self.back_up()
        self.join({"p0", "p1"}, 5)
        self.back_up()

    @rule(keys=st.sets(KEYS, min_size=1, max_size=3), age=st.sampled_from([2, 7]))
    def join(self, keys: set[str], age: int) -> None:
        """New people, or people who come back."""
        present = {person.key for person in self.store.kept[1].people.values()}
        wanted = sorted(keys - present)
        rows = "".join(f"{key},{age},{Truth.limit(key) // 2**40}\n" for key in wanted)
        body = BytesIO(f"person_id,age,limit_rho\n{rows}".encode())
        self.replica.curators.append_rows(NAME, "people", "text/csv", body)
        people = self.store.kept[1].people
        self.keys |= {slot: person.key for slot, person in people.items() if person.key in wanted}
        self.truth.joined |= set(wanted)

    @rule(age=st.sampled_from([0, 5]), sigma=st.sampled_from([1.0, 3.0]))
    def ask(self, age: int, sigma: float) -> None:
        """An answer leaves; its charges are true for ever, and none of them is of somebody who has paused."""
        self.asked += 1
        paused = {slot for slot, person in self.store.kept[1].people.items() if person.paused}
        self.answer(age, sigma)
        with self.store.transaction(1, lock=False) as transaction:
            (entry,) = transaction.entries(after=transaction.head.seq - 1)
        charged, charges, _ = entry.decode()
        for slot, units in zip(charged.tolist(), charges.tolist(), strict=True):
            key = self.keys[slot]
            assert slot not in paused
            self.truth.spent[key] = self.truth.spent.get(key, 0) + units

    def answer(self, age: int, sigma: float) -> None:
        """Ask and wait."""
        query = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": sigma}, "reuse": False}
        body = orjson.dumps(query | {"where": {"ge": [{"col": "age"}, age]}})
        self.replica.analysts.submit(self.analyst, NAME, f"k{self.asked}", parse_query(body)).result(timeout=30)

    @rule(key=KEYS)
    def erase(self, key: str) -> None:
        """A record goes, the account stays."""
        if key in {person.key for person in self.store.kept[1].people.values()}:
            self.replica.curators.erase_individual(NAME, key)

    @rule(key=KEYS, to=st.sampled_from(["0.5", "0.75", "0"]))
    def lower(self, key: str, to: str = "0.5") -> None:
        """A limit falls; a restore may forget that."""
        if key in {person.key for person in self.store.kept[1].people.values()}:
            me = self.individual(key)
            limit = min(Decimal(to), Decimal(self.replica.individuals.budgets(me)[0].budget_rho))
            self.replica.individuals.lower_limit(me, NAME, limit_rho=limit)

    @rule(key=KEYS, paused=st.booleans())
    def pause(self, key: str, paused: bool = True) -> None:
        """Somebody pauses or resumes, perhaps once more; a restore may bring a pause, or its end, back."""
        if key in {person.key for person in self.store.kept[1].people.values()}:
            me = self.individual(key)
            before = self.replica.individuals.budgets(me)[0]
            after = (
                self.replica.individuals.lower_limit(me, NAME, pause=True)
                if paused
                else self.replica.individuals.resume(me, NAME)
            )
            assert after == replace(before, paused=paused)

    def individual(self, key: str) -> Principal:
        """Whose account it is."""
        return self.replica.principals.create(role="individual", name=key, dataset=NAME, individual=key)[0]

    @rule()
    def epoch(self) -> None:
        """An act that changes no account."""
        self.replica.curators.open_epoch(NAME)

    @rule()
    def back_up(self) -> None:
        """A consistent copy of the database; the witness is not in it."""
        self.backups.append(Backup(dict(self.store.kept), dict(self.keys), self.forgotten))

    @precondition(lambda self: len(self.backups) > 1)
    @rule(data=st.data(), is_running=st.booleans())
    def restore(self, data: st.DataObject, is_running: bool) -> None:
        """Any of them."""
        self.put_back(data.draw(st.sampled_from(self.backups)), is_running)

    def put_back(self, backup: Backup, is_running: bool) -> None:
        """Put a backup back, find the dataset closed unless nothing is missing, and reconcile."""
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
        """Nothing is answered, nothing is done, and whoever asks is told; afterwards all of it goes on."""
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
        """Everybody's spent total by slot: every entry from the first on."""
        with self.store.transaction(1, lock=False) as transaction:
            spent = np.zeros(transaction.head.slots, dtype=np.int64)
            replay(transaction.entries(after=0), spent)
        return spent

    def account(self, key: str) -> tuple[int, int]:
        """Somebody's spent total and limit, as the database has them."""
        ((slot, person),) = [(n, each) for n, each in self.store.kept[1].people.items() if each.key == key]
        return int(self.spent()[slot]), person.limit_units

    def hold(self) -> None:
        """Check all of it, in a history by hand."""
        self.nobody_has_more_left_than_the_truth_allows()
        self.nobody_is_promised_less_than_what_may_be_spent_on_them()
        self.the_ledger_replays()

    @invariant()
    def nobody_has_more_left_than_the_truth_allows(self) -> None:
        """G3: what is left is what is truly left at most; whoever was not forgotten has the truth as spent.

        Or all of the limit: a burn stops there, and a copy may know of a lowered limit that its past did not keep to.
        Erased people count: they may come back.
        """
        spent = self.spent()
        for slot, key in self.keys.items():
            limit, truth = self.store.kept[1].people[slot].limit_units, self.truth.spent.get(key, 0)
            assert spent[slot] <= limit
            assert truth <= Truth.limit(key)
            assert limit - spent[slot] + truth <= Truth.limit(key)
            assert key in self.forgotten or spent[slot] >= min(truth, limit)

    @invariant()
    def nobody_is_promised_less_than_what_may_be_spent_on_them(self) -> None:
        """The promise covers the limit that each has stated, and "so far" what truly was spent, forgotten or not."""
        spent, kept = self.spent(), self.store.kept[1]
        with self.store.transaction(1, lock=False) as transaction:
            for slot, key in [(slot, person.key) for slot, person in kept.people.items() if person.key is not None]:
                limit, truth = kept.people[slot].limit_units, self.truth.spent.get(key, 0)
                found = promised(kept.record, transaction, slot)
                assert found.limit_units >= max(Truth.limit(key), truth)
                assert found.spent_units_max(limit_units=limit, spent_units=int(spent[slot])) >= truth

    @invariant()
    def the_ledger_replays(self) -> None:
        """Burns are entries like others: chained, counted, within limits, and in the pages."""
        assert [report.findings for report in verify_all(self.store, self.witness)] == [[]] * len(self.store.kept)


@pytest.mark.slow
def test_whatever_is_restored_nobody_has_more_left_than_the_truth_allows() -> None:
    """Eighty histories of forty events."""
    run_state_machine_as_test(RestoreMachine, settings=settings(max_examples=80, stateful_step_count=40, deadline=None))


@pytest.fixture
def machine() -> Iterator[RestoreMachine]:
    """For a history by hand."""
    made = RestoreMachine()
    made.register()
    yield made
    made.teardown()


@pytest.mark.parametrize("is_running", [True, False])
def test_whoever_spent_more_than_a_limit_that_was_lowered_elsewhere_has_nothing_left(
    machine: RestoreMachine, is_running: bool
) -> None:
    """A restore forgets that p0 lowered its limit, and p0 pays again; then the copy that knows of it is put back.

    Its ledger cannot hold the truth, which is above p0's limit there. So it holds the limit, for ever: not even whoever
    leaves and comes back has anything left, and the copy that knows nothing of the limit burns all that was spent.
    """
    ignorant = machine.backups[-1]
    machine.ask(0, 1.0)
    machine.lower("p0")
    machine.back_up()
    knowing = machine.backups[-1]
    machine.put_back(ignorant, is_running)
    machine.ask(0, 1.0)
    machine.put_back(knowing, is_running)
    assert (machine.account("p0"), machine.truth.spent["p0"]) == ((2**39, 2**39), 2**40)
    machine.hold()
    machine.erase("p0")
    machine.join({"p0"}, 5)
    assert machine.account("p0") == (2**39, 2**39)
    machine.ask(0, 1.0)
    assert machine.truth.spent["p0"] == 2**40
    machine.hold()
    machine.put_back(ignorant, is_running)
    assert machine.account("p0") == (2**40, 2**40)
    machine.ask(0, 1.0)
    machine.hold()


@pytest.mark.parametrize("is_running", [True, False])
def test_nothing_that_was_forgotten_is_had_again_by_pausing(machine: RestoreMachine, is_running: bool) -> None:
    """p0 pauses before the backup and pays for answers after it; the backup comes back, with the pause.

    If a burn took a pause for a limit, it would find nothing left to take, and the end of the pause would give p0 the
    whole limit once more.
    """
    machine.pause("p0")
    machine.back_up()
    resting = machine.backups[-1]
    machine.pause("p0", paused=False)
    machine.ask(0, 1.0)
    machine.ask(0, 1.0)
    assert machine.truth.spent["p0"] == 2**40
    machine.put_back(resting, is_running)
    assert machine.account("p0") == (2**40, 2**40)
    machine.pause("p0", paused=False)
    machine.ask(0, 1.0)
    assert machine.truth.spent["p0"] == 2**40
    machine.hold()


def test_whoever_paused_left_and_came_back_has_the_limit_and_the_pause(machine: RestoreMachine) -> None:
    """The account outlives the record, and only its owner ends a pause."""
    machine.ask(0, 1.0)
    machine.pause("p0")
    machine.erase("p0")
    machine.join({"p0"}, 5)
    assert machine.account("p0") == (2**39, 2**40)
    machine.ask(0, 1.0)
    assert machine.truth.spent["p0"] == 2**39
    machine.pause("p0", paused=False)
    machine.ask(0, 1.0)
    assert machine.truth.spent["p0"] == 2**40
