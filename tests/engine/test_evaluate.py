"""The engine's vectors against a reference in fractions, over every kind of query and both sides of every edge."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.noise import rounded_gaussian
from service.core.release import Contributions, Release
from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.engine.prepared import prepared
from service.engine.sparse_vectors import BrokenInvariant
from service.query.conditions import conjunction
from service.query.division import PAGE_SLOTS
from service.query.items.sum import Sum
from service.query.parse import parse_query
from service.query.plan import Plan, compile_query
from service.query.runs import BLOCK_ROWS
from service.query.schema import BooleanColumn, Schema
from tests.core.contributions import as_list
from tests.core.injected import seeded
from tests.core.releases import answer
from tests.digests import with_digests
from tests.engine.blocks import ALWAYS, NEVER, answered
from tests.engine.reference import vector
from tests.engine.scaled import check_scaled
from tests.engine.worlds import (
    BUDGET,
    BUDGET_UNITS,
    CAPACITY,
    PERSON,
    SCHEMA,
    TABLES,
    VISIT,
    Row,
    Vector,
    assumed_plan,
    limits,
    memory_of,
    of_visits,
    people,
    plan_of,
    queries,
    query_of,
    uploaded,
    vectors,
    visits,
)
from tests.query.samples import changed, matrix
from tests.rotation import times


def check(found: dict[int, Vector], wanted: dict[int, dict[int, int]], plan: Plan) -> None:
    """Within the clip the vector is the reference's; beyond it, the reference's scaled into the clip."""
    clip_squared = plan.scale.charged_squared_steps
    norms = {slot: sum(value**2 for value in entries.values()) for slot, entries in wanted.items()}
    assert set(found) <= set(wanted)
    for slot, entries in wanted.items():
        if norms[slot] <= clip_squared:
            assert found.get(slot, (0, {})) == (norms[slot], entries)
        else:
            norm_squared, scaled = found[slot]
            assert norm_squared <= clip_squared
            check_scaled(scaled, entries, clip_squared)


def test_every_part_of_a_conjunction_has_to_hold_and_anything_else_is_its_own_part() -> None:
    """So that rows can be sifted by one part after the other."""
    conditions = [{"eq": [{"col": "level"}, 2]}, {"eq": [{"col": "country"}, "NO"]}]
    for where, parts in (({"and": conditions}, 2), (conditions[0], 1), ({"or": conditions}, 1)):
        plan = plan_of(query_of(where=where))
        sieves = prepared(plan, memory_of({1: PERSON})).sieves
        assert len(sieves) == parts
        assert conjunction(sieve.condition for sieve in sieves) == plan.rows.predicate


@settings(max_examples=100, deadline=None)
@given(records=people(), query=queries("people"), left=limits())
def test_a_record_counts_as_its_values_say(
    records: dict[int, Row], query: dict[str, Any], left: dict[int, int]
) -> None:
    """Conditions, groups, sums, histograms, NULL, clipped and unknown values, on records at the edges of pages."""
    plan = assumed_plan(query)
    shares = {slot: Fraction(left.get(slot, BUDGET), BUDGET) for slot in records}
    wanted = {slot: vector([records[slot]], query, plan.scale.grid_log2, left=shares[slot]) for slot in records}
    check(vectors(plan, memory_of(records, limits=left)), {slot: v for slot, v in wanted.items() if v}, plan)


@pytest.mark.parametrize("where", [{"eq": [{"col": "country"}, "NO"]}, {"is_null": {"col": "balance"}}], ids=str)
def test_the_active_are_counted_among_those_who_are_selected(where: dict[str, Any]) -> None:
    """An individual that has the share left and does not meet the condition is not counted, nor the other way around.

    Of all rows, and of those that an index lists.
    """
    met, unmet = PERSON | {"balance": None}, PERSON | {"country": "SE"}
    records = {0: met, 1: unmet, 2: met, 3: unmet, 65_537: unmet}
    plan = plan_of(query_of({"active": {"share": 0.75}}, where=where))
    assert vectors(plan, memory_of(records, limits={2: BUDGET // 2})).keys() == {0}


def precisions(count: int) -> st.SearchStrategy[dict[str, Any]]:
    """A precision for each of so many items, and now and then a clip for each."""
    sigmas = st.lists(st.sampled_from([0.1, 1, 5, 30.0, 1 / 3, 2.0**-20 + 1, 700]), min_size=count, max_size=count)
    weights = st.lists(st.sampled_from([1, 3, 0.25, 1e-3]), min_size=count, max_size=count)
    clips = st.lists(st.sampled_from([0.3, 1.0, 2.5, 400.0]), min_size=count, max_size=count)
    noise = st.one_of(
        sigmas.map(lambda numbers: {"sigma": numbers}),
        sigmas.map(lambda numbers: {"half_width": numbers, "confidence": 0.9}),
        weights.map(lambda numbers: {"share": 0.05, "weights": numbers}),
    )
    return st.fixed_dictionaries(
        {"noise": noise, "per_individual": st.none() | clips.map(lambda each: {"l2_clip": each})}
    )


@settings(max_examples=times(50, 100), deadline=None)
@given(data=st.data(), records=people(), table=st.sampled_from(["people", "visits"]))
def test_each_item_is_counted_in_steps_of_its_own(data: st.DataObject, records: dict[int, Row], table: str) -> None:
    """Truncated toward zero row by row; each item's part of a vector is within its own clip."""
    query = data.draw(queries(table).filter(lambda each: len(each["select"]) > 1))
    query |= data.draw(precisions(len(query["select"])))
    plan = assumed_plan(query)
    query["per_individual"] = query["per_individual"] or {}
    sizes = [sigma / plan.scale.law.size_steps for sigma in plan.scale.sigmas]
    events = data.draw(visits(records)) if table == "visits" else []
    found = vectors(plan, memory_of(records, [events]))
    for slot, record in records.items():
        rows = [record] if table == "people" else [row for owner, row in events if owner == slot]
        wanted = vector(rows, query, 0, own=None if table == "people" else record, sizes=sizes)
        check_by_item(found.get(slot, (0, {})), wanted, plan)


def test_people_counted_once_are_counted_in_steps_of_their_item() -> None:
    """Beside rows of another sigma, whichever comes first; a row's value of one item is not another's."""
    both: list[dict[str, Any]] = [{"count": {}}, {"count_individuals": {}}]
    for select in (both, both[::-1]):
        plan = plan_of(of_visits(*select, noise={"sigma": [16, 2]}))
        ((_, entries),) = vectors(plan, memory_of({3: PERSON}, [[(3, VISIT), (3, VISIT)]])).values()
        times = [2 if "count" in item else 1 for item in select]
        assert entries == {0: times[0] * 2**24, 1: times[1] * 2**27}


def check_by_item(found: Vector, wanted: dict[int, int], plan: Plan) -> None:
    """Each item's part is the reference's, or within its clip the reference's scaled into it."""
    places = np.repeat(plan.layout.places, [item.size for item in plan.layout.items])
    norm_squared, entries = found
    assert norm_squared == sum(value**2 for value in entries.values()) <= plan.scale.charged_squared_steps
    for item in range(len(plan.scale.sigmas)):
        part, exact = (
            {at: value for at, value in each.items() if places[at % places.size] == item} for each in (entries, wanted)
        )
        squared = sum(value**2 for value in exact.values())
        if not plan.scale.clips_squared or squared <= plan.scale.clips_squared[item]:
            assert part == exact
        else:
            check_scaled(part, exact, plan.scale.clips_squared[item])


@settings(max_examples=times(50, 100), deadline=None)
@given(data=st.data(), records=people(), query=queries("visits"))
def test_an_individual_is_the_sum_of_their_events(
    data: st.DataObject, records: dict[int, Row], query: dict[str, Any]
) -> None:
    """Rows are summed before the norm is taken; rows that cancel do not touch; the rows of others do not matter."""
    plan = assumed_plan(query)
    events = data.draw(visits(records))
    own = {slot: [row for owner, row in events if owner == slot] for slot in records}
    wanted = {slot: vector(own[slot], query, plan.scale.grid_log2, own=record) for slot, record in records.items()}
    check(vectors(plan, memory_of(records, [events])), {slot: v for slot, v in wanted.items() if v}, plan)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), records=people(), query=queries("visits"))
def test_events_give_the_same_bits_in_every_order_of_upload(
    data: st.DataObject, records: dict[int, Row], query: dict[str, Any]
) -> None:
    """Appending is merging: one upload or several, in any order, give the very same arrays."""
    plan = assumed_plan(query)
    events = data.draw(visits(records))
    shuffled = data.draw(st.permutations(events))
    cut = data.draw(st.integers(0, len(events)))
    parts = [part for part in (shuffled[:cut], shuffled[cut:]) if part]
    once = list(contributions(plan, memory_of(records, [events] if events else [])))
    again = list(contributions(plan, memory_of(records, parts)))
    assert [arrays(as_list(block)) for block in once] == [arrays(as_list(block)) for block in again]


@settings(max_examples=40, deadline=None)
@given(data=st.data(), records=people(), query=queries("people") | queries("visits"))
def test_an_erased_individual_is_as_if_never_there(
    data: st.DataObject, records: dict[int, Row], query: dict[str, Any]
) -> None:
    """Erasing empties one slot, record and events, and changes no other vector."""
    plan = assumed_plan(query)
    events = data.draw(visits(records))
    gone = data.draw(st.sampled_from(sorted(records)))
    memory = memory_of(records, [events] if events else [])
    before = vectors(plan, memory)
    memory.erase(gone)
    assert vectors(plan, memory) == {slot: vector for slot, vector in before.items() if slot != gone}


@settings(max_examples=60, deadline=None)
@given(data=st.data(), records=people(), query=queries("people") | queries("visits"))
def test_norms_are_one_where_the_plan_says_so_and_nowhere_else(
    data: st.DataObject, records: dict[int, Row], query: dict[str, Any]
) -> None:
    """However few there are, and also where all norms happen to be equal."""
    plan = assumed_plan(query)
    blocks = list(contributions(plan, memory_of(records, [data.draw(visits(records))])))
    assert blocks
    assert {block.one_norm for block in blocks} == {plan.has_one_norm}


SHARE = 1 / 3
"""The share of BUDGET that is between two units: a third of 2^40, by the double, rounded up."""
ENOUGH = -(-Fraction(SHARE) * BUDGET // 1)


def active_plan(**more: Any) -> Plan:
    """The plan of a query for individuals with SHARE left."""
    return plan_of(query_of({"active": {"share": SHARE}}, **{"noise": {"sigma": 1.5}} | more))


def released(plan: Plan, memory: DatasetMemory) -> Release:
    """An answer, with the charges."""
    return answer(contributions(plan, memory), memory.accounts, plan.terms, entropy=seeded(1))


def plan_by(schema: Schema, query: dict[str, Any]) -> Plan:
    """The plan of a query by another schema."""
    return compile_query(parse_query(json.dumps(query).encode()), schema, capacity=CAPACITY, budget_units=BUDGET_UNITS)


def counts(plan: Plan, release: Release) -> list[int]:
    """The numbers of an answer without their noise."""
    numbers: list[int] = (
        release.values - rounded_gaussian(plan.dimension, plan.scale.law.size_steps, seeded(1))
    ).tolist()
    return numbers


@pytest.mark.parametrize("where", [{}, {"where": {"eq": [{"col": "country"}, "NO"]}}])
@pytest.mark.parametrize("scan_worth", [ALWAYS, NEVER])
def test_an_individual_is_counted_while_its_own_account_has_the_share(where: dict[str, Any], scan_worth: int) -> None:
    """The unit of equality included, in pages and slots of any other; all that are counted pay, and no other does."""
    left = {0: ENOUGH, 1: ENOUGH - 1, 65_535: ENOUGH - 1, 65_536: ENOUGH, 65_537: 0, 131_071: BUDGET}
    memory, plan = memory_of(dict.fromkeys(left, PERSON), limits=left), active_plan(**where)
    memory.people.index_categories()
    assert answered(plan, memory, scan_worth=scan_worth)["slots"] == [0, 65_536, 131_071]
    release = released(plan, memory)
    assert counts(plan, release) == [3]
    assert (release.charged_count, release.left_out_count) == (3, 0)
    assert release.charged_units == 3 * plan.scale.worst_case_units
    charged = {slot: units - memory.accounts.room[slot] for slot, units in left.items()}
    assert charged == {slot: plan.scale.worst_case_units if units >= ENOUGH else 0 for slot, units in left.items()}


def test_each_such_query_is_of_the_accounts_as_the_one_before_has_left_them() -> None:
    """An individual is counted until less than the share is left; no individual is ever left out of it."""
    plan = active_plan(noise={"share": 0.125})
    left = {3: BUDGET, 65_536: BUDGET // 2, 70_000: ENOUGH + plan.scale.worst_case_units}
    memory = memory_of(dict.fromkeys(left, PERSON), limits=left)
    found = [released(plan, memory) for _ in range(8)]
    assert [counts(plan, release) for release in found] == [[3], [3], [1], [1], [1], [1], [0], [0]]
    assert [release.left_out_count for release in found] == [0] * 8
    assert 0 < memory.accounts.room[3] < ENOUGH


def test_groups_show_their_own_exhaustion() -> None:
    """One group has spent more than another, and one group is empty."""
    countries = {slot: "NO" if slot < 9 else "SE" for slot in range(20)}
    records = {slot: PERSON | {"country": country} for slot, country in countries.items()}
    memory, plan = memory_of(records), active_plan(group_by=["country"])
    memory.accounts.room[:6] = ENOUGH - 1
    memory.accounts.room[9] = 0
    release = released(plan, memory)
    assert counts(plan, release) == [3, 10, 0]
    assert (release.charged_count, release.left_out_count) == (13, 0)


def test_a_paused_individual_with_budget_is_left_out_of_it() -> None:
    """It is touched, as by any other query; without the budget it is not even touched."""
    memory, plan = memory_of(dict.fromkeys((1, 2, 3), PERSON), limits={2: ENOUGH - 1}), active_plan()
    memory.accounts.paused[[1, 2]] = True
    release = released(plan, memory)
    assert counts(plan, release) == [1]
    assert (release.charged_count, release.left_out_count) == (1, 1)


def test_nobody_is_counted_where_all_are_exhausted() -> None:
    """The answer is noise of the same form, in as many blocks as ever."""
    memory, plan = memory_of(dict.fromkeys((1, 65_536, 65_537), PERSON)), active_plan(group_by=["member"])
    before = len(list(contributions(plan, memory)))
    memory.accounts.room[:] = 0
    release = released(plan, memory)
    assert counts(plan, release) == [0, 0]
    assert (release.charged_count, release.left_out_count) == (0, 0)
    assert len(release.blocks) == before == 2


AMOUNTS: dict[str, Any] = {"sum": {"column": "amount"}}
EVENTS: list[Row] = [
    {"amount": 1, "cost": 2, "online": True},
    {"amount": -3, "cost": None, "online": False},
    {"amount": 0, "cost": 1, "online": True},
    {"amount": None, "cost": 4, "online": False},
]


@pytest.mark.parametrize(
    ("select", "more", "expected"),
    [
        (AMOUNTS, {"per_individual": {"rows": 2}}, {0: -1}),
        ({"sum": {"column": "cost"}}, {"per_individual": {"rows": 2}}, {0: 3.5}),  # a row without a cost is one of four
        (AMOUNTS, {"per_individual": {"rows": 3}}, {0: -1.5}),
        (AMOUNTS, {"per_individual": {"rows": 4}}, {0: -2}),
        (AMOUNTS, {"per_individual": {"rows": 3}, "where": {"eq": [{"col": "online"}, True]}}, {0: 1}),
        (AMOUNTS, {"per_individual": {"rows": 1}, "where": {"eq": [{"col": "online"}, True]}}, {0: 0.5}),
        ({"count": {}}, {"per_individual": {"rows": 3}, "group_by": ["online"]}, {0: 1.5, 1: 1.5}),
        ({"count": {}}, {"per_individual": {"rows": 2}, "group_by": ["amount"]}, {0: 0.5, 3: 0.5, 4: 0.5}),
        ({"count_individuals": {}}, {}, {0: 1}),
        ({"count_individuals": {}}, {"group_by": ["online"]}, {0: 1, 1: 1}),
        ({"count_individuals": {}}, {"where": {"is_null": {"col": "amount"}}}, {0: 1}),
        ({"count_individuals": {}}, {"group_by": ["online"], "per_individual": {"rows": 1}}, {0: 0.5, 1: 0.5}),
        ({"count_individuals": {}}, {"group_by": ["online"], "per_individual": {"rows": 2}}, {0: 1, 1: 1}),
    ],
)
def test_rows_have_a_weight_and_individuals_count_once(
    select: dict[str, Any], more: dict[str, Any], expected: dict[int, float]
) -> None:
    """Each of a person's four rows, or of those selected, counts as `rows` over their number, in whatever order.

    A person counts once in each group, however often; in more groups than `rows`, as `rows` over the groups.
    """
    plan = plan_of(of_visits(select, **{"noise": {"sigma": 9}} | more))
    for events in permutations(EVENTS):
        ((_, found),) = [*vectors(plan, memory_of({3: PERSON}, [[(3, row) for row in events]])).values()] or [(0, {})]
        assert {place: value * 2**plan.scale.grid_log2 for place, value in found.items()} == expected


def test_events_see_the_columns_of_their_own_individual() -> None:
    """Not of a neighbour in the page, nor of one in the same place of another page."""
    records = {slot: PERSON | {"level": level} for slot, level in {0: -2, 1: 3, 65_536: 1, 65_537: None}.items()}
    plan = plan_of(of_visits({"sum": {"column": "people.level"}}))
    found = vectors(plan, memory_of(records, [[(slot, {"amount": 1}) for slot in records]]))
    assert {slot: vector[1] for slot, vector in found.items()} == {0: {0: -2}, 1: {0: 3}, 65_536: {0: 1}}


@pytest.mark.parametrize(("item", "coordinate"), [(AMOUNTS, 0), ({"histogram": {"column": "item"}}, 5)])
def test_two_rows_of_value_one_cost_four_times_one_row(item: dict[str, Any], coordinate: int) -> None:
    """T1.4: the rows are added up before the norm; at sigma 10 the charge is 4/200, not 2/200."""
    memory, plan = memory_of({3: PERSON}, [[(3, VISIT), (3, VISIT)]]), plan_of(of_visits(item, noise={"sigma": 10}))
    assert vectors(plan, memory) == {3: (4, {coordinate: 2})}
    assert released(plan, memory).charged_units == -(-4 * 2**40 // 200)


@pytest.mark.parametrize(("item", "sign"), [({"count": {}}, 1), ({"sum": {"column": "amount"}}, -1)])
def test_one_number_beyond_the_clip_is_the_clip_to_the_step(item: dict[str, Any], sign: int) -> None:
    """49 rows of one: 49 times the double next to 1/49 is below one, and truncated would lose a step."""
    events = TABLES["visits"] | {"rows_per_individual": 49}
    schema = Schema.model_validate(TABLES | {"visits": events})
    memory = DatasetMemory(schema)
    memory.add_individuals(
        np.array([3]), with_digests(uploaded("people", [3], [PERSON]).codes, [3]), np.array([BUDGET])
    )
    row = VISIT | {"amount": sign}
    memory.add_events("visits", np.full(49, 3), uploaded("visits", [3] * 49, [row] * 49).codes)
    plan = plan_by(schema, of_visits(item, per_individual={"l2_clip": 1}))
    one = 2**-plan.scale.grid_log2
    assert plan.scale.charged_squared_steps == one**2
    assert vectors(plan, memory) == {3: (one**2, {0: sign * one})}


MATRIX = matrix("item", {5: 1, 7: 2}, {5: -3}, {7: 4, 9: 1})


@pytest.mark.parametrize(
    ("items", "more", "expected"),
    [
        ([5, 7, 7], {}, {0: 5, 1: -3, 2: 8}),
        ([9, None, 999], {}, {2: 1}),
        ([None, 8], {}, {}),
        ([5, 7], {"group_by": ["online"]}, {3: 3, 4: -3, 5: 4}),
        ([5, 7, 9, 9], {"per_individual": {"rows": 2}}, {0: 1.5, 1: -1.5, 2: 3}),
        ([8, 9, 9, 9], {"per_individual": {"rows": 2}}, {2: 1.5}),  # a row that weighs nothing is one of four
    ],
)
def test_a_row_adds_the_column_of_its_value(items: list[Any], more: dict[str, Any], expected: dict[int, float]) -> None:
    """One entry for each functional that weighs its value; none for another value, and none for NULL."""
    events = [(3, {"item": item, "amount": number, "online": True}) for number, item in enumerate(items)]
    for beside in ([], [AMOUNTS]):
        plan = plan_of(of_visits(MATRIX, *beside, **{"noise": {"sigma": 9}} | more))
        ((_, found),) = [*vectors(plan, memory_of({3: PERSON}, [events])).values()] or [(0, {})]
        block = plan.layout.block
        step = 2.0**plan.scale.grid_log2
        only = {place % block + place // block * 3: value * step for place, value in found.items() if place % block < 3}
        assert only == expected


def test_rows_that_cancel_touch_no_individual() -> None:
    """A vector of zero is not listed: it adds nothing and pays nothing."""
    rows = [(3, VISIT | {"amount": amount}) for amount in (2, -3, 1)]
    assert vectors(plan_of(of_visits(AMOUNTS)), memory_of({3: PERSON}, [rows])) == {}


def test_an_empty_slot_is_not_counted() -> None:
    """Slots between people are empty, although a count without a condition selects rows of NULLs."""
    memory = memory_of({4: PERSON, 9: dict.fromkeys(PERSON)})
    assert vectors(plan_of(query_of()), memory) == {4: (1, {0: 1}), 9: (1, {0: 1})}


@pytest.mark.parametrize("select", [[{"count": {}}], [{"count": {}}, {"sum": {"column": "level"}}]])
def test_slots_are_right_on_both_sides_of_a_block(select: list[Any]) -> None:
    """The last slot of a block and the first of the next; blocks are shorter for more select items."""
    size = BLOCK_ROWS // len(select)
    edge = (0, size - 1, size, size + 1, 2 * size)
    plan = plan_of(query_of(*select))
    blocks = list(map(as_list, contributions(plan, memory_of(dict.fromkeys(edge, PERSON)))))
    assert [slot for block in blocks for slot in block.touched.slots().tolist()] == list(edge)


@pytest.mark.parametrize("selected", [0.0, 0.0005, 0.05, 0.5, 1.0])
def test_a_crowd_is_found_however_dense(selected: float) -> None:
    """Sparse and dense selections are looked for in different ways, which must find the same people."""
    rng = np.random.default_rng(5)
    count = BLOCK_ROWS + PAGE_SLOTS + 77
    memory = DatasetMemory(SCHEMA)
    codes = memory.null_codes("people", count)
    codes["member"] = (rng.random(count) < selected).astype(np.uint8)
    memory.add_individuals(np.arange(count), with_digests(codes, range(count)), np.full(count, 1))
    plan = plan_of(query_of(where={"eq": [{"col": "member"}, True]}))
    found = [slot for block in map(as_list, contributions(plan, memory)) for slot in block.touched.slots().tolist()]
    assert found == np.flatnonzero(codes["member"]).tolist()


def test_a_million_coordinates_are_sparse() -> None:
    """A histogram over 2^20 categories lists what is there, not what could be."""
    wide = Schema.model_validate(
        TABLES | {"visits": TABLES["visits"] | {"columns": {"item": {"type": "category", "size": 2**20}}}}
    )
    memory = DatasetMemory(wide)
    memory.add_individuals(np.array([70_000]), with_digests(memory.null_codes("people", 1), [1]), np.array([1]))
    items = np.array([2**20 - 1, 0, 2**20 - 1], dtype=np.uint32)
    memory.add_events("visits", np.full(3, 70_000), {"item": items})
    plan = plan_by(wide, of_visits({"histogram": {"column": "item"}}))
    assert vectors(plan, memory) == {70_000: (5, {0: 1, 2**20 - 1: 2})}


(AREAS,) = plan_of(query_of({"histogram": {"column": "area"}})).layout.items


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("people", {"groups": (("member", BooleanColumn(type="boolean")),)}),
        ("people", {"clip_squared_steps": 2**61 + 1}),
        ("people", {"clip_squared_steps": 0}),
        ("people", {"grid_log2": 3}),
        ("visits", {"grid_log2": -60}),
        ("people", {"items": (replace(AREAS, size=4),)}),
        ("people", {"items": (Sum(column="spend", title="sum(spend)"),), "grid_log2": -60}),
        ("people", {"items": (Sum(column="spend", title="sum(spend)"),), "grid_log2": 40}),
    ],
)
def test_a_plan_that_breaks_its_bounds_is_refused_before_any_record_is_read(table: str, change: dict[str, Any]) -> None:
    """Overflow is excluded by public numbers alone; a plan that does not exclude it is not evaluated."""
    plan = plan_of(query_of(**{"from": table}))
    with pytest.raises(BrokenInvariant):
        contributions(changed(plan, **change), DatasetMemory(SCHEMA))


@pytest.mark.parametrize(
    ("table", "select"),
    [
        ("people", [{"sum": {"column": "level"}}]),
        ("people", [{"count": {}}, {"sum": {"column": "level"}}]),
        ("visits", [{"count": {}}]),
        ("visits", [{"sum": {"column": "amount"}}]),
        ("visits", [{"count": {}}, {"sum": {"column": "amount"}}]),
    ],
)
def test_a_vector_beyond_a_clip_that_cannot_bind_stops_the_evaluation(table: str, select: list[Any]) -> None:
    """The last line of defence behind the plan's public bounds."""
    plan = plan_of(query_of(*select, **{"from": table}))
    with pytest.raises(BrokenInvariant, match="longer than the declared bounds"):
        vectors(changed(plan, clip_squared_steps=3), memory_of({3: PERSON}, [[(3, VISIT), (3, VISIT)]]))


def arrays(block: Contributions) -> tuple[Any, ...]:
    """Everything in a block, for comparison bit by bit."""
    owners = None if block.owners is None else block.owners.tobytes()
    return (
        block.touched.slots().tobytes(),
        block.norms_squared.tobytes(),
        owners,
        block.coordinates.tobytes(),
        block.values.tobytes(),
    )


def test_nothing_times_a_value_is_nothing_beside_a_count() -> None:
    """The steps of the product are far below the grid, and all of its values are zero."""
    zero = {"mul": [{"col": "balance"}, {"mul": [{"col": "balance"}, 0]}]}
    plan = plan_of(query_of({"sum": {"of": zero}}, {"count": {}}))
    found = vectors(plan, memory_of({3: PERSON}, []))
    assert [vector for _, vector in found.values()] == [
        {1: 1 << -plan.scale.grid_log2 if plan.scale.grid_log2 < 0 else 1}
    ]
