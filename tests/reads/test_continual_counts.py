"""The continual count of the exhausted, from its registration by way of its ticks to its verification."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import isqrt
from typing import Any

import numpy as np
import orjson
import pytest

from service.accounting.monitor import coefficients
from service.core.charge import UNITS_PER_RHO
from service.core.release import Participants
from service.core.renyi_filter import Touched
from service.ledger.model.analyst_views import StoredAnswer
from service.ledger.model.errors import InvalidRequest, KeyConflict, NotFound, Unavailable
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.pieces import Measure, pieces_of
from service.ledger.model.views import Principal
from service.ledger.ports.store import Store
from service.maintenance.amend import amend_erased
from service.maintenance.prune import prune
from service.maintenance.rebuild_answer import rebuild
from service.maintenance.reconcile import reconcile
from service.maintenance.what_if import what_if
from service.query.parse import parse_query
from service.workflows.replica import Replica
from tests.factories import (
    CLOCK,
    THREE_PEOPLE,
    SeededEntropy,
    analyst,
    ask,
    individual_named,
    open_replica,
    register,
    upload,
    witness_of,
)
from tests.memory.cache import MemoryWitness
from tests.memory.shards import MemoryShards, dividing
from tests.memory.store import MemoryStore
from tests.waiting import PATIENCE_S
from tests.workflows.stores import FaultyStore
from tests.workflows.surveys import NORWAY, entries_of, fill, findings, on_both_stores, writer_of

MONITOR: dict[str, Any] = {"rho": "0.1", "ticks": 6, "share": 0.5}
RESERVE = UNITS_PER_RHO // 10
BUDGET = UNITS_PER_RHO // 2
STEPS = coefficients(6).tolist()
DEAR: dict[str, Any] = {"noise": {"rho": 0.2}, "reuse": False}  # a count that takes half of what queries may cost


@pytest.fixture
def store(store: Store) -> Store:
    """A dataset of Ann, Bob and Eve that has a monitor; its replica is closed."""
    fill(store, monitor=MONITOR)
    return store


@pytest.fixture
def replica(store: Store) -> Iterator[Replica]:
    """A replica on the store."""
    with open_replica(store, SeededEntropy(7)) as opened:
        yield opened


def tick(replica: Replica, who: Principal, key: str, **more: Any) -> StoredAnswer:
    """Ask for the next tick."""
    document = {"version": 1, "select": [{"exhausted": {}}]} | more
    return replica.analysts.submit(who, "survey", key, parse_query(orjson.dumps(document))).result(timeout=PATIENCE_S)


def added(store: Store) -> list[dict[int, int]]:
    """The steps that each tick has counted, by slot."""
    ticks = [entry for entry in entries_of(store) if entry.tick]
    told = [entry.quantities() for entry in ticks]
    return [
        {slot: isqrt(amount) for slot, amount in zip(each.touched.tolist(), each.amounts.tolist(), strict=True)}
        for each in told
    ]


def test_who_falls_below_the_share_is_counted_from_the_next_tick_on(
    store: Store, replica: Replica, ana: Principal
) -> None:
    """Ann and Eve pay for a count of Norway, and later Bob for one of everybody; ticks charge none of them.

    A tick is none of the queries that charged them, and their receipts say that it counted them.
    """
    tick(replica, ana, "t1")
    ask(replica, ana, "q1", **NORWAY, **DEAR)
    tick(replica, ana, "t2")
    tick(replica, ana, "t3")
    ask(replica, ana, "q2", **DEAR)
    tick(replica, ana, "t4")
    assert added(store) == [
        {},
        {0: STEPS[0], 2: STEPS[0]},
        {0: STEPS[1], 2: STEPS[1]},
        {0: STEPS[2], 1: STEPS[0], 2: STEPS[2]},
    ]
    ann, bob = (replica.individuals.budgets(individual_named(replica, key))[0] for key in ("ann", "bob"))
    assert [float(own.spent_rho) for own in (ann, bob)] == pytest.approx([0.4, 0.2])
    assert (ann.queries_charged, bob.queries_charged) == (2, 1)
    receipts = replica.individuals.receipts(individual_named(replica, "ann"), cursor=None, limit=9).items
    outcomes = [each.outcome for each in reversed(receipts)]
    assert outcomes == ["untouched", "charged", "counted", "counted", "charged", "counted"]
    assert findings(store) == []


def test_an_answer_says_its_tick_and_costs_nothing(store: Store, replica: Replica, ana: Principal) -> None:
    """Its noise is the monitor's; the entry's mechanism says that it is prepaid; the same key gives the same bytes."""
    first = tick(replica, ana, "t1")
    told = orjson.loads(first.body)
    monitor = replica.registry.record("survey").monitor
    assert monitor is not None
    assert (told["tick"], told["worst_case_rho"], told["sigma"], told["grid"]) == (1, "0", monitor.sigma, 2.0**-20)
    assert (told["warnings"], told["coverage_certified"], "mechanism" in told) == ([], True, False)
    assert tick(replica, ana, "t1").body == first.body
    assert orjson.loads(tick(replica, ana, "t2").body)["tick"] == 2
    with pytest.raises(KeyConflict):
        ask(replica, ana, "t1")
    with store.transaction(1, lock=False) as transaction:
        entries = list(transaction.entries(after=0))
        assert transaction.head.worst_case_units == 0
    assert [entry.mechanism for entry in entries] == ["gaussian prepaid 1", "gaussian prepaid 2"]
    assert {entry.worst_case_units for entry in entries} == {0}
    assert replica.analysts.allowances(ana)[0].spent_rho == "0"


@on_both_stores
def test_ticks_of_one_batch_are_numbered_in_order(store: Store, replica: Replica, ana: Principal) -> None:
    """Beside each other in one transaction; the second counts whom the query between them has left below."""
    bodies = [{"version": 1, "select": [{"exhausted": {}}]}, {"version": 1, "select": [{"count": {}}], **DEAR}]
    queries = [parse_query(orjson.dumps(bodies[place])) for place in (0, 1, 0)]
    waiting = replica.analysts.submit_all(ana, "survey", [(f"k{place}", each) for place, each in enumerate(queries)])
    told = [orjson.loads(each.result(timeout=PATIENCE_S).body) for each in waiting]
    assert [each.get("tick") for each in told] == [1, None, 2]
    assert added(store) == [{}, dict.fromkeys(range(3), STEPS[0])]


@on_both_stores
def test_ticks_are_used_up(store: Store, replica: Replica, ana: Principal) -> None:
    """The seventh of six is refused, and nothing is kept under its key."""
    for number in range(6):
        tick(replica, ana, f"t{number}")
    for _ in range(2):
        with pytest.raises(InvalidRequest) as refused:
            tick(replica, ana, "more")
        assert [(each.field, each.message) for each in refused.value.errors] == [
            ("select[0].exhausted", "the monitor's 6 ticks are used up")
        ]
    assert len(added(store)) == 6
    shown = replica.analysts.monitor(ana, "survey")
    assert (shown.asked, shown.ended) == (6, True)


@on_both_stores
def test_a_restart_goes_on(store: Store, replica: Replica, ana: Principal) -> None:
    """From the entries, and from a checkpoint of them. No tick is one of the queries that have charged anybody."""
    ask(replica, ana, "q1", **NORWAY, **DEAR)
    tick(replica, ana, "t1")
    with open_replica(store, SeededEntropy(8)) as second:
        tick(second, ana, "t2")
        writer = writer_of(second)
        checkpoint = writer.look(lambda state: state.checkpoint())
        for page in checkpoint.pages:
            store.write_page(1, checkpoint, page)
        assert store.finish_checkpoint(1, checkpoint)
    with open_replica(store, SeededEntropy(9)) as third:
        tick(third, ana, "t3")
        assert writer_of(third).look(lambda state: state.account(0)).queries_charged == 1
    assert added(store) == [{0: step, 2: step} for step in STEPS[:3]]
    assert findings(store) == []


@on_both_stores
def test_a_pruning_keeps_the_first_ticks(store: Store) -> None:
    """The quantities go, and what an individual adds goes on where it was."""
    with open_replica(store) as replica:
        ana = analyst(replica)
        ask(replica, ana, "q1", **NORWAY, **DEAR)
        tick(replica, ana, "t1")
        ask(replica, ana, "q2")
    prune(store, witness_of(store), "survey", before=3, entropy=SeededEntropy(3))
    assert findings(store) == []
    with open_replica(store, SeededEntropy(4)) as replica:
        tick(replica, ana, "t2")
        assert replica.analysts.monitor(ana, "survey").asked == 2
    last = entries_of(store)[-1]
    assert (last.quantities().touched.tolist(), last.quantities().amounts.tolist()) == ([0, 2], 2 * [STEPS[1] ** 2])
    assert findings(store) == []


@pytest.mark.parametrize("amends", [False, True])
def test_an_individual_that_comes_back_begins_no_second_run(store: Store, *, amends: bool) -> None:
    """Erased, Ann adds nothing; back again she adds what the ticks since her first one ask for."""
    with open_replica(store) as replica:
        ana = analyst(replica)
        ask(replica, ana, "q1", **NORWAY, **DEAR)
        tick(replica, ana, "t1")
        replica.curators.erase_individual("survey", "ann")
        tick(replica, ana, "t2")
        writer = writer_of(replica)
        if amends:
            writer.checkpoint()
            amend_erased(writer)
    with open_replica(store, SeededEntropy(6)) as replica:
        upload(replica, "people", [("ann", "SE", 50, 1)])
        tick(replica, ana, "t3")
    first = {2: STEPS[0]} if amends else {0: STEPS[0], 2: STEPS[0]}
    assert added(store) == [first, {2: STEPS[1]}, {0: STEPS[2], 2: STEPS[2]}]
    assert findings(store) == []


def test_who_pauses_adds_nothing_meanwhile(store: Store, replica: Replica, ana: Principal) -> None:
    """Neither one that was counted before, nor one that falls below: Bob is counted when he is back."""
    ask(replica, ana, "q1", **DEAR)
    ann, bob = (individual_named(replica, key) for key in ("ann", "bob"))
    replica.individuals.lower_limit(bob, "survey", pause=True)
    tick(replica, ana, "t1")
    replica.individuals.lower_limit(ann, "survey", pause=True)
    tick(replica, ana, "t2")
    replica.individuals.resume(ann, "survey")
    replica.individuals.resume(bob, "survey")
    tick(replica, ana, "t3")
    assert added(store) == [{0: STEPS[0], 2: STEPS[0]}, {2: STEPS[1]}, {0: STEPS[2], 1: STEPS[0], 2: STEPS[2]}]
    assert findings(store) == []


def test_who_has_no_limit_adds_nothing(store: Store, replica: Replica, ana: Principal) -> None:
    """A limit of nothing but the reserve is 0 for queries: with that an individual is out of all."""
    ann = individual_named(replica, "ann")
    least = replica.individuals.budgets(ann)[0].lowest_limit_rho
    replica.individuals.lower_limit(ann, "survey", limit_rho=Decimal(least))
    tick(replica, ana, "t1")
    replica.individuals.lower_limit(individual_named(replica, "bob"), "survey", limit_rho=Decimal("0.2"))
    tick(replica, ana, "t2")
    assert added(store) == [{}, {1: STEPS[0]}]
    assert findings(store) == []


@on_both_stores
def test_limits_are_lower_by_the_reserve(store: Store, replica: Replica, ana: Principal) -> None:
    """For queries; the promise is of both, and so is the bound on the loss so far."""
    told = orjson.loads(ask(replica, ana, "q1", noise={"rho": 0.4}, reuse=False).body)
    assert told["coverage_certified"]
    assert not orjson.loads(ask(replica, ana, "q2", noise={"rho": 2.0**-39}).body)["coverage_certified"]
    with store.transaction(1, lock=False) as transaction:
        assert [entry.left_out_count for entry in transaction.entries(after=0)] == [0, 3]
        assert set(transaction.individuals().limits.tolist()) == {BUDGET - RESERVE}
    own = replica.individuals.budgets(individual_named(replica, "ann"))[0]
    assert Fraction(own.reserve_rho) * UNITS_PER_RHO == RESERVE
    assert own.promise_rho == "0.5"
    assert Fraction(own.budget_rho) == Fraction(BUDGET - RESERVE, UNITS_PER_RHO)
    assert own.epsilon_so_far_time_uniform is None  # with the reserve it is all of the budget


def test_a_limit_is_lowered_with_the_reserve_in_it(store: Store) -> None:
    """A limit of x is all that is ever spent. Below what is spent and kept it is refused with that number."""
    with open_replica(store) as replica:
        ana, caller = analyst(replica), individual_named(replica, "ann")
        ask(replica, ana, "q1", noise={"rho": 0.125}, reuse=False)
        own = replica.individuals.budgets(caller)[0]
        assert Fraction(own.lowest_limit_rho) == Fraction(own.spent_rho) + Fraction(own.reserve_rho) > Fraction(1, 5)
        with pytest.raises(InvalidRequest) as refused:
            replica.individuals.lower_limit(caller, "survey", limit_rho=Decimal("0.2"))
        assert own.lowest_limit_rho in refused.value.errors[0].message
        with pytest.raises(InvalidRequest):
            replica.individuals.lower_limit(caller, "survey", limit_rho=Decimal("0.500001"))
        lowered = replica.individuals.lower_limit(caller, "survey", limit_rho=Decimal("0.25"))
        assert Fraction(lowered.budget_rho) + Fraction(lowered.reserve_rho) == Fraction(1, 4)
        least = replica.individuals.lower_limit(caller, "survey", limit_rho=Decimal(own.lowest_limit_rho))
        assert least.remaining_rho == "0"


def test_a_reconciliation_ends_the_monitor(store: Store) -> None:
    """A restored database has lost the first ticks of individuals, which must not be counted once more."""
    with open_replica(store) as replica:
        ana = analyst(replica)
        tick(replica, ana, "t1")
    empty = MemoryWitness()
    assert reconcile(store, empty, "survey", burn_units=1, clock=lambda: CLOCK) is not None
    with open_replica(store, SeededEntropy(6), witness=empty) as replica:
        with pytest.raises(InvalidRequest) as refused:
            tick(replica, ana, "t2")
        (error,) = refused.value.errors
        assert error.field == "select[0].exhausted"
        assert error.message.startswith("the monitor has ended")
        shown = replica.analysts.monitor(ana, "survey")
        assert (shown.asked, shown.ended) == (1, True)
        assert tick(replica, ana, "t1").body
    assert findings(store, empty) == []


def test_released_ticks_are_shown_to_every_analyst(replica: Replica, ana: Principal) -> None:
    """Also those that another has asked, with the public terms; a dataset without a monitor has none."""
    told = [orjson.loads(tick(replica, ana, f"t{number}").body)["values"][0] for number in range(3)]
    shown = replica.analysts.monitor(analyst(replica, "bea"), "survey")
    assert shown.values == tuple(told)
    assert (shown.rho, shown.ticks, shown.share, shown.asked, shown.ended) == ("0.1", 6, 0.5, 3, False)
    public = replica.analysts.dataset(ana, "survey").monitor
    assert public is not None
    assert (public.asked, public.sigma) == (3, shown.sigma)
    register(replica, "plain")
    assert replica.analysts.dataset(ana, "plain").monitor is None
    with pytest.raises(NotFound, match="no monitor"):
        replica.analysts.monitor(ana, "plain")
    with pytest.raises(InvalidRequest, match=r"select\[0\].exhausted: this dataset has no monitor"):
        replica.analysts.submit(ana, "plain", "t", parse_query(b'{"version":1,"select":[{"exhausted":{}}]}')).result()


def test_a_deleted_tick_is_rebuilt(store: MemoryStore, replica: Replica, ana: Principal) -> None:
    """Byte for byte, from its entry, under its key alone."""
    tick(replica, ana, "t1")
    tick(replica, ana, "t2")
    row = store.kept[1].answers.pop((ana.id, "t2"))
    assert findings(store) == ["ledger row 2: the answer to it is missing from answers"]
    assert rebuild(store, "survey", seq=2, key="t2") == row
    assert tick(replica, ana, "t2").body == row.body
    assert findings(store) == []


@pytest.mark.parametrize("fault", ["gone", "lost-request", "lost-reply", "late"])
def test_a_commit_that_fails_counts_nobody_twice(fault: str) -> None:
    """Taken back or durable after all, the same key gives one tick, and runs go on from it."""
    store = FaultyStore()
    fill(store, monitor=MONITOR)
    with open_replica(store, SeededEntropy(7)) as replica:
        ana = analyst(replica)
        ask(replica, ana, "q1", **NORWAY, **DEAR)
        store.faults = [fault]
        with suppress(Unavailable):
            tick(replica, ana, "t1")
        store.faults = []
        assert orjson.loads(tick(replica, ana, "t1").body)["tick"] == 1
        assert orjson.loads(tick(replica, ana, "t2").body)["tick"] == 2
    assert added(store) == [{0: step, 2: step} for step in STEPS[:2]]
    assert findings(store) == []


def test_two_replicas_go_on_from_each_other(store: Store, replica: Replica, ana: Principal) -> None:
    """By the entries of the other: the tick's number, and all first ticks."""
    ask(replica, ana, "q1", **NORWAY, **DEAR)
    with open_replica(store, SeededEntropy(8)) as other:
        for number in range(4):
            tick(replica if number % 2 else other, ana, f"t{number}")
    assert added(store) == [{0: step, 2: step} for step in STEPS[:4]]
    assert findings(store) == []


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        ({"mechanism": "gaussian prepaid 3"}, "ledger row 3: says tick 3, and 1 of 6 came before"),
        ({"sigma": 4.0}, "ledger row 3: its noise or its worst case is not that of the monitor"),
        ({"mechanism": "gaussian prepaid"}, "ledger row 3: its charges cannot be read"),
    ],
)
def test_a_damaged_tick_is_named(damage: dict[str, Any], finding: str) -> None:
    """Beside the hash that it does not give any more."""
    found = verified_with(lambda entry: replace(entry, **damage))
    assert finding in found


def with_pieces_of(block: Participants, entry: LedgerEntry) -> LedgerEntry:
    """The entry, as if these had taken part in it."""
    return replace(entry, pieces=pieces_of([block], Measure.NORMS, amount_max=2**40, slots=3, salt=entry.salt))


def test_ticks_that_count_others_are_named() -> None:
    """One that leaves out an individual, counts one that has enough left, or counts one by another number."""
    wrong = [
        ({2: STEPS[1]}, "leaves out slot 0"),
        ({0: STEPS[1], 1: STEPS[0], 2: STEPS[1]}, "counts slot 1"),
        ({0: STEPS[0], 2: STEPS[1]}, "counts slot 0 by another number"),
    ]
    for counted, said in wrong:
        slots, steps = np.array(list(counted)), np.array(list(counted.values()))
        block = Participants(
            touched=Touched(slots), active=np.ones(slots.size, np.bool_), norms_squared=steps**2, count=slots.size
        )
        found = verified_with(partial(with_pieces_of, block))
        assert any(each.startswith(f"ledger row 3: {said}") for each in found)


def verified_with(changed: Callable[[LedgerEntry], LedgerEntry]) -> list[str]:
    """The findings where the second of two ticks is changed in the store."""
    store = MemoryStore()
    fill(store, monitor=MONITOR)
    with open_replica(store, SeededEntropy(7)) as replica:
        ana = analyst(replica)
        ask(replica, ana, "q1", **NORWAY, **DEAR)
        tick(replica, ana, "t1")
        tick(replica, ana, "t2")
    assert findings(store) == []
    kept = store.kept[1]
    *before, last = kept.entries
    kept.entries = (*before, changed(last))
    return findings(store)


def test_what_if_passes_ticks_over(store: Store, replica: Replica, ana: Principal) -> None:
    """They decide about no individual, and are counted apart."""
    ask(replica, ana, "q1", **DEAR)
    tick(replica, ana, "t1")
    found = what_if(store, "survey")
    assert (found.queries, found.ticks, found.contributions, found.kept_here) == (1, 1, 3, 3)
    assert found.largest_units == 219902325555


def test_shards_count_alike() -> None:
    """Over three shards, as over one."""
    store = MemoryStore()
    with open_replica(store, options=dividing(MemoryShards(), 3)) as replica:
        register(replica, monitor=MONITOR)
        upload(replica, "people", THREE_PEOPLE)
        who = analyst(replica)
        ask(replica, who, "q1", **NORWAY, **DEAR)
        tick(replica, who, "t1")
        ask(replica, who, "q2", **DEAR)
        tick(replica, who, "t2")
    assert added(store) == [{0: STEPS[0], 2: STEPS[0]}, {0: STEPS[1], 1: STEPS[0], 2: STEPS[1]}]
    assert findings(store) == []


@pytest.mark.parametrize(
    ("monitor", "more", "field"),
    [
        (MONITOR, {"guarantee": {"epsilon": 1}, "accounting": {"kind": "pure"}}, "monitor"),
        (MONITOR | {"rho": "0.5"}, {}, "monitor.rho"),
        (MONITOR, {"limit_floor_rho": "0.1"}, "monitor.rho"),
        (MONITOR | {"rho": "1e-13"}, {}, "monitor.rho"),
        (MONITOR | {"rho": "1e-9"}, {}, "monitor.rho"),
        (MONITOR | {"share": 0.81}, {}, "monitor.share"),
    ],
)
def test_a_monitor_that_cannot_be_is_refused(monitor: dict[str, Any], more: dict[str, Any], field: str) -> None:
    """At registration, by the field; nothing is registered."""
    store = MemoryStore()
    with open_replica(store) as replica:
        with pytest.raises(InvalidRequest) as refused:
            register(replica, monitor=monitor, **more)
        assert [each.field for each in refused.value.errors] == [field]
        assert store.datasets() == []
