"""Which plans are kept, and for what they are taken."""

import pytest

from service.query import kept_plans
from service.query.kept_plans import KeptPlans
from service.query.language import Query
from service.query.parse import parse_query
from service.query.plan import Plan, compile_query
from service.query.problems import QueryProblem
from service.query.schema import Schema
from service.query.working_memory import values_bytes
from tests.query.samples import body, query

MATRIX = {"starts": [0, 1, 2], "indices": [1, 2], "values": [1, 2]}
COLUMNS = {"age": {"type": "integer", "lower": 0, "upper": 9}, "item": {"type": "category", "size": 9}}
TABLES = {"people": {"kind": "individuals", "key": "id", "columns": COLUMNS}}


def registrations() -> tuple[Schema, Schema]:
    """Two that compare equal."""
    return Schema.model_validate(TABLES), Schema.model_validate(TABLES)


def compiled(asked: Query, schema: Schema) -> Plan:
    """The plan, made anew."""
    return compile_query(asked, schema, capacity=100, budget_units=2**40)


def test_a_plan_is_kept_for_one_query_and_one_registration() -> None:
    """The same objects, not equal ones: an extension makes another registration."""
    first, second = registrations()
    asked, equal = (parse_query(body(query())) for _ in "ab")
    plans = KeptPlans(compiled)
    plan = plans.of(asked, first)
    assert plans.of(asked, first) is plan
    assert plans.of(equal, first) is not plan
    assert plans.of(equal, first) == plan
    assert plans.of(asked, second) is not plan
    assert plans.of(asked, first) is not plan  # one registration of each query at a time


def test_values_that_compare_equal_have_plans_of_their_own() -> None:
    """The second is refused, although the first is kept."""
    schema, _ = registrations()
    plans = KeptPlans(compiled)
    one, true = (parse_query(body(query(where={"eq": [{"col": "age"}, value]}))) for value in (1, True))
    assert one == true
    plans.of(one, schema)
    with pytest.raises(QueryProblem):
        plans.of(true, schema)


@pytest.mark.parametrize(
    ("fields", "is_kept"),
    [
        ({"where": {"in": [{"col": "item"}, [1, 3, 5]]}}, True),
        ({"where": {"in": [{"col": "item"}, [1, 3, 5, 7]]}}, False),
        ({"select": [{"linear": {"column": "item", "matrix": MATRIX}}]}, False),
        ({"where": {"or": [{"eq": [{"col": "age"}, 1]}] * 99}}, False),
    ],
)
def test_only_what_is_small_is_kept(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, object], *, is_kept: bool
) -> None:
    """A matrix or a list may be longer than the text that it is of."""
    schema, _ = registrations()
    asked = parse_query(body(query(**fields)))
    three = compiled(parse_query(body(query(where={"in": [{"col": "item"}, [1, 3, 5]]}))), schema)
    monkeypatch.setattr(kept_plans, "LISTS_BYTES_MAX", values_bytes(three.predicate, three))
    plans = KeptPlans(compiled)
    assert (plans.of(asked, schema) is plans.of(asked, schema)) is is_kept


def test_few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """When all places are taken, all are given up."""
    monkeypatch.setattr(kept_plans, "KEPT_MAX", 2)
    schema, _ = registrations()
    plans = KeptPlans(compiled)
    asked = [parse_query(body(query())) for _ in range(3)]
    first, second = (plans.of(each, schema) for each in asked[:2])
    assert (plans.of(asked[0], schema), plans.of(asked[1], schema)) == (first, second)
    assert plans.of(asked[0], schema) is first
    plans.of(asked[2], schema)
    assert plans.of(asked[0], schema) is not first
