"""Totals over own events: counts and sums beside plain Python, in every place where a value may stand."""

from collections import defaultdict
from typing import Any

import pytest

from service.engine import own_events as engine
from service.engine.memory import DatasetMemory
from tests.engine.worlds import PERSON, Row, memory_of, plan_of, query_of, vectors

SLOTS = [*range(40), 65_530, 65_536, 131_071]
PEOPLE: dict[int, Row] = {slot: PERSON | {"level": [-2, 0, 3, None][slot % 4]} for slot in SLOTS}
VISITS: list[tuple[int, Row]] = [
    (slot, {"item": n, "amount": [-3, 2, None, 1][(slot + n) % 4], "cost": n * 0.75 - 1, "online": n % 2, "at": None})
    for slot in SLOTS
    for n in range(slot % 7)
]
MEMORY = memory_of(PEOPLE, [[(slot, visit | {"online": bool(visit["online"])}) for slot, visit in VISITS]])


def own(**body: Any) -> dict[str, Any]:
    """A value from own events."""
    return {"own": {"from": "visits", "clip": [-100, 100]} | body}


def values(value: dict[str, Any], memory: DatasetMemory = MEMORY, **more: Any) -> dict[int, int]:
    """The value of every individual, where it is not zero, in whole numbers."""
    plan = plan_of(query_of({"sum": {"of": value}}, **more))
    return {slot: entries[0] * 2**plan.scale.grid_log2 for slot, (_, entries) in vectors(plan, memory).items()}


def totals(*, of: str | None = None, online: bool = False) -> dict[int, float]:
    """The totals in plain Python."""
    found: dict[int, float] = defaultdict(float)
    for slot, visit in VISITS:
        if not online or visit["online"]:
            found[slot] += 1 if of is None else visit[of] or 0
    return {slot: total for slot, total in found.items() if total != 0}


@pytest.mark.parametrize("rows", [2**18, 1], ids=["whole", "one individual at a time"])
def test_events_are_counted_and_summed(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under conditions and without; an event without a value adds nothing."""
    monkeypatch.setattr(engine, "STRETCH_ROWS", rows)
    online = {"eq": [{"col": "online"}, True]}
    assert values(own(count={})) == totals()
    assert values(own(count={}, where=online)) == totals(online=True)
    assert values(own(sum={"col": "amount"})) == totals(of="amount")
    assert values(own(sum={"col": "cost"}, where=online)) == totals(of="cost", online=True)
    assert values(own(sum={"mul": [{"col": "amount"}, 2]})) == {s: 2 * n for s, n in totals(of="amount").items()}


def test_a_total_is_moved_into_the_clip() -> None:
    """The total of an individual without events is moved too."""
    expected = {slot: min(max(totals().get(slot, 0), 2), 4) for slot in SLOTS}
    assert values(own(count={}, clip=[2, 4])) == expected


def test_an_own_column_of_the_individual_may_stand_in_the_condition() -> None:
    """Each event sees its individual's record."""
    where = {"ge": [{"col": "people.level"}, 0]}
    expected = {slot: n for slot, n in totals().items() if (PEOPLE[slot]["level"] or -1) >= 0 or slot % 4 == 1}
    assert values(own(count={}, where=where)) == expected


def test_a_total_is_a_value_anywhere() -> None:
    """In conditions, bins, features and sums of it with a column; an empty slot has none."""
    nobody = {slot for slot in SLOTS if slot not in totals()}
    count = own(count={}, clip=[0, 6])
    assert vectors(plan_of(query_of(where={"eq": [count, 0]})), MEMORY).keys() == nobody
    binned = vectors(plan_of(query_of(group_by=[{"bin": {"of": count, "edges": [0, 1, 3, 7]}}])), MEMORY)
    sizes = {slot: totals().get(slot, 0) for slot in SLOTS}
    places = {slot: 0 if size < 1 else 1 if size < 3 else 2 for slot, size in sizes.items()}
    assert binned == {slot: (1, {place: 1}) for slot, place in places.items()}
    both = values({"add": [count, {"col": "level"}]})
    levels = {slot: PEOPLE[slot]["level"] for slot in SLOTS if PEOPLE[slot]["level"] is not None}
    assert both == {slot: sizes[slot] + level for slot, level in levels.items() if sizes[slot] + level != 0}
    moments = plan_of(query_of({"moments": {"features": [{"of": count}]}}, noise={"sigma": 300.0}))
    assert vectors(moments, MEMORY).keys() == totals().keys()


def test_one_individual_less_changes_no_other_total() -> None:
    """Bit by bit."""
    without = [(slot, visit) for slot, visit in VISITS if slot != 5]
    rest = {slot: row for slot, row in PEOPLE.items() if slot != 5}
    memory = memory_of(rest, [[(slot, visit | {"online": bool(visit["online"])}) for slot, visit in without]])
    value = own(sum={"col": "cost"})
    assert {slot: number for slot, number in values(value).items() if slot != 5} == values(value, memory)
