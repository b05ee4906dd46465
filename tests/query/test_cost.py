"""The public cost of a query: it grows with every declared bound, and nothing else moves it."""

import json
from dataclasses import fields, replace
from random import Random
from typing import Any, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.accounting.accountings import GAUSSIAN
from service.query.cost import Costs, PublicCost, Speed, cost_of, total_cost
from service.query.estimated_items import ReleasedNumbers, stated_estimates
from service.query.plan import Plan
from service.query.schema import EventsTable, Schema
from service.query.stated import shown_of
from tests.query.samples import CAPACITY, SCHEMA, TABLES, matrix, plan_of, queries, query
from tests.rotation import times

SPEED = Speed()
capacities = st.integers(1, 2**31)
costs = st.builds(
    PublicCost, time_ns=st.integers(0, 10**12), kept_bytes=st.integers(0, 2**40), working_bytes=st.integers(0, 2**40)
)


def cost(
    asked: dict[str, Any], *, capacity: int = CAPACITY, schema: Schema = SCHEMA, speed: Speed = SPEED
) -> PublicCost:
    """The cost of a query."""
    compiled = plan_of(asked, schema)
    return cost_of(compiled, schema.tables[compiled.rows.table], capacity=capacity, speed=speed)


def assert_no_more(one: PublicCost, other: PublicCost) -> None:
    """In no field is the first above the second."""
    assert one.time_ns <= other.time_ns
    assert one.kept_bytes <= other.kept_bytes
    assert one.working_bytes <= other.working_bytes


def with_column(table: str, **columns: dict[str, Any]) -> Schema:
    """The schema with a column more."""
    changed = TABLES[table] | {"columns": TABLES[table]["columns"] | columns}
    return Schema.model_validate(TABLES | {table: changed})


def compiled(asked: dict[str, Any]) -> Plan | None:
    """The plan of a query that has one."""
    try:
        return plan_of(asked, pricing=GAUSSIAN)
    except ValueError:
        return None


plans = queries().map(compiled).filter(bool)


OTHERS: list[dict[str, Any]] = [
    {"noise": {"sigma": 11.0}},
    {"noise": {"scale": 9.0}, "mechanism": "laplace"},
    {"rule": "clip"},
    {"where": {"eq": [{"col": "country"}, "NO"]}},
    {"where": {"in": [{"col": "age"}, [0, 2, 4]]}},
    {"where": {"in": [{"col": "age"}, list(range(0, 60, 2))]}},
    {"where": {"in": [{"col": "age"}, list(range(0, 80, 2))]}},
    {"group_by": ["country"]},
    {"group_by": ["country"], "reduce": "max"},
    {"per_individual": {"l2_clip": 0.5}},
    {"select": [{"sum": {"column": "age"}}]},
    {"select": [{"sum": {"column": "age"}}], "noise": {"sigma": 900.0}},
    {"select": [{"sum": {"column": "age"}}], "noise": {"scale": 900.0}, "mechanism": "laplace"},
    {"select": [{"sum": {"of": {"mul": [{"col": "age"}, 2]}}}]},
    {"select": [{"active": {"share": 0.5}}]},
    {"from_": "visits", "per_individual": {"l2_clip": 3.0}},
    {"from_": "visits", "per_individual": {"l2_clip": 3.0, "rows": 9}},
    {"reuse": False},
]
"""Queries that differ from a count in one thing each, and from one another in two."""
PLANS_OF_OTHERS = [plan for other in OTHERS if (plan := compiled(query(**other))) is not None]


@settings(max_examples=times(40, 100))
@given(random=st.randoms(use_true_random=False), drawn=st.lists(plans, max_size=4))
def test_a_price_is_a_function_of_the_plan(random: Random, drawn: list[Plan]) -> None:
    """After any history it is that of a dataset that nobody has asked, of plans that differ in one thing alone too."""
    several = [*drawn, *PLANS_OF_OTHERS]
    assert len(several) > len(OTHERS) - 3
    costs = Costs(SCHEMA, capacity=CAPACITY, speed=SPEED)
    for asked in random.choices(several, k=3 * len(several)):
        again = replace(asked, canonical=asked.canonical.ljust(random.choice([0, 900])))
        for plan in (asked, again):
            assert costs.of(plan) == cost_of(plan, SCHEMA.tables[plan.rows.table], capacity=CAPACITY, speed=SPEED)


def test_estimates_are_priced_and_stored() -> None:
    """They cost what their linear items cost, and working them out; their text fits into the bytes that are priced."""
    items: list[dict[str, Any]] = [
        {"mean": {"of": {"mul": [{"col": "age"}, {"col": "spend"}]}}},
        {"quantile": {"column": "age", "probability": 1e-17}},
        {"difference": {"of": {"stddev": {"column": "age"}}, "by": "country", "from": "NO", "to": "SE"}},
    ]
    asked = plan_of(query(select=items, group_by=["country", "member"], noise={"share": 0.5}))
    linear = replace(asked, layout=replace(asked.layout, estimated=()))
    priced, plain = (cost_of(each, SCHEMA.tables["people"], capacity=CAPACITY, speed=SPEED) for each in (asked, linear))
    noise, axes = asked.noise, asked.layout.axes(has_places=True)
    values = np.linspace(-1e17, 1e17, asked.dimension) / 3
    numbers = ReleasedNumbers(values.tolist(), asked.layout.labels(), axes, noise.sigma, noise.grid)
    stated = stated_estimates(asked.layout.estimated, numbers)

    rows, edges = len(stated["rows"]), 61
    assert priced.kept_bytes - plain.kept_bytes >= 3 * len(json.dumps(stated, separators=(",", ":")))
    assert priced.time_ns - plain.time_ns >= (20 * rows + 6 * edges) * SPEED.label
    assert priced.working_bytes == plain.working_bytes


@settings(max_examples=times(40, 100))
@given(asked=plans, one=capacities, other=capacities)
def test_it_grows_with_the_capacity(asked: Plan, one: int, other: int) -> None:
    """This holds for every query."""
    table = SCHEMA.tables[asked.rows.table]
    small, large = (cost_of(asked, table, capacity=each, speed=SPEED) for each in sorted([one, other]))
    assert_no_more(small, large)


ITEMS: list[list[dict[str, Any]]] = [
    [{"count": {}}],
    [{"histogram": {"column": "item"}}],
    [{"sum": {"column": "paid"}}, {"count": {}}],
]
OF_VISITS = [plan_of(query(**{"from": "visits"}, select=select, per_individual={"l2_clip": 3.0})) for select in ITEMS]


@given(asked=st.sampled_from(OF_VISITS), one=st.integers(1, 2**40), other=st.integers(1, 2**40), capacity=capacities)
def test_it_grows_with_the_rows_that_an_event_table_may_have(asked: Plan, one: int, other: int, capacity: int) -> None:
    """The public `rows_capacity`, and not the rows that are there, which it is not even given."""
    visits = SCHEMA.tables["visits"]
    assert isinstance(visits, EventsTable)
    tables = [visits.model_copy(update={"rows_capacity": each}) for each in sorted([one, other])]
    small, large = (cost_of(asked, table, capacity=capacity, speed=SPEED) for table in tables)
    assert_no_more(small, large)


def test_a_query_of_events_costs_more_where_more_rows_are_declared() -> None:
    """At the same capacity, and the rows that are there are not asked."""
    visits, asked = SCHEMA.tables["visits"], plan_of(query(from_="visits"))
    assert isinstance(visits, EventsTable)
    few, many = (
        cost_of(asked, visits.model_copy(update={"rows_capacity": rows}), capacity=1000, speed=SPEED)
        for rows in (10, 10_000)
    )
    assert few.time_ns + 9_000 * (SPEED.leaf_row + SPEED.scalar_entry) < many.time_ns


VISITS_OF_DAYS: dict[str, Any] = {
    "from_": "visits",
    "select": [{"sum": {"column": "day"}}],
    "per_individual": {"l2_clip": 1},
}


def of_matrix(*functionals: list[int]) -> dict[str, Any]:
    """A query of visits: of each functional the days that weigh 1."""
    return VISITS_OF_DAYS | {"select": [matrix("day", *(dict.fromkeys(each, 1.0) for each in functionals))]}


def moments(count: int, *more: dict[str, Any]) -> dict[str, Any]:
    """A query of so many features of one column, and more."""
    numbers = [{"of": {"mul": [{"col": "age"}, (n + 9) / 1000]}} for n in range(count)]
    return {"select": [{"moments": {"features": [*numbers, *more]}}]}


def gradient(target: str) -> dict[str, Any]:
    """A query of the gradient of a model of one feature."""
    classes = {"country": 3, "area": 5}.get(target)
    model = {
        "loss": "logistic" if classes is None else "softmax",
        "target": {"col": target} if classes is None else target,
        "features": [{"of": {"mul": [{"col": "age"}, 0.01]}}],
        "parameters": [1.5] if classes is None else [[n] for n in range(classes)],
    }
    return {"select": [{"gradient": model}]}


def clipped_to(clip: float) -> dict[str, Any]:
    """A bound on each individual's vector."""
    return {"per_individual": {"l2_clip": clip}}


COUNT: dict[str, Any] = {"count": {}}
AGE, LEVEL, DAY = ({"sum": {"column": name}} for name in ("age", "level", "day"))
VISITS: dict[str, Any] = {"from_": "visits"}
GROUPS: dict[str, Any] = {"group_by": ["country"]}
OLD, NORWAY = {"ge": [{"col": "age"}, 40]}, {"eq": [{"col": "country"}, "NO"]}
BY_DAYS = {"linear": {"column": "day", "weights": {"indices": [1], "values": [364]}}}
LISTED = {"histogram": {"column": "day", "values": list(range(364))}}
MORE: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("an item", {}, {"select": [COUNT, AGE]}),
    ("a second item", {"select": [COUNT, AGE]}, {"select": [COUNT, AGE, LEVEL]}),
    ("coordinates", {}, {"select": [{"histogram": {"column": "age"}}]}),
    ("what is left", {}, {"select": [{"active": {"share": 0.5}}]}),
    ("different norms", {}, {"select": [AGE]}),
    ("a group", {}, GROUPS),
    ("a second feature", moments(1), moments(2)),
    ("a feature for each value", moments(1), moments(1, {"one_hot": "country"})),
    ("a class", gradient("member"), gradient("country")),
    ("another class", gradient("country"), gradient("area")),
    ("a gradient's clip", gradient("member") | clipped_to(5.5), gradient("member") | clipped_to(0.5)),
    ("a gradient's shortening", gradient("member"), gradient("member") | {"rule": "clip"}),
    ("a second group", GROUPS, {"group_by": ["country", "age"]}),
    ("a condition", {}, {"where": OLD}),
    ("a second condition", {"where": OLD}, {"where": {"and": [OLD, NORWAY]}}),
    ("a choice of rows", VISITS | clipped_to(3.0), VISITS | {"per_individual": {"l2_clip": 3.0, "rows": 9}}),
    ("a calculation", {"where": {"ge": [{"col": "age"}, 4]}}, {"where": {"ge": [{"add": [{"col": "age"}, 1]}, 4]}}),
    ("a functional", VISITS | {"select": [DAY]}, VISITS | {"select": [BY_DAYS]}),
    ("a matrix", VISITS_OF_DAYS, of_matrix([1, 2])),
    ("another weight of a matrix", of_matrix([1], [2]), of_matrix([1], [2, 3])),
    (
        "listed values",
        VISITS_OF_DAYS | {"select": [{"histogram": {"column": "day"}}]},
        VISITS_OF_DAYS | {"select": [LISTED]},
    ),
    ("a bin", GROUPS, {"group_by": ["country", {"bin": {"column": "age", "edges": [0, 9]}}]}),
    (
        "a bin of many values",
        {"group_by": [{"bin": {"column": "age", "edges": [0, 9]}}]},
        {"group_by": [{"bin": {"column": "spend", "edges": [0, 9]}}]},
    ),
    (
        "an individual's own column",
        VISITS | {"where": {"ge": [{"col": "day"}, 40]}},
        VISITS | {"where": {"ge": [{"col": "people.age"}, 40]}},
    ),
    ("a list", {"where": OLD}, {"where": {"in": [{"col": "age"}, [*range(0, 120, 2)]]}}),
    ("a clip that binds", {"select": [AGE]} | clipped_to(120.0), {"select": [AGE]} | clipped_to(119.0)),
    (
        "charges in 128 bits",
        {"select": [AGE], "noise": {"sigma": 2.0**20}},
        {"select": [AGE], "noise": {"sigma": 2.0**19.5}},
    ),
    ("noise that doubles decide less often", {"noise": {"sigma": 2.0**12}}, {"noise": {"sigma": 2.0**30}}),
    (
        "a list of more values",
        {"where": {"in": [{"col": "age"}, list(range(0, 40, 2))]}},
        {"where": {"in": [{"col": "age"}, list(range(0, 80, 2))]}},
    ),
    ("an item of events", VISITS, VISITS | {"select": [COUNT, DAY]}),
    ("coordinates of events", VISITS, VISITS | {"select": [{"histogram": {"column": "day"}}]}),
]


@pytest.mark.parametrize(("less", "more"), [row[1:] for row in MORE], ids=[row[0] for row in MORE])
def test_every_kind_of_work_raises_the_cost(less: dict[str, Any], more: dict[str, Any]) -> None:
    """More of anything that a query can ask for."""
    cheap, dear = cost(query(**less)), cost(query(**more))
    assert_no_more(cheap, dear)
    assert cheap.time_ns < dear.time_ns


@settings(max_examples=times(40, 100))
@given(asked=queries(), sigma=st.sampled_from([11.0, 99.0]))
def test_text_that_makes_no_more_work_makes_no_difference(asked: dict[str, Any], sigma: float) -> None:
    """How the JSON is spaced and ordered."""
    noisy = asked | {"noise": {"sigma": sigma}}
    one = compiled(noisy)
    if one is None:
        return
    table = SCHEMA.tables[one.rows.table]
    other = plan_of(dict(reversed(noisy.items())))
    costs = [cost_of(each, table, capacity=CAPACITY, speed=SPEED) for each in (one, other)]
    assert costs[0] == costs[1]


CLIPPED = clipped_to(0.5)
PRICED: list[tuple[str, dict[str, Any], set[str]]] = [
    ("a count of events", VISITS, {"scalar_entry"}),
    ("a clipped count of events", VISITS | CLIPPED, {"scalar_entry"}),
    ("a clipped sum of events", VISITS | CLIPPED | {"select": [{"sum": {"column": "paid"}}]}, {"scalar_entry"}),
    ("a histogram of events", VISITS | {"select": [{"histogram": {"column": "day"}}]}, {"entry"}),
    ("a histogram of one value", VISITS | {"select": [{"histogram": {"column": "one"}}]}, {"entry"}),
    ("a clipped count in groups", VISITS | CLIPPED | {"group_by": ["day"]}, {"entry", "clipped_entry"}),
    ("a count in one group", VISITS | {"group_by": ["one"]}, {"entry"}),
    ("items of events", VISITS | {"select": [{"count": {}}, {"sum": {"column": "paid"}}]}, {"entry"}),
    ("a count of people", {}, set()),
    ("a count of active people", {"select": [{"active": {"share": 0.5}}]}, set()),
    ("listed values of people", {"select": [{"histogram": {"column": "age", "values": [1, 9]}}]}, {"scatter_entry"}),
    ("a histogram of people", {"select": [{"histogram": {"column": "age"}}]}, {"scatter_entry"}),
    ("moments", moments(2), set()),
    ("a gradient", gradient("member"), set()),
    ("a clipped gradient", gradient("member") | CLIPPED, {"clipped_entry"}),
    ("items of people", {"select": [{"count": {}}, {"sum": {"column": "age"}}]}, {"entry"}),
]


@pytest.mark.parametrize(("asked", "names"), [row[1:] for row in PRICED], ids=[row[0] for row in PRICED])
def test_a_row_is_priced_by_what_the_engine_does_with_it(asked: dict[str, Any], names: set[str]) -> None:
    """One number of each individual is neither sorted by coordinate nor scaled; a group of one value is looked up."""
    schema = with_column("visits", one={"type": "category", "size": 1})
    entries = [each.name for each in fields(Speed) if each.name.endswith("_entry") or each.name == "entry"]
    at_all = cost(query(**asked), schema=schema).time_ns
    rows = schema.tables["visits" if "from_" in asked else "people"].rows_max(CAPACITY)
    for name in entries:
        slower = cost(query(**asked), schema=schema, speed=replace(SPEED, **{name: getattr(SPEED, name) + 1}))
        items = len(asked.get("select", [{}]))
        assert slower.time_ns - at_all == (rows * items if name in names else 0)


@pytest.mark.parametrize("share", [0.1, 0.5, 1])
def test_what_is_left_is_priced_as_a_condition_on_a_column_of_eight_bytes(share: float) -> None:
    """Every declared individual counts; the price is the same at any share."""
    far = {"type": "integer", "lower": 0, "upper": 2**40}
    schema = with_column("people", far=far)
    unmeasured = replace(SPEED, literal=0.0, committed_byte=0.0)
    on_column = cost(query(where={"ge": [{"col": "far"}, 5]}), schema=schema, speed=unmeasured)
    active = cost(query(select=[{"active": {"share": share}}]), schema=schema, speed=unmeasured)
    assert active.time_ns == on_column.time_ns == cost(query(), schema=schema, speed=unmeasured).time_ns + 2_250_000


@pytest.mark.parametrize(
    ("functionals", "most"),
    [([[1], [2, 3]], 1), ([[1, 2], [2]], 2), ([[1], [1], [1, 2]], 3), ([[n] for n in range(64)], 1)],
)
def test_a_row_of_a_matrix_is_priced_by_the_most_weights_of_one_value(functionals: list[list[int]], most: int) -> None:
    """Whichever value it has; and each weight once more, for putting it into its place."""
    asked = of_matrix(*functionals)
    rows, weights = SCHEMA.tables["visits"].rows_max(CAPACITY), sum(map(len, functionals))
    for name, count in (("entry", rows * most + weights), ("clipped_entry", rows * most)):
        slower = cost(query(**asked), speed=replace(SPEED, **{name: getattr(SPEED, name) + 1}))
        assert slower.time_ns - cost(query(**asked)).time_ns == count


@pytest.mark.parametrize(
    ("upper", "listed", "steps"),
    [(2**20, 1000, 0), (2**20 + 1, 8, 0), (2**20 + 1, 9, 4), (2**20 + 1, 1023, 10), (2**20 + 1, 1024, 11)],
)
def test_a_list_that_is_searched_costs_as_many_steps_as_it_has_doublings(upper: int, listed: int, steps: int) -> None:
    """A row of a column too wide for a table takes steps that depend on where it goes; few values are ranges."""
    far = {"type": "integer", "lower": 0, "upper": upper}
    schema = with_column("people", far=far)
    condition = {"in": [{"col": "far"}, list(range(0, 1000 * listed, 1000))]}
    slower = replace(SPEED, searched_row=SPEED.searched_row + 1)
    for where in (condition, {"and": [condition, {"ge": [{"col": "age"}, 40]}]}):
        asked = query(where=where)
        found = cost(asked, schema=schema, speed=slower).time_ns - cost(asked, schema=schema).time_ns
        assert found == CAPACITY * steps


@pytest.mark.parametrize(("one", "other"), [(40, 50), (10, 99)])
def test_a_rare_value_costs_what_a_common_one_does(one: int, other: int) -> None:
    """How many people a condition selects is nothing that a cost could know."""
    assert cost(query(where={"eq": [{"col": "age"}, one]})) == cost(query(where={"eq": [{"col": "age"}, other]}))


def test_nothing_but_the_query_and_declared_bounds_goes_in() -> None:
    """The plan, the schema, the capacity, the speed and the number of shards; none of them can hold a record."""
    hints = get_type_hints(cost_of)
    assert set(hints) == {"plan", "table", "capacity", "speed", "shards", "return"}
    assert hints["capacity"] is int
    assert {hints["plan"], hints["speed"]} == {Plan, Speed}
    assert {each.__module__ for each in hints["table"].__args__} == {"service.query.schema"}


@settings(max_examples=times(60, 100))
@given(asked=plans, name=st.sampled_from([each.name for each in fields(Speed)]))
def test_a_slower_server_needs_more_time_and_the_same_memory(asked: Plan, name: str) -> None:
    """In whatever it is slower."""
    table = SCHEMA.tables[asked.rows.table]
    slower = replace(SPEED, **{name: getattr(SPEED, name) * 2})
    one, other = (cost_of(asked, table, capacity=CAPACITY, speed=speed) for speed in (SPEED, slower))
    assert_no_more(one, other)
    assert (one.kept_bytes, one.working_bytes) == (other.kept_bytes, other.working_bytes)


@given(asked=st.lists(costs, max_size=10))
def test_several_queries_cost_their_sum_and_work_one_after_the_other(asked: list[PublicCost]) -> None:
    """Times and what is kept add up; of the working memory the largest counts."""
    total = total_cost(asked)
    assert total.time_ns == sum(each.time_ns for each in asked)
    assert total.kept_bytes == sum(each.kept_bytes for each in asked)
    assert total.working_bytes == max([each.working_bytes for each in asked], default=0)
    assert total.memory_bytes == total.kept_bytes + total.working_bytes


def test_the_names_of_a_large_domain_are_paid_for_where_they_are_sent() -> None:
    """A reply lists up to 1,000 categories of a column whatever its dimension, and a character may take six bytes."""
    names = [f"{number:04}" + "å" * 900 for number in range(1000)]
    column = {"type": "category", "categories": names}
    schema = with_column("people", named=column)
    asked = plan_of(query(group_by=["named", "age"]), schema)
    assert asked.dimension > 10_000
    assert asked.answered.labels() == []
    kept = cost_of(asked, schema.tables["people"], capacity=1, speed=SPEED).kept_bytes
    assert kept > 3 * len(json.dumps(shown_of(asked).axes))


def test_the_numbers_of_a_long_reply_are_stored_once_and_held_whole() -> None:
    """Above 10,000 the reply is written from the entry: it takes less time to keep, and as much memory to send."""
    table = SCHEMA.tables["people"]
    asked = plan_of(query())
    both = [replace(asked, dimension=dimension) for dimension in (10_000, 10_001)]
    costs = [cost_of(each, table, capacity=10, speed=SPEED) for each in both]
    stored = 24 * 10_000 * SPEED.committed_byte
    assert costs[0].time_ns - costs[1].time_ns > stored
    assert costs[1].kept_bytes - costs[0].kept_bytes == 3 * (8 + 24)


PEOPLE_ALONE = Schema.model_validate({"people": TABLES["people"]})
LARGE = 2**24


def divided(shards: int, speed: Speed = SPEED) -> PublicCost:
    """The cost of a count of everybody in a large dataset of so many shards."""
    asked = plan_of(query(), PEOPLE_ALONE)
    return cost_of(asked, PEOPLE_ALONE.tables["people"], capacity=LARGE, speed=speed, shards=shards)


def test_work_by_row_is_divided_and_the_commit_is_not() -> None:
    """Time by row is that of the fullest shard, slower by what all at once slow each other; bytes kept are the same."""
    quick = replace(SPEED, cores=4, shard_slowdown=1.25)
    one, four = divided(1, quick), divided(4, quick)
    assert four.kept_bytes == one.kept_bytes
    assert one.time_ns / 4 < four.time_ns < one.time_ns
    by_row_ns = LARGE * SPEED.individual
    assert one.time_ns - four.time_ns > by_row_ns * (1 - 1.25 / 4)


def test_more_shards_than_cores_wait_for_each_other() -> None:
    """On two cores eight shards take no less time than two do."""
    two_cores = replace(SPEED, cores=2)
    assert divided(8, two_cores).time_ns >= divided(2, two_cores).time_ns
