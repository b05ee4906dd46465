"""Decimals mean what they say: bins and comparisons of decimal data are those of exact decimal arithmetic.

Data, literals, widths and bounds are drawn as decimals of few places; the engine's counts are compared with a count by
`decimal.Decimal`, which knows no double, code or step.
"""

import json
import random
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.query.columns import coding_of
from service.query.conditions import Within
from service.query.parse import parse_query
from service.query.plan import Plan, compile_query
from service.query.schema import RealColumn, Schema
from tests.core.contributions import as_list
from tests.digests import with_digests

Json = dict[str, Any]
Row = dict[str, Decimal]

COLUMNS: dict[str, tuple[str, str, int]] = {"t": ("34.9", "42", 1), "p": ("0", "20000", 2), "b": ("-0.7", "0.1", 2)}
"""Real columns with their bounds, and how many decimal places their values have."""
SCHEMA = Schema.model_validate(
    {
        "people": {
            "kind": "individuals",
            "key": "person_id",
            "columns": {
                **{
                    name: {"type": "real", "lower": float(low), "upper": float(high)}
                    for name, (low, high, _) in COLUMNS.items()
                },
                "n": {"type": "integer", "lower": 0, "upper": 100},
            },
        }
    }
)
OPERATORS: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "add": Decimal.__add__,
    "sub": Decimal.__sub__,
    "mul": Decimal.__mul__,
}
SIGNS: dict[str, Callable[[Decimal, Decimal], bool]] = {
    "eq": Decimal.__eq__,
    "ne": Decimal.__ne__,
    "lt": Decimal.__lt__,
    "le": Decimal.__le__,
    "gt": Decimal.__gt__,
    "ge": Decimal.__ge__,
}


def drawn(chance: random.Random, low: str, high: str, places: int) -> Decimal:
    """A decimal between two, with so many places."""
    scale = 10**places
    return Decimal(chance.randint(int(Decimal(low) * scale), int(Decimal(high) * scale))).scaleb(-places)


def rows_of(chance: random.Random, count: int = 300) -> list[Row]:
    """People with a decimal in each column; of some, `p` is 200 times `n`."""
    rows = []
    for _ in range(count):
        row = {name: drawn(chance, *bounds) for name, bounds in COLUMNS.items()}
        row["n"] = Decimal(chance.randint(0, 100))
        rows.append(row | {"p": 200 * row["n"]} if chance.random() < 0.3 else row)
    return rows


def plan_of(document: Json) -> Plan:
    """The plan of a query with the noise of a count."""
    text = json.dumps({"version": 1, "select": [{"count": {}}], "noise": {"sigma": 10}} | document)
    return compile_query(parse_query(text.encode()), SCHEMA, capacity=10_000, budget_units=2**40)


def counted(plan: Plan, rows: list[Row]) -> list[int]:
    """The engine's count of each group, without noise."""
    memory = DatasetMemory(SCHEMA)
    codes = {}
    for name, column in SCHEMA.tables["people"].columns.items():
        coding = coding_of(column)
        codes[name] = np.array([coding.code_of(float(row[name])) for row in rows], dtype=coding.dtype)
    slots = np.arange(len(rows), dtype=np.int64)
    memory.add_individuals(slots, with_digests(codes, slots), np.full(len(rows), 2**40, dtype=np.int64))
    total = np.zeros(plan.dimension, dtype=np.int64)
    for block in map(as_list, contributions(plan, memory)):
        block.add_to(total, np.ones(block.touched.size, dtype=np.bool_))
    return [int(each) for each in total]


def binned(column: str, width: Decimal, rows: list[Row]) -> dict[str, int]:
    """The count of each bin, by its label."""
    low, high = (Decimal(bound) / width for bound in COLUMNS[column][:2])
    first, last = (int(low.to_integral_value(ROUND_FLOOR)), int(high.to_integral_value(ROUND_CEILING)))
    counts = dict.fromkeys(range(first, last), 0)
    for row in rows:
        counts[min(int((row[column] / width).to_integral_value(ROUND_FLOOR)), last - 1)] += 1
    ends = {number: "]" if number + 1 == last else ")" for number in counts}
    return {
        f"[{written(number * width)}, {written((number + 1) * width)}{ends[number]}": count
        for number, count in counts.items()
    }


def written(number: Decimal) -> str:
    """A number without zeros at its end."""
    return format(number.normalize() + 0, "f")


@pytest.mark.parametrize("width", ["0.1", "0.2", "0.05", "0.3", "0.7", "1.1"])
@pytest.mark.parametrize("column", COLUMNS)
def test_a_value_is_in_the_bin_of_its_decimal(column: str, width: str) -> None:
    """Values at edges too; the groups are those of the declared bounds, and their names are decimals."""
    if column == "p":
        width = str(Decimal(width) * 100)
    rows = rows_of(random.Random(f"{column} {width}"))
    plan = plan_of({"group_by": [{"bin": {"column": column, "width": float(width)}}]})
    labels = [str(label[column]) for label in plan.answered.labels()]

    assert dict(zip(labels, counted(plan, rows), strict=True)) == binned(column, Decimal(width), rows)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), places=st.integers(0, 6), bound=st.integers(1, 10**6))
def test_a_value_at_an_edge_begins_its_bin(data: st.DataObject, places: int, bound: int) -> None:
    """For all decimals of k places, widths of k places and bounds; the bin is that of decimal arithmetic."""
    unit = Decimal(1).scaleb(-places)
    width = data.draw(st.integers(1, bound * 10**places)) * unit
    width = max(width, bound / Decimal(500))
    width = width.quantize(unit) if width >= unit else unit
    value = min(data.draw(st.integers(0, 500)) * width, Decimal(bound))
    upper = float(bound)
    schema = Schema.model_validate(
        {
            "people": {
                "kind": "individuals",
                "key": "person_id",
                "columns": {"x": {"type": "real", "lower": 0, "upper": upper}},
            }
        }
    )
    document = {
        "version": 1,
        "select": [{"count": {}}],
        "noise": {"sigma": 10},
        "group_by": [{"bin": {"column": "x", "width": float(width)}}],
    }
    plan = compile_query(parse_query(json.dumps(document).encode()), schema, capacity=10, budget_units=2**40)
    code = coding_of(RealColumn(type="real", lower=0, upper=upper)).code_of(float(value))
    formula = plan.rows.columns[plan.rows.group_by[0]].formula
    thresholds = formula.thresholds  # type: ignore[union-attr]
    found = sum(threshold <= code for threshold in thresholds[:-1]) - 1

    assert plan.dimension == int((Decimal(bound) / width).to_integral_value(ROUND_CEILING))
    assert found == min(int(value // width), plan.dimension - 1)


# Comparisons


Node = Json | int | float


def value_of(node: Any, row: Row) -> Decimal:
    """The value of a row by decimal arithmetic; literals are the decimals that their text is."""
    if not isinstance(node, dict):
        return Decimal(repr(node))
    ((kind, body),) = node.items()
    if kind == "col":
        return row[body]
    if kind == "abs":
        return abs(value_of(body, row))
    if kind == "clip":
        low, high = (Decimal(repr(end)) for end in body[1:])
        return min(max(value_of(body[0], row), low), high)
    left, right = (value_of(part, row) for part in body)
    return OPERATORS[kind](left, right)


def literal_of(chance: random.Random) -> float | int:
    """A decimal of at most two places."""
    return chance.choice([2, 3, 0.1, 0.2, 0.3, 0.05, 1.1, 0.5, 7, 10, 0.07])


def tree(chance: random.Random) -> Json:
    """A calculated value: sums and differences of columns and of their multiples."""
    parts: list[Any] = []
    for _ in range(chance.randint(1, 3)):
        column = {"col": chance.choice(["t", "p", "b", "n"])}
        parts.append({"mul": [column, literal_of(chance)]} if chance.random() < 0.5 else column)
    made = parts[0] if "mul" in parts[0] else {"add": [parts[0], literal_of(chance)]}
    for part in parts[1:]:
        made = {chance.choice(["add", "sub"]): [made, part]}
    match chance.randint(0, 4):
        case 0:
            return {"abs": made}
        case 1:
            return {"clip": [{"mul": [made, 0.5]}, 0.3, 40.7]}
        case 2:
            return {"mul": [{"mul": [{"col": "b"}, {"col": "t"}]}, literal_of(chance)]}
        case _:
            return made


def condition(chance: random.Random, rows: list[Row]) -> tuple[Json, list[bool]]:
    """A condition whose literals are values that some rows have, and the rows for which it is true."""
    value = tree(chance)
    values = [value_of(value, row) for row in rows]
    literals = sorted(chance.sample(values, 20))
    kind = chance.choice([*SIGNS, "between", "in", "beside"])
    if kind == "between":
        low, high = literals[3], literals[16]
        return {"between": [value, float(low), float(high)]}, [low <= each <= high for each in values]
    if kind == "in":
        return {"in": [value, [float(each) for each in literals]]}, [each in literals for each in values]
    if kind == "beside":
        sign = chance.choice(list(SIGNS))
        sides = [{"mul": [{"col": "p"}, 0.1]}, {"add": [{"mul": [{"col": "n"}, 20.1]}, {"mul": [{"col": "n"}, -0.1]}]}]
        return {sign: sides}, [SIGNS[sign](*(value_of(side, row) for side in sides)) for row in rows]
    return {kind: [value, float(literals[10])]}, [SIGNS[kind](each, literals[10]) for each in values]


@pytest.mark.parametrize("seed", range(12))
def test_a_comparison_is_that_of_the_decimals(seed: int) -> None:
    """Ten conditions on sums, differences, products and clips, beside literals that equal some of them; and negated."""
    chance = random.Random(seed)
    rows = rows_of(chance)
    for where, wanted in [condition(chance, rows) for _ in range(10)]:
        assert counted(plan_of({"where": where}), rows) == [sum(wanted)], where
        assert counted(plan_of({"where": {"not": where}}), rows) == [len(rows) - sum(wanted)], where


def test_equal_decimals_are_equal_and_nothing_is_between() -> None:
    """`t * 2 + n * -0.2 - 1` beside 70.2, which every row's decimals make exactly."""
    rows = [
        {"t": Decimal("35.6") + Decimal(n) / 10, "p": Decimal(n) / 5, "b": Decimal(0), "n": Decimal(n)}
        for n in range(11)
    ]
    value = {"sub": [{"add": [{"mul": [{"col": "t"}, 2]}, {"mul": [{"col": "n"}, -0.2]}]}, 1]}
    counts = {
        sign: counted(plan_of({"where": {sign: [value, 70.2]}}), rows) for sign in ("lt", "eq", "gt", "le", "ge", "ne")
    }

    assert counts == {"lt": [0], "eq": [11], "gt": [0], "le": [11], "ge": [11], "ne": [0]}


def test_decimals_that_differ_are_told_apart() -> None:
    """By one in the last place; the bound on how near is equal is far below it."""
    rows = [
        {"t": Decimal("36.6"), "p": Decimal(cents) / 100, "b": Decimal(0), "n": Decimal(0)} for cents in range(1000)
    ]
    value = {"mul": [{"col": "p"}, 1.1]}
    for cents in (0, 1, 333, 999):
        literal = float(Decimal(cents) / 100 * Decimal("1.1"))
        assert counted(plan_of({"where": {"eq": [value, literal]}}), rows) == [1]
        assert counted(plan_of({"where": {"lt": [value, literal]}}), rows) == [cents]


def test_how_near_is_equal_follows_from_the_declared_bounds() -> None:
    """The predicate of a plan is a range, in which the code of an equal value may lie: a few steps of the column."""
    plan = plan_of({"where": {"eq": [{"add": [{"col": "p"}, 0.1]}, 0.3]}})
    (column,) = (each for each in plan.rows.columns.values() if each.declared is None)
    step = Fraction(2) ** column.coding.step_log2
    place = Fraction(3, 10) / step - column.coding.offset

    assert column.error < 2 * Fraction(2) ** coding_of(SCHEMA.tables["people"].columns["p"]).step_log2
    assert plan.rows.predicate == Within(
        column.name, ceil(place - column.error / step), floor(place + column.error / step)
    )
