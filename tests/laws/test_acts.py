"""Replicas follow acts as changes: the memory of one that follows always equals that of one that starts anew.

Two services over one store act and answer; two memories follow at intervals and build indexes in between.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import orjson
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from numpy.typing import NDArray

from service.ledger.model.errors import InvalidRequest, NotFound
from service.ledger.model.rows import ColumnCodes, SlotsInUse
from service.ledger.model.views import Principal
from service.query.keys import Key
from service.query.parse import parse_query
from service.query.plan import Plan, compile_query
from service.writer.state import DatasetState
from tests.engine.blocks import ALWAYS, NEVER, answered
from tests.factories import PEOPLE, VISITS, analyst, ask, open_replica, register, upload
from tests.memory.shards import only_shard
from tests.memory.store import MemoryStore
from tests.memory.transaction import MemoryTransaction
from tests.rotation import times

ROWS_MAX = 9
KEYS = [f"p{n}" for n in range(7)]
TABLES = {"people": PEOPLE, "visits": VISITS | {"unknown_individuals": "create", "rows_per_individual": ROWS_MAX}}
REPLICAS = st.integers(0, 1)
CONDITIONS: list[dict[str, Any]] = [
    {},
    {"where": {"eq": [{"col": "country"}, "NO"]}},
    {"where": {"and": [{"eq": [{"col": "country"}, "NO"]}, {"eq": [{"col": "age"}, 3]}]}},
    {"from": "visits", "where": {"eq": [{"col": "item"}, 1]}},
    {"from": "visits"},
    {"rule": "clip"},
    {"select": [{"active": {"share": 0.9}}]},
]


class CountingTransaction(MemoryTransaction):
    """Counts the rows and accounts that are read, and records whether all were asked for."""

    rows_read, has_read_all = 0, False

    def individuals(self, *, of: NDArray[np.int64] | None = None) -> SlotsInUse:
        found = super().individuals(of=of)
        self._count(found.slots, of)
        return found

    def records(self, table: str, *, of: NDArray[np.int64] | None = None) -> tuple[NDArray[np.int64], ColumnCodes]:
        slots, codes = super().records(table, of=of)
        self._count(slots, of)
        return slots, codes

    def _count(self, slots: NDArray[np.int64], of: NDArray[np.int64] | None) -> None:
        self.rows_read += slots.size
        self.has_read_all |= of is None


class ActsMachine(RuleBasedStateMachine):
    """Any order of acts and queries at two services, and two memories that follow."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = ExitStack()
        self.store = MemoryStore()
        self.replicas = [self.opened.enter_context(open_replica(self.store)) for _ in range(2)]
        register(self.replicas[0], rho="2", tables=TABLES)
        self.record = self.store.datasets()[0]
        self.asker = analyst(self.replicas[0])
        self.followers = [DatasetState(self.record) for _ in range(2)]
        self.asked = 0
        self.plans = [self.plan(condition) for condition in CONDITIONS]
        self.touched = [0, 0]  # rows and accounts of what was touched since a follower last looked, at most
        for who in (0, 1):
            self.follow(who, 0)

    def teardown(self) -> None:
        self.opened.close()

    def plan(self, condition: dict[str, Any]) -> Plan:
        """The plan of a count under a condition."""
        document = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 3.0}} | condition
        return compile_query(
            parse_query(orjson.dumps(document)),
            self.record.schema,
            capacity=self.record.capacity,
            budget_units=self.record.budget_units,
        )

    @rule(
        who=REPLICAS,
        rows=st.lists(
            st.tuples(st.sampled_from(KEYS), st.sampled_from(["NO", "SE", None]), st.integers(0, 4), st.just(1)),
            max_size=4,
        ),
    )
    def join(self, who: int, rows: list[tuple[object, ...]]) -> None:
        """Upload individuals, some of them erased before; refused as a whole if one is present."""
        self.uploaded(who, "people", rows)

    @rule(who=REPLICAS, rows=st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 2)), max_size=6))
    def visit(self, who: int, rows: list[tuple[object, ...]]) -> None:
        """Upload events of known and of unknown individuals; refused as a whole if there are too many."""
        self.uploaded(who, "visits", rows)

    def uploaded(self, who: int, table: str, rows: Sequence[Sequence[object]]) -> None:
        """Upload rows; a refusal changes nothing."""
        try:
            upload(self.replicas[who], table, rows)
        except InvalidRequest:
            return
        for slot in {self.slot_of(str(row[0])) for row in rows}:
            self.touched = [count + 2 + self.visits_of(slot) for count in self.touched]

    @rule(who=REPLICAS, key=st.sampled_from(KEYS))
    def erase(self, who: int, key: str) -> None:
        """Erase an individual."""
        try:
            self.replicas[who].curators.erase_individual("survey", key)
        except NotFound:
            return

    @rule(who=REPLICAS, key=st.sampled_from(KEYS), limit=st.sampled_from([None, "0.5", "1"]))
    def lower(self, who: int, key: str, limit: str | None) -> None:
        """Lower an individual's limit, or pause it."""
        rho = None if limit is None else Decimal(limit)
        with suppress(InvalidRequest, NotFound):
            self.replicas[who].individuals.lower_limit(individual(key), "survey", limit_rho=rho, pause=limit is None)

    @rule(who=REPLICAS, key=st.sampled_from(KEYS))
    def resume(self, who: int, key: str) -> None:
        """End an individual's pause, if it has one."""
        with suppress(NotFound):
            self.replicas[who].individuals.resume(individual(key), "survey")

    @rule(who=REPLICAS)
    def open_epoch(self, who: int) -> None:
        """Open an epoch, which changes no record."""
        self.replicas[who].curators.open_epoch("survey")

    @rule(who=REPLICAS, condition=st.sampled_from(CONDITIONS))
    def ask(self, who: int, condition: dict[str, Any]) -> None:
        """Answer a query at one of the services."""
        self.asked += 1
        ask(self.replicas[who], self.asker, f"k{self.asked}", reuse=False, **condition)

    @rule(who=REPLICAS, made=st.integers(0, len(CONDITIONS)))
    def follow(self, who: int, made: int) -> None:
        """A memory catches up by reading only the touched slots, then answers some queries."""
        follower, is_new = self.followers[who], self.followers[who].position is None
        transaction = CountingTransaction(self.store, 1, lock=False)
        follower.catch_up(transaction)
        if not is_new:
            assert not transaction.has_read_all
            assert transaction.rows_read <= self.touched[who]
        self.touched[who] = 0
        self.compare(follower)
        for plan in self.plans[:made]:
            answered(plan, only_shard(follower).memory, scan_worth=ALWAYS)

    @rule(key=st.sampled_from(KEYS))
    def act_in_another_way(self, key: str) -> None:
        """After an act that is not followed by its slots, as an extension is not, all is read again: the same."""
        with self.store.transaction(1, lock=True) as transaction:
            slot = transaction.slots_of([Key(key)])
            if slot[0] < 0 or self.visits_of(int(slot[0])) == ROWS_MAX:
                return
            transaction.add_records("visits", slot, {"item": np.array([1], dtype=np.uint8)})
            transaction.journal("extend", {})
            transaction.commit()
        for follower in self.followers:
            follower.catch_up(MemoryTransaction(self.store, 1, lock=False))
        self.touched = [0, 0]

    @invariant()
    def services_hold_what_a_start_would_load(self) -> None:
        """The services' own memories, after each act or answer."""
        for replica in self.replicas:
            state = replica.registry.writer(self.record)._state
            if state.position == (1, self.kept.head.seq, self.kept.head.data_version):
                self.compare(state)

    def compare(self, state: DatasetState) -> None:
        """Compare a state with one that is loaded now."""
        fresh = DatasetState(self.record)
        fresh.catch_up(MemoryTransaction(self.store, 1, lock=False))
        assert held(state) == held(fresh)
        assert state.position == fresh.position
        for plan in self.plans:
            by_index, by_scan, wanted = (
                answered(plan, memory, scan_worth=worth)
                for memory, worth in (
                    (only_shard(state).memory, ALWAYS),
                    (only_shard(state).memory, NEVER),
                    (only_shard(fresh).memory, NEVER),
                )
            )
            assert by_index == by_scan == wanted

    @property
    def kept(self) -> Any:
        """The stored dataset."""
        return self.store.kept[1]

    def visits_of(self, slot: int) -> int:
        """The number of events of a slot."""
        return sum(int((slots == slot).sum()) for slots, _ in self.kept.records.get("visits", ()))

    def slot_of(self, key: str) -> int:
        """The slot of a key."""
        return int(next(slot for slot, person in self.kept.people.items() if person.key == key))


def individual(key: str) -> Principal:
    """The principal of an individual."""
    return Principal(
        id=UUID(int=9), role="individual", name=key, dataset="survey", individual=Key(key), allowance_units=None
    )


def held(state: DatasetState) -> list[Any]:
    """Everything that a memory holds of its first slots; the events of a slot are sorted."""
    memory, size = only_shard(state).memory, len(KEYS) + 1
    return [
        memory.people.present[:size].tolist(),
        {name: codes[:size].tolist() for name, codes in memory.people.columns.items()},
        memory.accounts.limits[:size].tolist(),
        memory.accounts.spent[:size].tolist(),
        memory.accounts.paused[:size].tolist(),
        memory.counters.charged_of(slice(None))[:size].tolist(),
        memory.counters.left_out_of(slice(None))[:size].tolist(),
        sorted(events(state)),
    ]


def events(state: DatasetState) -> Iterator[tuple[int, int]]:
    """(slot, item) of each event."""
    for _, page in only_shard(state).memory.events["visits"].pages():
        yield from zip(page.owners.tolist(), page.columns["item"].tolist(), strict=True)


def test_a_memory_that_follows_holds_what_a_start_would_load() -> None:
    """Ten histories of thirty events in a run, eighty in the soak."""
    run_state_machine_as_test(
        ActsMachine, settings=settings(max_examples=times(10, 80), stateful_step_count=30, deadline=None)
    )


def test_an_erasure_at_another_service_is_followed() -> None:
    """One history of those that the machine draws; nobody is left, and nobody else is counted."""
    machine = ActsMachine()
    machine.join(0, [("p0", "NO", 1, 1), ("p1", "SE", 2, 1)])
    for who in (0, 1):
        machine.follow(who, 0)
    machine.erase(1, "p0")
    machine.follow(0, len(CONDITIONS))
    machine.services_hold_what_a_start_would_load()
    machine.teardown()
