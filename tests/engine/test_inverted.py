"""The inverted index against the scan: the same integers bit for bit, whatever came, went and came back meanwhile."""

from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.arrays import Codes
from service.engine.inverted import (
    INSERTED_MAX,
    PAIRED_MAX,
    PAIRS_MAX,
    VALUES_MAX,
    Indexes,
    Inverted,
    InvertedPages,
    Listing,
    is_indexed,
)
from service.engine.memory import DatasetMemory
from service.query.columns import Coding, coding_of
from service.query.division import PAGE_SLOTS
from service.query.plan import Plan
from service.query.schema import CategoryColumn, Column, IntegerColumn, RealColumn, Schema
from tests.digests import with_digests
from tests.engine.blocks import ALWAYS, NEVER, answered
from tests.engine.worlds import (
    BUDGET,
    PERSON,
    SCHEMA,
    SLOTS,
    Row,
    assumed_plan,
    limits,
    memory_of,
    people,
    plan_of,
    queries,
    query_of,
    rows,
    uploaded,
    visits,
)
from tests.rotation import times


@dataclass(frozen=True)
class Step:
    """A change of a dataset: an individual joins in a slot, or leaves."""

    slot: int
    row: Row | None


def steps() -> st.SearchStrategy[list[Step]]:
    """Comings and goings in a few slots."""
    return st.lists(st.builds(Step, st.sampled_from(SLOTS), st.none() | rows("people")), max_size=8)


def take(step: Step, memory: DatasetMemory) -> None:
    """One step; none joins in a taken slot, none leaves an empty one."""
    is_there = step.slot < memory.people.present.size and bool(memory.people.present[step.slot])
    if step.row is None and is_there:
        memory.erase(step.slot)
    if step.row is not None and not is_there:
        codes = with_digests(uploaded("people", [step.slot], [step.row]).codes, [step.slot])
        memory.add_individuals(np.array([step.slot]), codes, np.array([BUDGET]))


def check_after_each(changes: list[Step], plan: Plan, memory: DatasetMemory, *, is_ahead: bool) -> None:
    """After every change: an index that was made before it, ahead or not, and kept, must not miss anybody."""
    for change in [*changes, Step(0, None)]:
        if is_ahead:
            memory.people.index_categories()
        assert answered(plan, memory, scan_worth=ALWAYS) == answered(plan, memory, scan_worth=NEVER)
        take(change, memory)


@settings(max_examples=times(60, 150), deadline=None)
@given(records=people(), query=queries("people"), left=limits(), changes=steps(), is_ahead=st.booleans())
def test_of_individuals_it_gives_the_integers_of_the_scan(
    records: dict[int, Row], query: dict[str, Any], left: dict[int, int], changes: list[Step], *, is_ahead: bool
) -> None:
    """Any query of individuals; the individuals come and go."""
    check_after_each(changes, assumed_plan(query), memory_of(records, limits=left), is_ahead=is_ahead)


COUNTRIES, LEVELS, OPERATORS = ["NO", "SE", "DK"], [-2, 0, 3], ["eq", "le", "ge", "ne"]
THE_REST: Row = {"area": 1, "spend": 10, "balance": 0, "member": True, "born": None}


def small_rows() -> st.SearchStrategy[Row]:
    """Rows that differ in two columns, of few values each."""
    differing = {"country": st.sampled_from([*COUNTRIES, None]), "level": st.sampled_from([*LEVELS, None])}
    return st.fixed_dictionaries(differing).map(lambda row: row | THE_REST)


def small_conditions() -> st.SearchStrategy[dict[str, Any]]:
    """One value of a column, alone or with one or more of another, in either order."""
    country = st.builds(_condition, st.just("country"), st.just("eq"), st.sampled_from(COUNTRIES))
    level = st.builds(_condition, st.just("level"), st.sampled_from(OPERATORS), st.sampled_from(LEVELS))
    both = st.tuples(country, level).flatmap(st.permutations).map(lambda parts: {"and": list(parts)})
    return country | both


def _condition(column: str, operator: str, literal: object) -> dict[str, Any]:
    return {operator: [{"col": column}, literal]}


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_pair_of_values_is_found_as_the_scan_finds_it(operator: str) -> None:
    """In a world with an individual for each pair, on both sides of the edge of a page; none is left to chance."""
    kinds = list(product([*COUNTRIES, None], [*LEVELS, None]))
    people = [{"country": country, "level": level} | THE_REST for country, level in kinds]
    memory = memory_of(dict(enumerate(people, start=PAGE_SLOTS - len(people) // 2)))
    for country, level, order in product(COUNTRIES, LEVELS, (1, -1)):
        parts = [_condition("country", "eq", country), _condition("level", operator, level)][::order]
        plan = plan_of(query_of(where={"and": parts}))
        assert answered(plan, memory, scan_worth=ALWAYS) == answered(plan, memory, scan_worth=NEVER)
    assert any(len(listing) > 1 for listing in memory.people.indexes.made)


@settings(max_examples=times(60, 150), deadline=None)
@given(
    people=st.dictionaries(st.sampled_from(SLOTS), small_rows(), min_size=3),
    where=small_conditions(),
    changes=st.lists(st.builds(Step, st.sampled_from(SLOTS), st.none() | small_rows()), min_size=1, max_size=8),
    is_ahead=st.booleans(),
)
def test_in_a_small_world_it_gives_the_integers_of_the_scan(
    people: dict[int, Row], where: dict[str, Any], changes: list[Step], *, is_ahead: bool
) -> None:
    """So few values that a condition concerns most people: every change of people makes a difference."""
    check_after_each(changes, plan_of(query_of(where=where)), memory_of(people), is_ahead=is_ahead)


@settings(max_examples=times(40, 100), deadline=None)
@given(data=st.data(), records=people(), query=queries("visits"))
def test_of_events_it_gives_the_integers_of_the_scan(
    data: st.DataObject, records: dict[int, Row], query: dict[str, Any]
) -> None:
    """Rows come in uploads, and go with their individual."""
    plan = assumed_plan(query)
    memory = memory_of(records, [data.draw(visits(records))])
    assert answered(plan, memory, scan_worth=ALWAYS) == answered(plan, memory, scan_worth=NEVER)
    memory.erase(next(iter(records)))
    assert answered(plan, memory, scan_worth=ALWAYS) == answered(plan, memory, scan_worth=NEVER)


@given(st.lists(st.integers(0, 7), max_size=40), st.integers(0, 6), st.integers(0, 6))
def test_the_lists_hold_every_row_of_a_value_and_no_null(listed: list[int], low: int, high: int) -> None:
    """Code 7 is NULL here."""
    codes: NDArray[np.unsignedinteger] = np.array(listed, dtype=np.uint8)
    index = InvertedPages([Inverted.of(codes, Coding(offset=0, span=6, step_log2=0))])
    low, high = min(low, high), max(low, high)
    found = index.rows(low, high)[0].tolist()
    assert sorted(found) == [row for row, code in enumerate(listed) if low <= code <= high]
    assert len(found) == index.count(low, high)


def test_two_bytes_a_row_on_a_page() -> None:
    """A full page's row numbers fit two bytes, its last one too."""
    codes: NDArray[np.unsignedinteger] = np.ones(PAGE_SLOTS, dtype=np.uint8)
    index = Inverted.of(codes, Coding(offset=0, span=3, step_log2=0))
    assert index.rows.dtype == np.uint16
    assert int(index.rows[-1]) == PAGE_SLOTS - 1


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (CategoryColumn(type="category", size=2), True),
        (CategoryColumn(type="category", size=VALUES_MAX), True),
        (CategoryColumn(type="category", size=VALUES_MAX + 1), False),
        (IntegerColumn(type="integer", lower=-5, upper=VALUES_MAX - 6), True),
        (IntegerColumn(type="integer", lower=0, upper=VALUES_MAX), False),
        (RealColumn(type="real", lower=0, upper=1), False),
    ],
)
def test_what_has_an_index_is_public(column: Column, *, expected: bool) -> None:
    """The declaration decides, never the data."""
    assert is_indexed(column) is expected
    assert coding_of(column).span >= 0


@pytest.mark.parametrize("scan_worth", [ALWAYS, NEVER])
def test_an_absent_value_touches_no_individual(scan_worth: int) -> None:
    """An empty block comes where with one individual a block of one would come."""
    memory, plan = memory_of({7: PERSON}), plan_of(query_of(where=_both_ways()))
    block = answered(plan, memory, scan_worth=scan_worth)
    assert (block["slots"], block["norms_squared"], block["values"]) == ([], [], [])


def _both_ways() -> dict[str, Any]:
    """Two ranges of one column that have nothing in common, beside another column that could have led the way."""
    return {"and": [{"ge": [{"col": "level"}, 2]}, {"le": [{"col": "level"}, 0]}, {"eq": [{"col": "country"}, "NO"]}]}


def test_no_query_makes_an_index_that_was_made_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of all categories are, of a number none is; an arrival is put into all lists that are made, unsorted."""
    made = _counted(monkeypatch)
    memory = memory_of(dict.fromkeys(SLOTS, PERSON))
    categories = ("country", "area")
    memory.people.index_categories()
    assert len(made) == len(categories) * 2  # pages
    for column in categories:
        assert _asked(memory, column) == len(SLOTS)
    assert len(made) == 4
    assert _asked(memory, "level") == len(SLOTS)
    assert len(made) == 6
    take(Step(8, PERSON), memory)
    assert [_asked(memory, column) for column in (*categories, "level")] == [len(SLOTS) + 1] * 3
    assert len(made) == 6


def test_no_query_makes_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks at every row, and the next one after `prepare` finds the same people by the list."""
    memory = memory_of(dict.fromkeys(SLOTS, PERSON))
    made = _counted(monkeypatch)
    plan = plan_of(query_of(where=_condition("level", "eq", PERSON["level"])))
    scanned = answered(plan, memory, scan_worth=NEVER)
    assert made == []
    assert not memory.take_prepared()
    memory.prepare()
    assert memory.take_prepared()
    assert len(made) == 2  # pages
    assert answered(plan, memory, scan_worth=ALWAYS) == scanned
    assert len(made) == 2


def test_an_index_of_earlier_records_is_not_taken() -> None:
    """An individual joins after an index was made and before a query takes it."""
    memory = memory_of(dict.fromkeys(SLOTS, PERSON))
    assert not memory.people.indexes.admit(("level",))
    memory.prepare()
    take(Step(8, PERSON), memory)
    assert not memory.take_prepared()
    assert not memory.people.indexes.admit(("level",))
    memory.prepare()
    assert memory.take_prepared()
    assert memory.people.indexes.admit(("level",))
    assert _asked(memory, "level") == len(SLOTS) + 1


def test_where_many_come_the_page_is_sorted_again_ahead_of_any_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """That page alone, for every list that was made."""
    memory = memory_of(dict.fromkeys(SLOTS, PERSON))
    columns = ("country", "area", "level")
    assert [_asked(memory, column) for column in columns] == [len(SLOTS)] * 3
    made = _counted(monkeypatch)
    slots = np.arange(100, 101 + INSERTED_MAX)
    codes = with_digests(uploaded("people", list(slots), [PERSON] * slots.size).codes, slots)
    memory.add_individuals(slots, codes, np.full(slots.size, BUDGET))
    assert len(made) == len(columns)
    assert [_asked(memory, column) for column in columns] == [len(SLOTS) + slots.size] * 3
    assert len(made) == len(columns)


@given(st.lists(st.integers(0, 7), min_size=1, max_size=40), st.data())
def test_rows_inserted_into_the_lists_are_listed_as_if_sorted(listed: list[int], data: st.DataObject) -> None:
    """Some rows were NULL and get a value; one that got the value it is listed under already is listed once."""
    coding = Coding(offset=0, span=6, step_log2=0)
    codes: NDArray[np.unsignedinteger] = np.array(listed, dtype=np.uint8)
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, codes.size - 1)))), dtype=np.int64)
    before = codes.copy()
    before[rows] = data.draw(st.sampled_from([np.full(rows.size, 7, dtype=np.uint8), codes[rows]]))
    index = Inverted.of(before, coding).with_rows(rows, codes[rows])
    wanted = Inverted.of(codes, coding)
    assert index.rows.tolist() == wanted.rows.tolist()
    assert index.rows.dtype == wanted.rows.dtype
    assert index.edges.tolist() == wanted.edges.tolist()


def test_an_empty_dataset_has_nothing_to_index_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dataset is loaded before anybody is in it."""
    made = _counted(monkeypatch)
    DatasetMemory(SCHEMA).people.index_categories()
    assert made == []


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[Coding]:
    """The codings of the indexes that are made from now on."""
    made: list[Coding] = []
    real = Inverted.of

    def of(codes: NDArray[np.unsignedinteger], coding: Coding) -> Inverted:
        made.append(coding)
        return real(codes, coding)

    monkeypatch.setattr(Inverted, "of", of)
    return made


def _asked(memory: DatasetMemory, column: str) -> int:
    """How many have the usual value of a column, by its index."""
    where = _condition(column, "eq", PERSON[column])
    return len(answered(plan_of(query_of(where=where)), memory, scan_worth=ALWAYS)["slots"])


def spans(**columns: int) -> dict[str, Coding]:
    """Columns with codes from 0."""
    return {name: Coding(offset=0, span=span, step_log2=0) for name, span in columns.items()}


def filled(coding: Coding, codes: list[int]) -> Codes:
    """A page of NULLs but for the first slots."""
    page = np.full(PAGE_SLOTS, coding.null_code, dtype=coding.dtype)
    page[: len(codes)] = codes
    return page


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=30), st.integers(0, 2), st.integers(0, 5))
def test_a_pair_of_columns_lists_every_row_of_a_pair_of_values(
    rows: list[tuple[int, int]], first: int, second: int
) -> None:
    """3 and 6 are NULL here, and a pair with a NULL is in no list."""
    codings = spans(a=2, b=5)
    columns = {name: filled(codings[name], [row[place] for row in rows]) for place, name in enumerate("ab")}
    listing = ("a", "b")
    indexes = Indexes(codings, frozenset("ab"))
    assert not indexes.admit(listing)
    indexes.take(indexes.built(indexes.missing, lambda name, _page: columns[name], {}, count=1))
    assert indexes.admit(listing)
    index = indexes.whole[listing]
    code = first * 6 + second
    assert index.rows(code, code)[0].tolist() == [row for row, pair in enumerate(rows) if pair == (first, second)]
    assert index.count(first * 6, first * 6 + 5) == sum(a == first and b < 6 for a, b in rows)


@pytest.mark.parametrize(("values", "expected"), [(128, True), (129, False)])
def test_only_few_pairs_of_values_are_listed(values: int, *, expected: bool) -> None:
    """With more, the edges of the lists would take more room than the lists; 128 times 128 is PAIRS_MAX."""
    assert PAIRS_MAX == 128 * 128
    indexes = Indexes(spans(a=127, b=values - 1), frozenset("ab"))
    assert not indexes.admit(("a", "b"))
    assert (indexes.missing == (("a", "b"),)) is expected


def test_the_first_pairs_that_are_asked_for_keep_their_place() -> None:
    """Queries about every two columns of a wide table do not fill the memory."""
    names = "abcdefg"
    indexes = Indexes(spans(**dict.fromkeys(names, 3)), frozenset(names) - {"g"})
    pairs: list[Listing] = list(combinations(names[:-1], 2))
    for listing in [*pairs, pairs[0], ("f",), ("g",), ("a", "g")]:
        assert not indexes.admit(listing)
    assert indexes.missing == (*pairs[:PAIRED_MAX], ("f",))


def test_events_are_listed_by_one_column() -> None:
    """A pair would be kept once more for every page of them."""
    columns: dict[str, Any] = {name: {"type": "category", "size": 3} for name in "ab"}
    people = {"kind": "individuals", "key": "id", "columns": columns}
    visits = {"kind": "events", "key": "id", "rows_per_individual": 2, "columns": columns}
    tables = {"people": people, "visits": visits}
    memory = DatasetMemory(Schema.model_validate(tables))
    memory.grow(1)
    memory.add_events("visits", np.array([0]), {name: np.array([1], dtype=np.uint8) for name in "ab"})
    people_by, visits_by = memory.people.indexes.admit, memory.events["visits"].admit
    assert (people_by(("a", "b")), visits_by(("a",)), visits_by(("a", "b"))) == (False, False, False)
    memory.prepare()
    assert memory.take_prepared()
    assert (people_by(("a", "b")), visits_by(("a",)), visits_by(("a", "b"))) == (True, True, False)
