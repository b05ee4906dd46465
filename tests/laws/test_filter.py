"""The filter under any order of events, against a reference written in Fractions.

Registrations, uploads, queries, retries, erasures, re-registrations, lowered limits and restarts, on two datasets.
"""

import io
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import orjson
import psycopg
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

from service.core.laplace import rounded_laplace
from service.core.noise import rounded_gaussian
from service.ledger.model.api_keys import Pepper
from service.ledger.model.errors import InvalidRequest, KeyConflict
from service.ledger.model.views import Principal
from service.maintenance.verify.report import verify_all
from service.query.parse import parse_query
from service.store.postgres.store import PostgresStore
from service.workflows.datasets import Registration
from service.workflows.replica import Replica
from tests.factories import SeededEntropy
from tests.keys import LEDGER_KEY
from tests.laws.filter_world import ACCOUNTINGS, AREAS, DATASETS, RULES, registration, selecting
from tests.laws.reference import UNIT, ReferenceDataset, gaussian_units, laplace_units
from tests.memory.cache import MemoryWitness
from tests.memory.store import MemoryStore
from tests.rotation import times
from tests.sealed_accounts import spent_in
from tests.waiting import PATIENCE_S

KEYS = st.sampled_from([f"p{n}" for n in range(6)])
SCALES = (0.9, 2.0, 3.3, 40.0)
"""The scales of Laplace noise: a count costs from a fortieth of a rho to half of a pure budget."""
SIGMAS = st.sampled_from([1.0, 3.0, 0.7, 20.0])


def query(kind: str, number: int, sigma: float) -> dict[str, Any]:
    """The seven queries as an analyst writes them."""
    asked: dict[str, Any] = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": sigma}}
    bounds = {"per_individual": {"l2_clip": 1000}} if kind in {"visits", "all"} else {}
    reuse = {} if kind == "active" else {"reuse": False}  # where it is left out, it is false
    return asked | selecting(kind, number) | bounds | reuse


class FilterMachine(RuleBasedStateMachine):
    """The whole service over a store, compared with the reference."""

    def __init__(self, store: MemoryStore | PostgresStore, database_url: str | None = None) -> None:
        super().__init__()
        self.entropy = SeededEntropy(11)
        self.store = store
        self.witness = MemoryWitness()
        self.database_url = database_url
        self.pepper = Pepper(bytes(32))
        self.replica = self.open()
        self.models: dict[str, ReferenceDataset] = {}
        self.answers: dict[str, tuple[str, bytes, bytes]] = {}

    def open(self) -> Replica:
        """A new replica over the store."""
        return Replica(
            store=self.store,
            witness=self.witness,
            pepper=self.pepper,
            entropy=self.entropy,
            clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        )

    def teardown(self) -> None:
        self.replica.close()
        if isinstance(self.store, PostgresStore):
            self.store.close()

    @initialize(accounting=st.sampled_from(sorted(ACCOUNTINGS)))
    def register(self, accounting: str) -> None:
        """Two datasets of an accounting, one under each rule, and one analyst."""
        self.accounting = accounting
        self.laplace = laplace_units(accounting.removesuffix(" simple"))
        self.analyst: Principal = self.replica.principals.create(role="analyst", name="ana")[0]
        for name in DATASETS:
            view = self.replica.curators.register(
                Registration.model_validate(registration(name, RULES[name], accounting))
            )
            assert view.budget_units == 2 * 2**40
            self.models[name] = ReferenceDataset(budget=2 * 2**40, rule=RULES[name])

    @rule(
        name=st.sampled_from(DATASETS),
        key=KEYS,
        age=st.none() | st.integers(0, 9),
        limit=st.sampled_from([None, "0.5"]),
    )
    def join(self, name: str, key: str, age: int | None, limit: str | None) -> None:
        """Register an individual, anew or after an erasure; one that is present is refused and nothing changes."""
        row = f"person_id,age,limit_rho\n{key},{'' if age is None else age},{limit or ''}\n".encode()
        known = self.models[name].people.get(key)
        if known is not None and known.present:
            with pytest.raises(InvalidRequest):
                self.replica.curators.append_rows(name, "people", "text/csv", io.BytesIO(row))
            return
        self.replica.curators.append_rows(name, "people", "text/csv", io.BytesIO(row))
        self.models[name].join(key, age, None if limit is None else int(Decimal(limit) * 2**40))

    @rule(name=st.sampled_from(DATASETS), keys=st.lists(KEYS, max_size=4), area=st.integers(0, AREAS - 1))
    def visit(self, name: str, keys: list[str], area: int) -> None:
        """Upload events, all or none."""
        model = self.models[name]
        rows = "person_id,area\n" + "".join(f"{key},{area}\n" for key in keys)
        if any(key not in model.people or not model.people[key].present for key in keys):
            with pytest.raises(InvalidRequest):
                self.replica.curators.append_rows(name, "visits", "text/csv", io.BytesIO(rows.encode()))
            return
        self.replica.curators.append_rows(name, "visits", "text/csv", io.BytesIO(rows.encode()))
        for key in keys:
            model.people[key].areas.append(area)

    @rule(
        name=st.sampled_from(DATASETS),
        kind=st.sampled_from(["older", "visits", "all", "active", "clipped", "frequent", "squares"]),
        number=st.integers(0, AREAS - 1),
        sigma=SIGMAS,
    )
    def ask(self, name: str, kind: str, number: int, sigma: float) -> None:
        """Charges, left out and sum are the reference's; the answer is that sum plus the recorded noise."""
        self._ask(name, kind, number, sigma, query(kind, number, sigma), is_laplace=False)

    @rule(
        name=st.sampled_from(DATASETS),
        kind=st.sampled_from(["older", "visits", "frequent"]),
        number=st.integers(0, AREAS - 1),
        scale=st.sampled_from(SCALES),
    )
    def ask_with_laplace_noise(self, name: str, kind: str, number: int, scale: float) -> None:
        """Ask with Laplace noise, priced by the accounting, for a number that is no vector."""
        body = query(kind, number, 1.0) | {"mechanism": "laplace", "noise": {"scale": scale}}
        self._ask(name, kind, number, scale, body, is_laplace=True)

    def _ask(self, name: str, kind: str, number: int, sigma: float, asked: dict[str, Any], *, is_laplace: bool) -> None:
        body, key = orjson.dumps(asked), f"key-{len(self.answers)}"
        if self.accounting == "pure" and not is_laplace:
            with pytest.raises(InvalidRequest, match="no finite charge"):
                self.replica.analysts.submit(self.analyst, name, key, parse_query(body)).result(timeout=PATIENCE_S)
            return
        self.entropy.drawn.clear()
        answer = self.replica.analysts.submit(self.analyst, name, key, parse_query(body)).result(timeout=PATIENCE_S)
        model, units = self.models[name], self.laplace if is_laplace else gaussian_units
        charges, left_out, total = model.ask(
            model.vectors(kind, number), sigma, shortens=kind == "clipped", units=units
        )
        shown = orjson.loads(answer.body)
        words, drawn = iter(self.entropy.drawn), rounded_laplace if is_laplace else rounded_gaussian
        noise = drawn(shown["dimension"], sigma / shown["grid"], lambda _: next(words))
        exact = np.array(shown["values"]) / shown["grid"] - noise
        exact = exact * shown["grid"] if kind == "squares" else exact
        assert exact.tolist() == [total.get(coordinate, 0) for coordinate in range(shown["dimension"])]
        row = self.replica.auditors.ledger(name, cursor=None, limit=1).items[0]
        assert (row.charged, row.left_out) == (len(charges), len(left_out))
        self.answers[key] = (name, body, answer.body)

    @rule(
        name=st.sampled_from(DATASETS),
        kind=st.sampled_from(["older", "visits", "all"]),
        number=st.integers(0, AREAS - 1),
        sigma=SIGMAS,
    )
    def ask_under_clip(self, name: str, kind: str, number: int, sigma: float) -> None:
        """Each pays for its whole vector or, where that is more than is left, all that is left but for the bound."""
        if self.accounting == "pure":
            return
        model = self.models[name]
        left = {key: person.limit - person.spent for key, person in model.people.items()}
        before = {key: person.spent for key, person in model.people.items()}
        body = orjson.dumps(query(kind, number, sigma) | {"rule": "clip"})
        answer = self.replica.analysts.submit(self.analyst, name, f"key-{len(self.answers)}", parse_query(body)).result(
            timeout=PATIENCE_S
        )
        self.answers[f"key-{len(self.answers)}"] = (name, body, answer.body)
        rows = {row.key: row for row in self.replica.curators.budgets(name, cursor=None, limit=100).items}
        paid = {key: row.spent_units - before[key] for key, row in rows.items()}
        sigma_steps = sigma / orjson.loads(answer.body)["grid"]
        vectors = model.vectors(kind, number)
        model.shorten(vectors, sigma, paid)
        for key, vector in vectors.items():
            if model.people[key].is_short:
                unused = (left[key] - paid[key]) * UNIT
                entries = sum(value != 0 for value in vector.values())
                assert unused <= float(2 * left[key] * UNIT * entries) ** 0.5 / sigma_steps + UNIT

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        """One key and query give the same bytes and no charge; another query under the key is refused."""
        key = data.draw(st.sampled_from(sorted(self.answers)))
        name, body, stored = self.answers[key]
        again = self.replica.analysts.submit(self.analyst, name, key, parse_query(body)).result(timeout=PATIENCE_S)
        assert again.body == stored
        document = orjson.loads(body)
        other = orjson.dumps(document | {"noise": {"scale" if "mechanism" in document else "sigma": 9.0}})
        with pytest.raises(KeyConflict):
            self.replica.analysts.submit(self.analyst, name, key, parse_query(other)).result(timeout=PATIENCE_S)

    @rule(name=st.sampled_from(DATASETS), key=KEYS)
    def erase(self, name: str, key: str) -> None:
        """Erase an individual: the record is deleted, the account stays."""
        person = self.models[name].people.get(key)
        if person is not None and person.present:
            self.replica.curators.erase_individual(name, key)
            person.present = False

    @rule(name=st.sampled_from(DATASETS), key=KEYS, to=st.integers(0, 2))
    def lower(self, name: str, key: str, to: int) -> None:
        """An individual lowers its limit; to raise it, or to lower it below what is spent, is refused."""
        person = self.models[name].people.get(key)
        if person is None or not person.present:
            return
        me = self.replica.principals.create(role="individual", name=key, dataset=name, individual=key)[0]
        if not person.spent <= to * 2**40 <= person.limit:
            with pytest.raises(InvalidRequest):
                self.replica.individuals.lower_limit(me, name, limit_rho=Decimal(to))
            return
        self.replica.individuals.lower_limit(me, name, limit_rho=Decimal(to))
        person.limit = to * 2**40

    @rule(name=st.sampled_from(DATASETS), key=KEYS, paused=st.booleans())
    def pause(self, name: str, key: str, paused: bool) -> None:
        """Pause or resume an individual, possibly repeatedly: its limit does not change."""
        person = self.models[name].people.get(key)
        if person is None or not person.present:
            return
        me = self.replica.principals.create(role="individual", name=key, dataset=name, individual=key)[0]
        told = (
            self.replica.individuals.lower_limit(me, name, pause=True)
            if paused
            else self.replica.individuals.resume(me, name)
        )
        assert (told.paused, Fraction(told.budget_rho)) == (paused, person.limit * UNIT)
        assert told.left_out_for_good == (RULES[name] == "drop" and person.has_been_left_out)
        person.paused = paused

    @rule()
    def restart(self) -> None:
        """A new process finds the same accounts and answers."""
        self.replica.close()
        self.replica = self.open()

    @invariant()
    def accounts_agree(self) -> None:
        """Spent <= budget always, and every account is the reference's."""
        for name, model in self.models.items():
            rows = {row.key: row for row in self.replica.curators.budgets(name, cursor=None, limit=100).items}
            present = {key: person for key, person in model.people.items() if person.present}
            assert {key: (row.spent_units, row.budget_units, row.paused) for key, row in rows.items()} == {
                key: (person.spent, person.limit, person.paused) for key, person in present.items()
            }
            assert all(row.spent_units <= row.budget_units for row in rows.values())
            assert all(Fraction(row.spent_rho) == row.spent_units * UNIT for row in rows.values())

    @invariant()
    def ledger_replays(self) -> None:
        """The ledger, replayed from its genesis, gives the pages and breaks no limit."""
        assert [report.findings for report in verify_all(self.store)] == [[] for _ in self.models]

    @invariant()
    def view_agrees(self) -> None:
        """The SQL view, with one row for each individual, erased ones included, agrees."""
        if self.database_url is None:
            return
        with psycopg.connect(self.database_url) as connection:
            rows = [(each.dataset, each.spent_units, each.limit_units) for each in spent_in(connection, LEDGER_KEY)]
        people = [(name, p.spent, p.limit) for name, model in self.models.items() for p in model.people.values()]
        assert sorted(rows) == sorted(people)


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
def test_every_rule_accounting_and_mechanism_gives_the_reference(accounting: str) -> None:
    """Skip, drop and, of Gaussian queries, clip: queries of each kind until some are charged and some are left out.

    Erased, paused and returned individuals on the way; accounts, replay and restart agree.
    """
    random, machine = Random(accounting), FilterMachine(MemoryStore())
    machine.register(accounting)
    for name in DATASETS:
        for place in range(6):
            machine.join(name, f"p{place}", random.choice([None, 2, 5, 9]), random.choice([None, None, "0.5"]))
        machine.visit(name, random.choices([f"p{place}" for place in range(6)], k=12), random.randrange(AREAS))
    for turn in range(12):
        for name in DATASETS:
            area = random.randrange(AREAS)
            kind = random.choice(["older", "visits", "frequent"])
            machine.ask_with_laplace_noise(name, kind, area, random.choice(SCALES))
            machine.ask(name, random.choice(["older", "visits", "all", "clipped"]), area, random.choice([3.0, 0.7]))
            machine.pause(name, random.choice(["p0", "p1"]), paused=turn % 3 == 0)
            if turn == 6:
                machine.erase(name, "p2")
                machine.join(name, "p2", 9, None)
        machine.accounts_agree()
    machine.restart()
    machine.accounts_agree()
    machine.ledger_replays()
    with machine.store.transaction(1, lock=False) as transaction:
        entries = list(transaction.entries(after=0))
    machine.teardown()
    laplace = [entry for entry in entries if entry.mechanism != "gaussian"]
    assert {entry.mechanism for entry in laplace} == {f"laplace {accounting.removesuffix(' simple')}"}
    assert (len(entries) > len(laplace)) == (accounting != "pure")
    assert sum(entry.charged_count for entry in laplace) > 0 < sum(entry.left_out_count for entry in laplace)


def test_every_order_of_events_gives_the_reference() -> None:
    """Twelve histories of thirty events in a run, each checked after every event."""
    run_state_machine_as_test(
        lambda: FilterMachine(MemoryStore()),  # type: ignore[arg-type]  # it is only ever called
        settings=settings(max_examples=times(12, 60), stateful_step_count=30, deadline=None),
    )


def test_postgres_keeps_the_same_accounts(new_database: Callable[[], str]) -> None:
    """Fewer histories on the real database, where the SQL view is compared as well."""

    def machine() -> FilterMachine:
        url = new_database()
        return FilterMachine(PostgresStore(url, LEDGER_KEY, connections_max=4), url)

    run_state_machine_as_test(
        machine,  # type: ignore[arg-type]  # it is only ever called
        settings=settings(max_examples=times(2, 20), stateful_step_count=20, deadline=None),
    )
