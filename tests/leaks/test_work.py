"""The work of a query is the same whether it selects none, one or two individuals: the same steps, one after another.

From the plan to the bytes that are stored: rows, their entries, norms, charges, the filter, the sum, the encoding. The
same at each of three shards, wherever those individuals are.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import UUID

import numpy as np
import pytest

import service
from service.accounting.accountings import GAUSSIAN, PURE, Accounting
from service.accounting.monitor import coefficients
from service.core.release import Block, Contributions
from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.engine.ticks import TickCounts
from service.ledger.model.pieces import pieces_of
from service.ledger.model.rows import SlotsInUse
from service.query.division import PAGE_SLOTS
from service.query.plan import Plan
from service.writer.shards.divided import DividedShards
from service.writer.shards.shard import Shard, Turn, measure_of
from tests.contracts.stores import dataset
from tests.core.injected import seeded
from tests.core.releases import answer
from tests.digests import with_digests
from tests.engine.worlds import CAPACITY, SCHEMA, Row, memory_of, planned, uploaded
from tests.memory.shards import divided

ROOT = str(Path(service.__file__).parent)
HELPERS = (f"{ROOT}/arrays.py",)  # views and copies of arrays: well below a microsecond
PERSON: Row = {"country": "NO", "area": 1, "level": 1, "spend": 10, "balance": -0.5, "member": True}
VISIT: Row = {"item": 5, "amount": 1, "cost": 2.5, "online": True}
SELECTS: dict[str, list[Any]] = {
    "count": [{"count": {}}],
    "active": [{"active": {"share": 0.5}}],
    "sum": [{"sum": {"column": "level"}}],
    "stacked": [{"count": {}}, {"sum": {"column": "spend"}}, {"histogram": {"column": "area"}}],
    "moments": [{"moments": {"features": [{"of": {"col": "level"}}, {"one_hot": "country"}]}}],
    "gradient": [
        {
            "gradient": {
                "loss": "softmax",
                "target": "area",
                "features": [{"of": {"mul": [{"col": "level"}, {"col": "balance"}]}, "fill": 0}],
                "intercept": True,
                "parameters": [[n, -1] for n in range(5)],
            }
        }
    ],
    "events": [{"count": {}}],
    "stacked events": [{"count": {}}, {"sum": {"column": "cost"}}, {"histogram": {"column": "item"}}],
}
LAPLACE: dict[str, Accounting] = {"count": GAUSSIAN, "sum": PURE, "events": PURE}
"""The selections that are also asked with Laplace noise, by the accounting that prices it."""
OF_EVENTS = {"events", "stacked events"}
REDUCED = {"largest": "max", "norm": "norm", "largest of events": "max", "norm of events": "norm"}
SELECTS |= {
    "largest": [{"histogram": {"column": "area"}}],
    "norm": [{"histogram": {"column": "area"}}],
    "largest of events": [{"histogram": {"column": "item"}}],
    "norm of events": [{"histogram": {"column": "item"}}],
}
OF_EVENTS |= {"largest of events", "norm of events"}
CLIPS: dict[str, dict[str, Any]] = {
    "natural": {},
    "binding": {"per_individual": {"l2_clip": 0.5}},
    "to what is left": {"rule": "clip"},
}
Evaluate = Callable[[Plan, DatasetMemory], Iterator[Block]]


def world(selected: int) -> DatasetMemory:
    """Forty people with two visits each; so many of them are what is asked for."""
    chosen = set(range(0, 40, 7)[:selected])
    people = {slot: PERSON | ({"level": 3, "spend": 99} if slot in chosen else {}) for slot in range(40)}
    visits = [(slot, VISIT | ({"amount": 3, "cost": 4.75} if slot in chosen else {})) for slot in people for _ in "ab"]
    memory = memory_of(people, [visits])
    memory.accounts.set_limits(slice(None), 2**60)
    memory.people.index_categories()
    return memory


def steps(plan: Plan, memory: DatasetMemory, evaluate: Evaluate = contributions) -> list[str]:
    """The functions of the service that are called, in order."""
    with noted() as called:
        release = answer(evaluate(plan, memory), memory.accounts, plan.terms, entropy=seeded(1))
        pieces_of(
            release.blocks,
            measure_of(release),
            amount_max=plan.scale.charged_squared_steps,
            slots=memory.slots_used,
            salt=bytes(32),
        )
        for block in release.blocks:
            memory.counters.count(block.touched, block.active)
    return called


def steps_of_tick(memory: DatasetMemory, number: int) -> list[str]:
    """The functions called for a tick of a monitor, which counts those with less than 2^59 left."""
    ticks = TickCounts(coefficients(9), 2**59)
    ticks.grow(memory.accounts.size)
    with noted() as called:
        release = ticks.release(memory, number, np.zeros(1, dtype=np.int64))
        measure, slots = measure_of(release), memory.slots_used
        pieces_of(release.blocks, measure, amount_max=2**40, slots=slots, salt=bytes(32))
        for block in release.blocks:
            memory.counters.count(block.touched, block.active)
    return called


def test_a_tick_is_the_same_for_none_for_one_and_for_two() -> None:
    """Every step, however many are exhausted, or rest."""
    memories = [world(9) for _ in range(4)]
    for memory, exhausted in zip(memories, ([], [0], [0, 35], range(40)), strict=True):
        memory.accounts.set_limits(np.array(exhausted, dtype=np.int64), 2**30)
    memories[-1].accounts.paused[:] = True
    nobody, one, two, resting = (steps_of_tick(memory, 1) for memory in memories)
    assert len(nobody) > 8
    assert nobody == one == two == resting


@contextmanager
def noted() -> Iterator[list[str]]:
    """The functions of the service that are called meanwhile."""
    called: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(ROOT) and file not in HELPERS:
            called.append(f"{file.removeprefix(ROOT)}:{frame.f_code.co_name}")

    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(None)


def compiled(name: str, clip: str, *, by_index: bool, laplace: Accounting | None = None) -> Plan:
    """The query, by a column that has an index or by one that has none."""
    column, literal = {
        (False, True): ("level", 3),
        (False, False): ("spend", 99),
        (True, True): ("amount", 3),
        (True, False): ("cost", 4.75),
    }[name in OF_EVENTS, by_index]
    query = {"version": 1, "from": "visits" if name in OF_EVENTS else "people", "select": SELECTS[name]}
    reduce = {} if clip == "to what is left" else {"reduce": REDUCED.get(name)}  # which is refused with it
    asked = query | reduce | {"where": {"eq": [{"col": column}, literal]}, "noise": {"sigma": 1000.0}} | CLIPS[clip]
    if laplace is not None:
        asked |= {"mechanism": "laplace", "noise": {"scale": 1000.0}}
    plan = planned(asked, pricing=laplace)
    assert plan is not None
    return plan


@pytest.mark.parametrize("by_index", [False, True])
@pytest.mark.parametrize("name", LAPLACE)
def test_it_is_the_same_with_laplace_noise(name: str, *, by_index: bool) -> None:
    """For none, one and two, and where nobody has anything left: chords and exact prices alike.

    The one price of a count is worked out once, from public numbers.
    """
    plan = compiled(name, "natural", by_index=by_index, laplace=LAPLACE[name])
    first = steps(plan, world(0))  # which reads the columns of the condition, once for a plan
    found = [steps(plan, world(selected)) for selected in range(3)]
    assert set(found[0]) <= set(first)
    assert found[0] == found[1] == found[2]
    assert plan.has_one_norm or any(step.startswith("/core/charge") or "laplace" in step for step in found[0])
    exhausted = world(2)
    exhausted.accounts.set_limits(slice(None), 0)
    assert steps(plan, exhausted) == found[0]


@pytest.mark.parametrize("by_index", [False, True])
@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("name", SELECTS)
def test_it_is_the_same_for_none_for_one_and_for_two(name: str, clip: str, *, by_index: bool) -> None:
    """Every step, whatever is asked, by a scan and through an index."""
    plan = compiled(name, clip, by_index=by_index)
    memories = [world(selected) for selected in (0, 1, 2)]
    for memory in memories:
        steps(plan, memory)  # indexes are made, and caches filled, by whatever is asked first
    nobody, one, two = (steps(plan, memory) for memory in memories)
    assert len(nobody) > 40
    assert nobody == one == two


@pytest.mark.parametrize("by_index", [False, True])
def test_it_is_the_same_where_none_one_and_two_are_active(*, by_index: bool) -> None:
    """Every step, whatever the others have left."""
    plan = compiled("active", "natural", by_index=by_index)
    memories = [world(9) for _ in range(3)]
    for memory, active in zip(memories, ([], [0], [0, 35]), strict=True):
        memory.accounts.set_limits(slice(None), 0)
        memory.accounts.set_limits(np.array(active, dtype=np.int64), 2**60)
        steps(plan, memory)
    nobody, one, two = (steps(plan, memory) for memory in memories)
    assert len(nobody) > 40
    assert nobody == one == two


def half_of(plan: Plan, slots: list[int]) -> DatasetMemory:
    """Six people are what is asked for; those at `slots` can pay for half of what they were charged once before."""
    memory, low = world(9), np.array(slots, dtype=np.int64)
    steps(plan, memory)
    charged = memory.accounts.spent
    memory.accounts.set_spent(slice(None), 0)
    memory.accounts.set_limits(low, charged[low] // 2)
    return memory


@pytest.mark.parametrize("by_index", [False, True])
@pytest.mark.parametrize("name", ["count", "stacked", "events"])
def test_it_is_the_same_where_none_one_and_two_are_shortened(name: str, *, by_index: bool) -> None:
    """Every step, whatever each has left."""
    plan = compiled(name, "to what is left", by_index=by_index)
    found = []
    for slots in ([], [0], [0, 35]):
        memory = half_of(plan, slots)
        found.append(steps(plan, memory))
        assert all(memory.accounts.spent[slots] > 0)
    nobody, one, two = found
    assert len(nobody) > 40
    assert nobody == one == two


@pytest.mark.parametrize("by_index", [False, True])
@pytest.mark.parametrize("name", ["sum", "stacked events"])
def test_it_is_the_same_where_nobody_has_anything_left(name: str, *, by_index: bool) -> None:
    """Every step, where all can pay and where all vectors are shortened to nothing."""
    plan = compiled(name, "to what is left", by_index=by_index)
    everybody, nobody = half_of(plan, []), half_of(plan, [])
    nobody.accounts.set_limits(slice(None), 0)
    assert steps(plan, everybody) == steps(plan, nobody)


SPREAD = tuple(page * PAGE_SLOTS + n for page in range(3) for n in range(40))
"""Forty people on each of three pages: with three shards, each has one."""
CHOSEN: dict[str, tuple[int, ...]] = {
    "nobody": (),
    "one": (1,),
    "two at one shard": (0, 2),
    "two at two": (2, PAGE_SLOTS),
}


def divided_world(chosen: tuple[int, ...]) -> DividedShards:
    """People on three shards with so many visits that an index is read for few; those at `chosen` are asked for."""
    shards = divided(replace(dataset(), schema=SCHEMA, capacity=CAPACITY), 3)
    slots, everybody = np.array(SPREAD), np.ones(len(SPREAD), dtype=np.bool_)
    limits = np.full(slots.size, 2**60)
    shards.load(replace(dataset(), schema=SCHEMA, capacity=CAPACITY), slots=3 * PAGE_SLOTS, number=1)
    shards.set_accounts(SlotsInUse(slots=slots, limits=limits, present=everybody, paused=~everybody))
    people = [PERSON | ({"level": 3, "spend": 99} if slot in chosen else {}) for slot in SPREAD]
    owners = np.repeat(slots, 5)
    asked = {"amount": 3, "cost": 4.75}
    visits = [VISIT | (asked if n % 5 == 0 and slot in chosen else {}) for n, slot in enumerate(owners.tolist())]
    shards.add_rows("people", slots, with_digests(uploaded("people", SPREAD, people).codes, SPREAD))
    shards.add_rows("visits", owners, uploaded("visits", owners.tolist(), visits).codes)
    shards.index_categories()
    shards.reset_spent()
    return shards


@cache
def kept_world(chosen: tuple[int, ...]) -> DividedShards:
    """A divided world for tests that ask the same of each."""
    return divided_world(chosen)


def steps_of_shards(plan: Plan, shards: DividedShards) -> list[str]:
    """The functions of the service that coordinator and shards call, in order, once all indexes are made."""
    for _ in range(3):
        with noted() as called:
            noise = np.zeros(plan.dimension, dtype=np.int64)
            turn = Turn(plan=plan, seq=1, query_id=UUID(int=1), salt=bytes(32), slots=3 * PAGE_SLOTS, noise=noise)
            shards.answer([turn])
        shards.prepare()
    return called


@pytest.mark.parametrize("by_index", [False, True])
@pytest.mark.parametrize("name", SELECTS)
def test_it_is_the_same_at_every_shard(name: str, *, by_index: bool) -> None:
    """Every step, where nobody is asked for at any shard, and where one or two people are, at one shard or at two."""
    plan = compiled(name, "natural", by_index=by_index)
    found = {world: steps_of_shards(plan, kept_world(chosen)) for world, chosen in CHOSEN.items()}
    assert len(found["nobody"]) > 3 * 40
    assert {world for world, called in found.items() if called != found["nobody"]} == set()


@pytest.mark.parametrize("by_index", [False, True])
def test_it_is_the_same_at_every_shard_by_what_is_left(*, by_index: bool) -> None:
    """Every step, where nobody has the share left, where one has it at one shard or at two, and where all have it."""
    plan = compiled("active", "natural", by_index=by_index)
    found = []
    for active in ((), (1,), (SPREAD[-1], SPREAD[0]), SPREAD):
        shards = divided_world(SPREAD)
        for slot in set(SPREAD) - set(active):
            shards.set_limit(slot, 0)
        found.append(steps_of_shards(plan, shards))
    assert found == found[:1] * len(found)


def test_a_shard_that_passes_over_its_part_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted leak: a shard of which nobody has the share left does not look at its rows."""
    real = Shard.contributions

    def only_where_somebody_is(shard: Shard, plan: Plan) -> Iterator[Block]:
        has_room = shard.memory.accounts.room.max(initial=0) >= (plan.layout.items[0].room_units or 0)
        return real(shard, plan) if has_room else iter(())

    monkeypatch.setattr(Shard, "contributions", only_where_somebody_is)
    plan = compiled("active", "natural", by_index=False)
    nobody, everybody = divided_world(SPREAD), divided_world(SPREAD)
    for slot in SPREAD[-40:]:
        nobody.set_limit(slot, 0)
    assert steps_of_shards(plan, nobody) != steps_of_shards(plan, everybody)


def test_a_shortcut_where_nobody_is_shortened_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted leak: only where somebody cannot pay for all is anything shortened."""
    real = Contributions.shortened

    def only_where_needed(block: Contributions, places: Any, bounds: Any) -> Contributions:
        return real(block, places, bounds) if places.size else block

    monkeypatch.setattr(Contributions, "shortened", only_where_needed)
    plan = compiled("count", "to what is left", by_index=False)
    memories = [half_of(plan, slots) for slots in ([], [0])]
    nobody, one = (steps(plan, memory) for memory in memories)
    assert nobody != one


def only_the_active(plan: Plan, memory: DatasetMemory) -> Iterator[Block]:
    """A planted leak: blocks in which nobody has the share left are not looked at."""
    if memory.accounts.room.max() < (plan.layout.items[0].room_units or 0):
        return iter(())
    return contributions(plan, memory)


def test_a_shortcut_where_nobody_is_active_is_caught() -> None:
    """The detector sees the steps that are left out."""
    plan = compiled("active", "natural", by_index=False)
    memories = [world(1), world(1)]
    memories[0].accounts.set_limits(slice(None), 0)
    for memory in memories:
        steps(plan, memory, only_the_active)
    nobody, one = (steps(plan, memory, only_the_active) for memory in memories)
    assert nobody != one


def only_where_somebody_is(plan: Plan, memory: DatasetMemory) -> Iterator[Block]:
    """A planted leak: the shortcut for a query that selects nothing."""
    return (block for block in contributions(plan, memory) if block.touched.count > 0)


def test_a_shortcut_for_an_empty_selection_is_caught() -> None:
    """The detector sees the step that is left out."""
    plan = compiled("count", "natural", by_index=True)
    memories = [world(selected) for selected in (0, 1)]
    for memory in memories:
        steps(plan, memory, only_where_somebody_is)
    nobody, one = (steps(plan, memory, only_where_somebody_is) for memory in memories)
    assert nobody != one
