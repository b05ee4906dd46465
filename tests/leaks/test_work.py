"""The work of a query is the same whether it selects none, one or two individuals: the same steps, one after another.

From the plan to the bytes that are stored: rows, their entries, norms, charges, the filter, the sum, the encoding.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import service
from service.core.release import Contributions, answer
from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.query.plan import Plan
from service.workflows.model.pieces import pieces_of
from service.workflows.writer.batch import measure_of
from tests.core.injected import seeded
from tests.engine.worlds import Row, memory_of, planned

ROOT = str(Path(service.__file__).parent)
HELPERS = (f"{ROOT}/core/arrays.py",)  # views and copies of arrays: well below a microsecond
PERSON: Row = {"country": "NO", "area": 1, "level": 1, "spend": 10, "balance": -0.5, "member": True}
VISIT: Row = {"item": 5, "amount": 1, "cost": 2.5, "online": True}
SELECTS: dict[str, list[Any]] = {
    "count": [{"count": {}}],
    "sum": [{"sum": {"column": "level"}}],
    "stacked": [{"count": {}}, {"sum": {"column": "spend"}}, {"histogram": {"column": "area"}}],
    "events": [{"count": {}}],
    "stacked events": [{"count": {}}, {"sum": {"column": "cost"}}, {"histogram": {"column": "item"}}],
}
OF_EVENTS = {"events", "stacked events"}
CLIPS = {"natural": {}, "binding": {"per_individual": {"l2_clip": 0.5}}}
Evaluate = Callable[[Plan, DatasetMemory], Iterator[Contributions]]


def world(selected: int) -> DatasetMemory:
    """Forty people with two visits each; so many of them are what is asked for."""
    chosen = set(range(0, 40, 7)[:selected])
    people = {slot: PERSON | ({"level": 3, "spend": 99} if slot in chosen else {}) for slot in range(40)}
    visits = [(slot, VISIT | ({"amount": 3, "cost": 4.75} if slot in chosen else {})) for slot in people for _ in "ab"]
    memory = memory_of(people, [visits])
    memory.accounts.set_limits(slice(None), 2**60)
    memory.index_categories()
    return memory


def steps(plan: Plan, memory: DatasetMemory, evaluate: Evaluate = contributions) -> list[str]:
    """The functions of the service that are called, in order."""
    called: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(ROOT) and file not in HELPERS:
            called.append(f"{file.removeprefix(ROOT)}:{frame.f_code.co_name}")

    sys.setprofile(note)
    try:
        release = answer(
            evaluate(plan, memory),
            memory.accounts,
            dimension=plan.dimension,
            sigma_steps=plan.sigma_steps,
            norm_squared_max=plan.clip_squared_steps,
            entropy=seeded(1),
        )
        pieces_of(
            release.blocks,
            measure_of(release),
            amount_max=plan.clip_squared_steps,
            slots=memory.slots_used,
            salt=bytes(32),
        )
        for block in release.blocks:
            memory.counters.count(block.touched, block.active)
    finally:
        sys.setprofile(None)
    return called


def compiled(name: str, clip: str, *, by_index: bool) -> Plan:
    """The query, by a column that has an index or by one that has none."""
    column, literal = {
        (False, True): ("level", 3),
        (False, False): ("spend", 99),
        (True, True): ("amount", 3),
        (True, False): ("cost", 4.75),
    }[name in OF_EVENTS, by_index]
    query = {"version": 1, "from": "visits" if name in OF_EVENTS else "people", "select": SELECTS[name]}
    plan = planned(query | {"where": {"eq": [{"col": column}, literal]}, "noise": {"sigma": 1000.0}} | CLIPS[clip])
    assert plan is not None
    return plan


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


def only_where_somebody_is(plan: Plan, memory: DatasetMemory) -> Iterator[Contributions]:
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
