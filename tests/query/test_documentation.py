"""The examples in docs/query-language.md are what they say: each is run."""

import json
import re
from itertools import pairwise
from math import erf, floor, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from service.accounting.accountings import GAUSSIAN
from service.accounting.monitor import monitor_of
from service.core.charge import rho_of_units
from service.engine.rows import RowView, TableRows
from service.engine.selection import selection
from service.query.columns import coding_of
from service.query.item_precision import by_item, refuse_uneven
from service.query.json_text import DEPTH_MAX
from service.query.language import Query
from service.query.parse import BODY_BYTES_MAX, parse_query
from service.query.plan import Plan, compile_query
from service.query.schema import BudgetColumn, CategoryColumn, RealColumn, Schema
from service.query.stated import shown_of
from service.query.stated_noise import Numbers, with_noise
from tests.query.samples import BUDGET_UNITS, CAPACITY, half_width_95, refused

PAGE = (Path(__file__).parents[2] / "docs" / "query-language.md").read_text(encoding="utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"^```json (\w+)\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
(SCHEMA,) = (Schema.model_validate(json.loads(text)) for kind, text in BLOCKS if kind == "schema")


def answered(wanted: str) -> list[Any]:
    """Each query that is followed by a block of that kind, with it."""
    return [
        pytest.param(text, json.loads(next_text), id=f"line {PAGE[: PAGE.index(text)].count(chr(10)) + 1}")
        for (kind, text), (next_kind, next_text) in pairwise(BLOCKS)
        if kind == "query" and next_kind == wanted
    ]


MONITOR = monitor_of({"rho": "0.001", "ticks": 1024, "share": 0.1}, budget_units=BUDGET_UNITS)
PEOPLE = SCHEMA.tables["people"].columns


def compiled(text: str) -> Plan:
    """The plan of an example, as a request is compiled."""
    query = by_item(parse_query(text.encode()))
    terms = {"capacity": CAPACITY, "budget_units": BUDGET_UNITS}
    plan = compile_query(query, SCHEMA, **terms, pricing=GAUSSIAN, monitor=MONITOR)
    refuse_uneven(query, plan.scale.bounds or (1.0,))
    return plan


def shown(plan: Plan) -> dict[str, Any]:
    """The facts of a plan that the page shows, by their names in the interface."""
    return {
        "axes": with_noise(shown_of(plan).axes, plan.noise),
        "grid": as_json(plan.noise.grid),
        "half_width_95": as_json(plan.noise.half_width_95),
        "l2_clip": as_json(plan.scale.bounds if plan.scale.sigmas else plan.scale.l2_charged),
        "sigma": as_json(plan.noise.sigma),
        "worst_case_rho": str(rho_of_units(plan.scale.worst_case_units)),
        "canonical": plan.canonical.decode(),
        "dimension": plan.dimension,
        "items": [item.stated() for item in plan.layout.estimated],
        "labels": plan.answered.labels(),
        "query_hash": plan.query_hash,
    }


def as_json(numbers: Numbers) -> float | list[float]:
    """One number, or a list of them."""
    return list(numbers) if isinstance(numbers, tuple) else numbers


def codes(row: dict[str, Any]) -> dict[str, int]:
    """A row of people as the engine holds it; what is not given is NULL."""
    held = {}
    for name, column in SCHEMA.tables["people"].columns.items():
        if isinstance(column, BudgetColumn):
            continue
        coding, value = coding_of(column), row.get(name)
        if value is None:
            held[name] = coding.null_code
        elif isinstance(column, CategoryColumn):
            held[name] = list(column.domain).index(value)
        else:
            held[name] = coding.code_of(value) if isinstance(column, RealColumn) else value - coding.offset
    return held


@pytest.mark.parametrize(("text", "expected"), answered("plan"))
def test_an_example_comes_to_what_the_page_says(text: str, expected: dict[str, Any]) -> None:
    """Every number, label and hash that is shown."""
    plan = shown(compiled(text))

    assert {name: plan[name] for name in expected} == expected


@pytest.mark.parametrize(("text", "expected"), answered("problem"))
def test_an_example_is_refused_as_the_page_says(text: str, expected: dict[str, str]) -> None:
    """With the field and the words."""
    field, message = refused(compiled, text)

    assert {"field": field, "message": message} == expected


@pytest.mark.parametrize("example", [json.loads(text) for kind, text in BLOCKS if kind == "selection"])
def test_an_example_selects_what_the_page_says(example: dict[str, Any]) -> None:
    """Row by row."""
    asked = {"version": 1, "select": [{"count": {}}], "where": example["where"], "noise": {"sigma": 1}}
    plan = compiled(json.dumps(asked))

    select = selection(plan.rows.predicate, {name: column.coding for name, column in plan.rows.columns.items()})
    rows = [codes(row) for row in example["rows"]]
    stored = {name: np.array([row[name] for row in rows], coding_of(PEOPLE[name]).dtype) for name in rows[0]}
    selected = np.empty(len(rows), dtype=np.bool_)
    select(RowView(TableRows(stored=stored, columns=plan.rows.columns), slice(0, len(rows))), selected)
    assert selected.tolist() == example["selected"]


def test_no_block_of_the_page_goes_unread() -> None:
    """Every query is followed by what it comes to, the first but for a sentence."""
    kinds = [kind for kind, _ in BLOCKS]

    assert set(kinds) == {"schema", "query", "plan", "problem", "selection"}
    assert kinds.count("query") == kinds.count("plan") + kinds.count("problem")
    assert all(later in {"plan", "problem"} for kind, later in pairwise(kinds) if kind == "query")
    assert PAGE.count("```json ") == len(BLOCKS)


WIDTHS = re.findall(r"^\| ([\d.]+) \| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)


def test_the_table_of_half_widths_is_right() -> None:
    """Every number of its five rows, to the digits that are shown: what is held, and by the normal quantile alone."""
    for sigma, steps, probability, before in WIDTHS:

        def within(reach: int, scale: float = float(sigma)) -> float:
            return erf((reach + 0.5) / scale / sqrt(2))

        assert half_width_95(sigma=float(sigma), grid_log2=0) == int(steps)
        assert f"{within(int(steps)):.{len(probability) - 2}f}" == probability
        assert f"{within(floor(1.959963984540054 * float(sigma))):.{len(before) - 2}f}" == before
    assert len(WIDTHS) == 5


MAXIMA = re.findall(r"^\| ([\d,]+) \| ([\d.]+) σ \|$", PAGE, re.MULTILINE)


def test_the_table_of_noisy_maxima_is_right() -> None:
    """The mean of the largest of so many standard normal numbers: the part of its distribution above zero."""
    grid = np.linspace(-10, 10, 200_001)
    for size, sigmas in MAXIMA:
        above = -np.expm1(int(size.replace(",", "")) * norm.logcdf(grid))
        assert f"{(above[grid >= 0].sum() - (1 - above[grid < 0]).sum()) * (grid[1] - grid[0]):.2f}" == sigmas
    assert len(MAXIMA) == 4


def test_the_norm_of_a_noisy_sum_is_as_much_worse_as_the_page_says() -> None:
    """By 400 draws: sqrt(1 + d sigma^2 / (2 |S|^2)) is 2.45, and the draws come to that."""
    size, sigma, length = 100_000, 10.0, 1000.0
    rng, total = np.random.default_rng(5), np.full(size, length / sqrt(size))
    squares = [np.sum((total + sigma * rng.standard_normal(size)) ** 2) - size * sigma**2 for _ in range(400)]
    worse = float(np.std(np.sqrt(squares))) / sigma
    assert f"{sqrt(1 + size * sigma**2 / (2 * length**2)):.1f} times for 100,000" in PAGE
    assert worse == pytest.approx(2.45, rel=0.12)


def test_the_page_names_every_field_and_limit() -> None:
    """A field that is added to the language is added to the page."""
    for name, field in Query.model_fields.items():
        assert f"| `{field.alias or name}` |" in PAGE
    assert f"{BODY_BYTES_MAX // 1024} KiB" in PAGE
    assert f"more than {DEPTH_MAX} deep" in PAGE
