"""`ledger verify` names every damage by table and row: of all that is stored, and of all that decides about people."""

from collections.abc import Callable, Collection, Iterator
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from io import BytesIO
from typing import Any

import orjson
import pytest

from service.core.release import answer
from service.core.renyi_filter import Accounts, Touched
from service.ledger.model.rows import DatasetRecord, RegistrationHistory
from service.ledger.model.views import Principal
from service.maintenance.verify import answers as answers_module
from service.maintenance.verify.registration import check_registration
from service.maintenance.verify.report import verify_all
from service.query.keys import Key
from service.query.plan import Plan, compile_query
from service.query.problems import QueryProblem
from service.store.postgres.store import PostgresStore
from service.workflows.individual import lowering, pausing
from tests.conftest import PostgresServer
from tests.factories import PEOPLE, TWO_PEOPLE, VISITS, SeededEntropy, analyst, ask, open_replica, register, witness_of
from tests.maintenance.verify.histories import history
from tests.memory.store import MemoryStore
from tests.workflows.damages import DAMAGES, Damage, Filled, damage, filled
from tests.workflows.surveys import counts_of, findings, surveyed, writer_of


@pytest.fixture(scope="module")
def ledger(postgres_server: PostgresServer, migrated_template: str) -> Iterator[Filled[Principal]]:
    """A database with the history, made by its analyst."""

    def fill(store: PostgresStore) -> Principal:
        with open_replica(store) as replica:
            return history(replica)

    with filled(postgres_server, migrated_template, fill) as made:
        yield made


def test_a_sound_dataset_is_counted(ledger: Filled[Principal]) -> None:
    """The report has no finding, and states how much was checked."""
    with ledger.opened() as (store, _):
        (report,) = verify_all(store, witness_of(store))
    assert report.findings == []
    assert (report.entries, report.acts, report.answers, report.accounts) == (3, 4, 4, 3)


@pytest.mark.parametrize("done", DAMAGES, ids=str)
def test_every_damage_is_named(ledger: Filled[Principal], done: Damage) -> None:
    """The finding names table and row."""
    with ledger.opened() as (store, database_url):
        damage(database_url, done.statement.format(ana=ledger.made.id))
        found = findings(store)
    assert any(done.found.format(ana=ledger.made.id) in finding for finding in found), found


def limits_times(store: MemoryStore, factor: Fraction, slots: Collection[int]) -> None:
    """Change the limits of some accounts with the rights of the owner."""
    people = store.kept[1].people
    for slot in slots:
        people[slot] = replace(people[slot], limit_units=int(people[slot].limit_units * factor))


def test_charges_under_a_doubled_limit_are_found_after_it_is_set_back(store: MemoryStore) -> None:
    """The broken promise of 0.5 is found, although the limit was set back."""
    with open_replica(store) as replica:
        history(replica)
    limits_times(store, Fraction(4), range(3))
    with open_replica(store, SeededEntropy(7)) as replica:
        who = analyst(replica, "bea")
        for key in ("d", "e"):
            ask(replica, who, key, reuse=False, noise={"sigma": 1.0})
    limits_times(store, Fraction(1, 4), range(3))
    found = findings(store)
    assert any("individuals row 0: has spent" in each and "its limit is" in each for each in found), found
    assert any("individuals row 0: has spent" in each and "its largest limit ever" in each for each in found)


@pytest.mark.parametrize(
    ("rule", "wrongly", "found"),
    [
        ("skip", {"ann": False}, "ledger row 2: leaves out slot 0, which could pay"),
        ("skip", {"bob": True}, "ledger row 2: charges slot 1, which has paused"),
        ("skip", {"eve": True}, "ledger row 2: charges slot 2 beyond its limit"),
        ("skip", {"bob": False}, None),
        ("drop", {"ann": False}, "ledger row 2: leaves out slot 0, which could pay"),
        ("drop", {"eve": True}, "ledger row 2: charges slot 2, which was left out before"),
        ("drop", {}, None),
        ("clip", {"ann": False}, "ledger row 2: leaves out slot 0, which could pay"),
        ("clip", {}, None),
    ],
)
def test_participation_is_derived_again(
    monkeypatch: pytest.MonkeyPatch, rule: str, wrongly: dict[str, bool], found: str | None
) -> None:
    """A filter whose decision contradicts limits, pauses, charges and the rule is found in the entry concerned.

    Eve, whose limit is 2^-10 rho, cannot pay for the first query and can for the second.
    """
    store, slots = MemoryStore(), {"ann": 0, "bob": 1, "eve": 2}
    with surveyed(
        store,
        [("ann", "NO", 44, 10), ("bob", "SE", 30, 20.5), ("eve", "NO", 50, 1)],
        rule="drop" if rule == "drop" else "skip",
    ) as replica:
        writer = writer_of(replica)
        writer.act(lowering(Key("eve"), stated_units=2**30, reserve_units=0))
        who = analyst(replica)
        ask(replica, who, "a", reuse=False, noise={"sigma": 2.0 if rule == "drop" else 100.0})
        writer.act(pausing(Key("bob"), paused=True))
        real = Accounts.active

        def faulty(self: Accounts, touched: Touched, charges: Any, dropped: Any = None) -> Any:
            active = real(self, touched, charges, dropped)
            for name, takes_part in wrongly.items():
                active[slots[name] - touched.begin] = takes_part
            return active

        def unchecked(self: Accounts, touched: Touched, active: Any, charges: Any) -> Any:
            self.room[touched.index] -= active * charges
            return active * charges

        monkeypatch.setattr(Accounts, "active", faulty)
        monkeypatch.setattr(Accounts, "debit", unchecked)
        shortened = {"rule": "clip"} if rule == "clip" else {}
        ask(replica, who, "b", reuse=False, noise={"sigma": 100.0 if rule == "drop" else 2.0}, **shortened)
    told = findings(store)
    assert (found in told) if found else (told == []), told


@pytest.mark.parametrize(
    ("amount", "found"),
    [
        (lambda whole: whole // 2, "ledger row 1: shortens the vector of slot 0, which could pay"),
        (lambda whole: whole + 1, "ledger row 1: counts more of slot 0 than there is"),
        (lambda whole: whole, None),
    ],
)
def test_a_vector_that_was_shortened_for_nothing_is_found(
    monkeypatch: pytest.MonkeyPatch, amount: Callable[[int], int], found: str | None
) -> None:
    """Its individual could pay for all of it; a vector longer than the whole one is found too."""
    store = MemoryStore()

    def faulty(*arguments: Any, **named: Any) -> Any:
        release = answer(*arguments, **named)
        (block,) = release.blocks
        norms = block.norms_squared.copy()
        norms[0] = amount(int(norms[0]))
        return replace(release, blocks=(replace(block, norms_squared=norms),))

    monkeypatch.setattr("service.writer.shards.shard.answer", faulty)
    with surveyed(store, TWO_PEOPLE) as replica:
        ask(replica, analyst(replica), "a", noise={"sigma": 9.0}, rule="clip")
    told = findings(store)
    assert (found in told) if found else (told == []), told


def test_limits_count_from_when_they_were_lowered() -> None:
    """An individual that could pay before may be unable to later, and pauses end."""
    store, two = MemoryStore(), 2 * -(-(2**40) // 162)  # units that two counts at sigma 9 cost
    with surveyed(store, TWO_PEOPLE) as replica:
        writer, who = writer_of(replica), analyst(replica)
        for key, act in [
            ("a", pausing(Key("bob"), paused=True)),
            ("b", lowering(Key("ann"), stated_units=two, reserve_units=0)),
            ("c", pausing(Key("bob"), paused=False)),
            ("d", lowering(Key("bob"), stated_units=two, reserve_units=0)),
            ("e", None),
        ]:
            ask(replica, who, key, reuse=False, noise={"sigma": 9.0})
            if act is not None:
                writer.act(act)
        counts = counts_of(replica)
    assert counts == [(2, 0), (1, 1), (0, 2), (1, 1), (0, 2)]
    assert findings(store) == []


def test_a_slot_left_out_wrongly_is_found(store: MemoryStore) -> None:
    """Uploaded limits are not in the journal, but an entry shows that one was once too small."""
    with open_replica(store) as replica:
        people: dict[str, Any] = dict(PEOPLE)
        people["columns"] = people["columns"] | {"limit": {"type": "budget"}}
        register(replica, tables={"people": people})
        rows = "person_id,country,age,spend,limit\nann,NO,44,10,0.1\nbob,SE,30,20,\n"
        replica.curators.append_rows("survey", "people", "text/csv", BytesIO(rows.encode()))
        ask(replica, analyst(replica), "a", noise={"sigma": 2.0})
    assert findings(store) == []
    limits_times(store, Fraction(2), [0])
    assert findings(store) == ["ledger row 1: leaves out slot 0, whose limit affords it"]


def refused(*_: object, **__: object) -> Plan:
    """A version that does not read a query any more."""
    raise QueryProblem.of("version", "is not read any more")


def with_another_group(*query: Any, **public: Any) -> Plan:
    """A version that reads one group more out of every query."""
    plan = compile_query(*query, **public)
    return replace(plan, dimension=plan.dimension + 1)


def state_otherwise(store: MemoryStore, who: Principal, **other: Any) -> None:
    """Change what the answer under the key `a` states."""
    answers = store.kept[1].answers
    row = answers[who.id, "a"]
    answers[who.id, "a"] = replace(row, body=orjson.dumps(orjson.loads(row.body) | other))


@pytest.mark.parametrize("compiled", [refused, with_another_group])
def test_an_entry_whose_query_cannot_be_planned_is_found(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, compiled: Callable[..., Plan]
) -> None:
    """A query that is not read, or makes another number of groups, is named at each of its answers."""
    with open_replica(store) as replica:
        who = history(replica)
    monkeypatch.setattr(answers_module, "compile_query", compiled)
    found = findings(store)
    assert f"answers row 'a' of {who.id}: ledger row 1 has no query that can be planned" in found
    assert [each.endswith("has no query that can be planned") for each in found] == [True] * 4


@pytest.mark.parametrize("change", [{"half_width_95": 5.9}, {"warnings": None}, {"another": 1}])
def test_an_answer_that_states_anything_else_is_found(store: MemoryStore, change: dict[str, Any]) -> None:
    """Its body is one function of the entry and the query, byte for byte."""
    with open_replica(store) as replica:
        who = history(replica)
    state_otherwise(store, who, **change)
    assert len(findings(store)) == 1


def registered(rho: Any, floor: str | None) -> DatasetRecord:
    """The registration of a dataset with this rho and this floor of limits."""
    with open_replica() as replica:
        register(replica, rho=rho, **({} if floor is None else {"limit_floor_rho": floor}))
        return replica.registry.record("survey")


@pytest.mark.parametrize(
    ("rho", "floor"),
    [("0.5", None), ("0.50", None), (0.1, None), ("1E-3", None), ("12", "0.25"), ("0.333", "0.333"), ("1E+2", None)],
)
def test_a_rho_is_bound_however_it_was_written(rho: Any, floor: str | None) -> None:
    """The row stores only units; the genesis binds the digits."""
    assert check_registration(RegistrationHistory(registered(rho, floor)), []) == []


@pytest.mark.parametrize(("rho", "floor"), [("0.5", None), ("12", "0.25")])
def test_a_budget_or_a_floor_of_other_units_is_found(rho: str, floor: str | None) -> None:
    """By a unit more or less; all spellings of those units are tried before."""
    record = registered(rho, floor)
    for changed in (
        replace(record, budget_units=record.budget_units + 1),
        replace(record, limit_floor_units=record.limit_floor_units - 1),
    ):
        assert check_registration(RegistrationHistory(changed), []) != []


def test_an_epsilon_gives_its_budget() -> None:
    """The genesis binds epsilon and delta, which give the units by its accounting, and all else of the row."""
    store = MemoryStore()
    with open_replica(store) as replica:
        register(replica, guarantee={"epsilon": "1", "delta": "1e-6"})
        record = replica.registry.record("survey")
    assert check_registration(RegistrationHistory(record), []) == []
    (found,) = check_registration(RegistrationHistory(replace(record, budget_units=2 * record.budget_units)), [])
    assert "its accounting and guarantee give" in found
    people: dict[str, Any] = deepcopy(PEOPLE)
    people["columns"]["age"]["upper"] = 121
    with open_replica() as replica:
        register(replica, guarantee={"epsilon": "1", "delta": "1e-6"}, tables={"people": people, "visits": VISITS})
        wider = replica.registry.record("survey").schema
    others: tuple[dict[str, Any], ...] = (
        {"guarantee": replace(record.guarantee, delta="1E-5")},
        {"limit_floor_units": 1},
        {"capacity": 2 * record.capacity},
        {"schema": wider},
    )
    for other in others:
        assert check_registration(RegistrationHistory(replace(record, **other)), []) != []
