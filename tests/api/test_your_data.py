"""The page docs/your-data.md is right: its blocks run in order, and what it says of costs is worked out again."""

import json
import re
from typing import Any

import pytest

from service.query.cost import Speed, cost_of
from service.query.parse import parse_query
from service.query.plan import compile_query
from service.query.schema import ROWS_FOR_EACH, EventsTable, Schema
from service.workflows.datasets import CAPACITY_DEFAULT
from tests.api.documented import DOCS, Reader, blocks
from tests.api.world import World

PAGE = (DOCS / "your-data.md").read_text(encoding="utf-8")
REGISTRATION: dict[str, Any] = next(json.loads(each.text) for each in blocks(PAGE) if each.words == "registration")
COSTS = re.findall(r"^\| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)


def test_every_block_comes_to_what_the_page_shows(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registration, the uploads in order, their reports and refusals, the client's calls, and the commands."""
    reader = Reader(world=world, monkeypatch=monkeypatch)
    shown = [(block, found) for block in blocks(PAGE) if (found := reader.read(block)) is not None]
    assert len(shown) == 17
    for block, (said, true) in shown:
        assert said == true, f"line {block.line}"
    assert reader.warnings == []


@pytest.mark.parametrize(("capacity", "people_ms", "people_mib", "visits_ms", "visits_mib"), COSTS)
def test_the_costs_of_a_capacity_are_right(
    capacity: str, people_ms: str, people_mib: str, visits_ms: str, visits_mib: str
) -> None:
    """Time and memory of a count, at the speeds that are assumed without a calibration."""
    tables = {name: dict(table) for name, table in REGISTRATION["tables"].items()}
    del tables["visits"]["rows_capacity"]
    schema, bound = Schema.model_validate(tables), int(capacity.replace(",", ""))
    shown = []
    for table in ("people", "visits"):
        query = {"version": 1, "select": [{"count": {}}], "from": table, "noise": {"sigma": 20}}
        body = json.dumps(query | {"per_individual": {"l2_clip": 1}}).encode()
        plan = compile_query(parse_query(body), schema, capacity=bound, budget_units=2**40)
        cost = cost_of(plan, schema.tables[table], capacity=bound, speed=Speed())
        shown += [f"{cost.time_ns / 1e6:.1f}", f"{cost.memory_bytes / 2**20:.1f}"]
    assert shown == [people_ms, people_mib, visits_ms, visits_mib]


def test_the_table_of_costs_is_read() -> None:
    """All four rows of it."""
    assert len(COSTS) == 4


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("capacity", "1,048,576 if left out"),
        ("rows_per_individual", "4,096 if left out"),
        ("rows_capacity", "left out, it is 32 for each individual of the capacity"),
    ],
)
def test_the_defaults_are_those_of_the_service(field: str, said: str) -> None:
    """The page has the numbers of the code."""
    default = {
        "capacity": CAPACITY_DEFAULT,
        "rows_per_individual": EventsTable.model_fields["rows_per_individual"].default,
        "rows_capacity": ROWS_FOR_EACH,
    }[field]
    assert said in PAGE
    assert f"{default:,}" in said
