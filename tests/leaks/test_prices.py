"""The benchmark of prices: data are as bad as they say, queries are priced by their constants, and it can fail."""

import json
from dataclasses import fields, replace
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.bench_prices import (
    QUICK_PEOPLE,
    Row,
    kept,
    measured,
    needed,
    once_ns,
    parsed,
    plan_of,
    price_ns,
    slowest,
    verdict,
)
from loadtests.divided_prices import divided_data
from loadtests.in_process import drawn
from loadtests.priced_queries import NEAR_WHOLE, QUERIES, Priced, below, least, summed, where
from loadtests.worst_data import (
    LISTED,
    OFTEN,
    ROOMY,
    SHARE,
    STANDINGS,
    admitted,
    charged,
    half_below,
    half_left,
    last_below,
    made,
    on_the_brink,
    one_paused,
    overdrawn,
    schema,
    second_paused,
    striped,
)
from loadtests.writer_work import work
from service.core.charge import LIMIT_UNITS_MAX, UNITS_PER_RHO, charge_units
from service.engine.memory import DatasetMemory
from service.query.cost import Speed, cost_of
from service.query.division import PAGE_SLOTS, at_each_shard, rows_at_fullest

PEOPLE = 5000
TWO_PAGES = 2 * PAGE_SLOTS - 1000
NOT_BY_WORK = {"query", "committed_byte", "commit", "read"}
NOT_BY_WORK |= {"cores", "shard_coordinate", "shard_round_trip", "shard_slowdown"}  # loadtests.bench_shards
EVERYBODY = Priced(constant="individual", data="everybody")
SECOND = Priced(constant="individual", data="every second", query=where(least("second", 1)))


@pytest.fixture(scope="module")
def memory() -> DatasetMemory:
    """The data, for tests that make accounts stand as they need them."""
    return made(PEOPLE)


def row(ratio: float, constant: str = "individual", data: str = "everybody") -> Row:
    """A row of the table with this ratio."""
    return Row(people=10, constant=constant, data=data, standing="", work_ns=8 * ratio, price_ns=8.0, needed=None)


# Queries


def test_each_constant_has_a_query() -> None:
    """Every constant of the price by which work grows, and the first use of an index and of a tally."""
    constants = {each.name for each in fields(Speed)} - NOT_BY_WORK
    assert {priced.constant for priced in QUERIES} == constants | {"first index", "first tally"}


@pytest.mark.parametrize("people", [1000, 1_000_000])
def test_each_query_is_one_of_its_schema_and_priced_by_its_constant(people: int) -> None:
    """It compiles at any size, no two rows have the same name, and a dearer constant makes it dearer."""
    tables = schema(people)
    for priced in QUERIES:
        plan = plan_of(priced, tables, people)
        if hasattr(Speed(), priced.constant):
            dearer = replace(Speed(), **{priced.constant: 1e6})
            assert price_ns(plan, tables, people, dearer) > price_ns(plan, tables, people, Speed()), priced.data
    names = [(priced.constant, priced.data) for priced in QUERIES]
    assert len(names) == len(set(names))


# Data


def test_one_list_is_at_the_switch_and_the_other_one_beyond_it(memory: DatasetMemory) -> None:
    """Exactly one row in memory in SHARE has an even code, and in the other column one more."""
    even = {name: int((memory.people.columns[name][:PEOPLE] % 2 == 0).sum()) for name in ("at", "beyond", "right")}
    assert even["at"] * SHARE == even["right"] * SHARE == memory.people.present.size
    assert even["beyond"] == even["at"] + 1
    assert memory.people.indexes.whole[("at",)].count(0, LISTED - 1) == PEOPLE


def test_stripes_are_of_whole_stretches_and_begin_with_a_slot_of_their_own(memory: DatasetMemory) -> None:
    """So that a mask over a stretch is full, empty, or of one slot."""
    piece = memory.people.columns["piece"][:PEOPLE].tolist()
    assert piece == [2, *[0] * (PEOPLE - 1)]
    columns = striped(3 * 2**13, 2**13)
    assert np.flatnonzero(columns == 2).tolist() == [0, 2**13, 2**14]
    assert np.flatnonzero(columns == 1).tolist() == list(range(2**13 + 1, 2**14))


def test_one_age_is_missing(memory: DatasetMemory) -> None:
    """All others have one of at least 1, so that a range touches consecutive slots but for the one."""
    gap = memory.people.columns["gap"][:PEOPLE]
    assert (gap == 121).sum() == 1
    assert gap[0] != 121
    assert gap[-1] != 121
    assert gap.min() == 1
    assert memory.people.columns["age"][:PEOPLE].max() <= 120


def test_events_are_of_all_of_few_and_of_one(memory: DatasetMemory) -> None:
    """One row for each individual, OFTEN for each of few, all for one; all tables have as many."""
    owners = {name: next(memory.events[name].pages())[1].owners for name in ("once", "often", "alone")}
    assert {name: (each.size, np.unique(each).size) for name, each in owners.items()} == {
        "once": (PEOPLE, PEOPLE),
        "often": (PEOPLE, -(-PEOPLE // OFTEN)),
        "alone": (PEOPLE, 1),
    }


def test_no_float_decides_a_charge_near_a_whole_number() -> None:
    """The price of a step is a whole number but for less than a float has, and no small fraction: integers decide."""
    price = Fraction(UNITS_PER_RHO // 2) / Fraction(NEAR_WHOLE) ** 2
    norms = np.array([1, 3, 2**30, 2**60 - 1], dtype=np.int64)

    assert 0 < abs(price - 1) < Fraction(1, 2**50)
    assert price.denominator >= 2**49
    assert charge_units(norms, NEAR_WHOLE).tolist() == [ceil(norm * price) for norm in norms.tolist()]


# Accounts


def charges(memory: DatasetMemory, priced: Priced) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The charge of a query to each slot where everybody can pay."""
    ROOMY.set(memory, charged(memory))
    work(plan_of(priced, memory.schema, PEOPLE), memory, drawn)
    return charged(memory)


def left_out(memory: DatasetMemory, priced: Priced) -> set[int]:
    """The slots that a query would charge and does not, as accounts stand."""
    expected = memory.accounts.limits.copy()
    work(plan_of(priced, memory.schema, PEOPLE), memory, drawn)
    paid = charged(memory)
    assert (paid <= expected).all()
    return set(np.flatnonzero(paid[:PEOPLE] == 0).tolist())


def test_work_debits_as_the_writer_does(memory: DatasetMemory) -> None:
    """A count charges its worst case to each individual that it touches, and counts it."""
    plan = plan_of(SECOND, memory.schema, PEOPLE)
    before = memory.counters.charged_of(slice(None))[:PEOPLE].copy()
    spent = charges(memory, SECOND)

    assert spent[1:PEOPLE:2].tolist() == [plan.scale.worst_case_units] * (PEOPLE // 2)
    assert not spent[0:PEOPLE:2].any()
    assert (memory.counters.charged_of(slice(None))[:PEOPLE] - before).tolist() == [0, 1] * (PEOPLE // 2)


def test_on_the_brink_all_can_pay_once(memory: DatasetMemory) -> None:
    """The query asked again charges none of them."""
    on_the_brink(memory, charges(memory, SECOND))
    assert left_out(memory, SECOND) == set(range(0, PEOPLE, 2))
    spent = charged(memory)
    work(plan_of(SECOND, memory.schema, PEOPLE), memory, drawn)
    assert (charged(memory) == spent).all()


def test_one_unit_less_leaves_an_individual_out(memory: DatasetMemory) -> None:
    """The last one charged alone, or about half of all."""
    amounts = Priced(constant="priced_individual", data="amounts", query=summed("gap") | where(below(0.5)))
    spent = charges(memory, amounts)
    untouched = set(np.flatnonzero(spent[:PEOPLE] == 0).tolist())

    last_below(memory, spent)
    assert left_out(memory, amounts) - untouched == {int(np.flatnonzero(spent)[-1])}
    half_below(memory, spent)
    assert 0.4 * PEOPLE / 2 < len(left_out(memory, amounts) - untouched) < 0.6 * PEOPLE / 2


def test_where_half_is_left_every_vector_is_shortened(memory: DatasetMemory) -> None:
    """Under the clip rule each pays nearly the half that is left."""
    ages = Priced(constant="shortened_individual", data="ages", query=summed("gap") | {"rule": "clip"}, sigma=1e3)
    spent = charges(memory, ages)
    half_left(memory, spent)
    work(plan_of(ages, memory.schema, PEOPLE), memory, drawn)
    paid, touched = charged(memory), spent > 0

    assert touched.sum() == PEOPLE - 1
    assert (paid <= spent // 2).all()
    assert (paid[touched] > spent[touched] * 0.49).all()


def test_beyond_their_limits_none_can_pay(memory: DatasetMemory) -> None:
    """A query is answered, and charges none of them."""
    overdrawn(memory, charged(memory))
    spent = charged(memory)
    work(plan_of(EVERYBODY, memory.schema, PEOPLE), memory, drawn)
    assert (charged(memory) == spent).all()
    assert spent.min() > memory.accounts.limits.max()


def test_paused_individuals_are_left_out(memory: DatasetMemory) -> None:
    """One in the middle, or every second."""
    one_paused(memory, charged(memory))
    assert left_out(memory, EVERYBODY) == {PEOPLE // 2}
    second_paused(memory, charged(memory))
    assert left_out(memory, EVERYBODY) == set(range(1, PEOPLE, 2))


def accounts_of(memory: DatasetMemory) -> list[np.ndarray[tuple[int], np.dtype[np.generic]]]:
    """The accounts as they are."""
    return [memory.accounts.spent, memory.accounts.limits, memory.accounts.paused]


def test_accounts_stand_the_same_way_each_time(memory: DatasetMemory) -> None:
    """Repetitions are of the same work: nothing is spent before any of them, and limits are limits."""
    plan = plan_of(EVERYBODY, memory.schema, PEOPLE)
    for standing in STANDINGS:
        standing.set(memory, charges(memory, EVERYBODY))
        first = [each.copy() for each in accounts_of(memory)]
        once_ns(plan, memory, standing)
        standing.set(memory, charges(memory, EVERYBODY))

        assert 0 <= memory.accounts.limits.min() <= memory.accounts.limits.max() <= LIMIT_UNITS_MAX
        assert all((old == new).all() for old, new in zip(first, accounts_of(memory), strict=True))


# The table


@given(work_ns=st.floats(0, 1e12), priced=st.sampled_from(QUERIES))
def test_at_the_needed_constant_the_price_is_the_work(work_ns: float, priced: Priced) -> None:
    """The price is linear in each constant."""
    tables = schema(PEOPLE)
    plan = plan_of(priced, tables, PEOPLE)
    value = needed(priced.constant, work_ns, lambda speed: price_ns(plan, tables, PEOPLE, speed), Speed())

    assert (value is None) == (not hasattr(Speed(), priced.constant))
    if value is not None:
        price = price_ns(plan, tables, PEOPLE, replace(Speed(), **{priced.constant: value}))
        assert price == pytest.approx(work_ns, rel=1e-6, abs=100)


def test_the_price_is_without_the_bytes_of_the_commit(memory: DatasetMemory) -> None:
    """They are not sent here, and must not make room for work."""
    plan = plan_of(EVERYBODY, memory.schema, PEOPLE)
    whole = cost_of(plan, memory.schema.tables[plan.rows.table], capacity=PEOPLE, speed=Speed()).time_ns
    assert price_ns(plan, memory.schema, PEOPLE, Speed(committed_byte=1e9)) < whole


def test_work_above_its_price_fails(capsys: pytest.CaptureFixture[str]) -> None:
    """One row suffices; work that is exactly its price is covered."""
    assert verdict([row(0.5), row(1.0)]) == 0
    assert verdict([row(0.5), row(1.001)]) == 1
    assert capsys.readouterr().out == "0 of 2 exceed their price\n1 of 2 exceed their price\n"


def test_the_slowest_data_of_each_constant_are_named() -> None:
    """The largest ratio of each."""
    rows = [row(0.5), row(0.7, data="one paused"), row(0.6, constant="leaf_row")]
    assert [(each.constant, each.data) for each in slowest(rows)] == [
        ("individual", "one paused"),
        ("leaf_row", "everybody"),
    ]


@pytest.mark.parametrize(("constant_ns", "status"), [(1e-6, 1), (1e9, 0)])
@pytest.mark.parametrize(("people", "shards"), [(1000, []), (TWO_PAGES, ["--shards", "2"])], ids=["whole", "divided"])
def test_the_benchmark_can_fail_and_can_succeed(
    people: int, shards: list[str], constant_ns: float, status: int
) -> None:
    """Constants of next to nothing cover no work, those of a second cover all, the round trip to shards among them."""
    speed = Speed(**{each.name: constant_ns for each in fields(Speed)})
    found = list(measured(people, speed, parsed(["--only", "everybody", "--repetitions", "1", *shards])))

    assert shards or [each.standing for each in found] == 2 * [each.name for each in STANDINGS]
    assert verdict(found) == status


def test_a_divided_dataset_stands_as_the_undivided_one() -> None:
    """Two processes: the accounts before each query, and no shard with more rows than an upload would admit."""
    people = TWO_PAGES
    with divided_data(people, 2) as divided:
        memory, shards = divided.memory, divided.state.shards
        for name in ("once", "often", "alone"):
            most = rows_at_fullest(memory.schema.tables[name], people, 2)
            assert sum(held := shards.rows_held(0, name)) == people
            assert max(held) <= most
        for standing in STANDINGS:
            divided._stand(plan_of(SECOND, memory.schema, people), standing)
            stood, accounts = shards.accounts(slice(0, people)), memory.accounts
            assert stood.limit.tolist() == accounts.limits[:people].tolist()
            assert stood.spent.tolist() == accounts.spent[:people].tolist()
            assert stood.paused.tolist() == accounts.paused[:people].tolist()


@pytest.mark.parametrize("shards", [2, 4])
def test_rows_of_one_are_of_another_where_a_shard_has_no_room(shards: int) -> None:
    """No shard has more than it may, and those that fit stay."""
    slots = admitted(np.full(1000, 7), 8 * PAGE_SLOTS, shards, most=1250 // shards)
    held = at_each_shard(slots, shards)
    assert held[0] == held.max() == 1250 // shards
    assert set(slots.tolist()) <= {7 + page * PAGE_SLOTS for page in range(8)}


def test_kept_constants_are_read_from_a_file(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The speed.json of a home."""
    path = tmp_path_factory.mktemp("home") / "speed.json"
    path.write_text(json.dumps({each.name: 7.0 for each in fields(Speed)}))
    assert kept(path) == Speed(**{each.name: 7.0 for each in fields(Speed)})


def test_quick_is_of_small_sizes() -> None:
    """And of fewer repetitions."""
    quick, whole = parsed(["--quick"]), parsed([])
    assert quick.people == QUICK_PEOPLE
    assert max(quick.people) < max(whole.people) == 1_000_000
    assert quick.repetitions < whole.repetitions
