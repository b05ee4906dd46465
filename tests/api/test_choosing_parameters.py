"""The page docs/choosing-parameters.md is right: its blocks run, and its tables are worked out again."""

import re
from decimal import Decimal
from typing import Any

import pytest

from service.accounting.accountings import GAUSSIAN
from service.core.charge import rho_of_units
from tests.api.documented import DOCS, Reader, blocks
from tests.api.world import World

PAGE = (DOCS / "choosing-parameters.md").read_text(encoding="utf-8")
PEOPLE = {660_000: 10_000, 6_600: 100}  # the truth of each table of clips, and its number of people


def tables() -> list[list[list[str]]]:
    """The cells of every table below its head, in order."""
    found = re.findall(r"^\|[- |]+\|\n((?:\|.*\|\n)+)", PAGE, re.MULTILINE)
    return [[[cell.strip() for cell in line.strip("|").split("|")] for line in rows.splitlines()] for rows in found]


def number(text: str) -> float:
    """A number with marks between thousands."""
    return float(text.replace(",", ""))


def agrees(shown: str, true: float) -> bool:
    """Tell whether a number is right to its last digit."""
    digits = len(shown.partition(".")[2])
    return f"{true:.{digits}f}" == shown.replace(",", "")


@pytest.fixture
def reader(world: World, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """A reader of the page."""
    return Reader(world=world, monkeypatch=monkeypatch)


def test_every_block_prints_what_the_page_shows(reader: Reader) -> None:
    """In order, with the Python client."""
    shown = [found for block in blocks(PAGE) if (found := reader.read(block)) is not None]
    assert len(shown) == PAGE.count("```python\n") == 8
    for said, true in shown:
        assert said == true


def test_the_budgets_are_those_of_the_guarantees() -> None:
    """And two sentences about them."""
    budgets = {}
    for epsilon, delta, rho, mu in tables()[0]:
        units = GAUSSIAN.budget_units(epsilon=Decimal(epsilon), delta=Decimal(delta))
        budgets[epsilon, delta] = float(rho_of_units(units))
        assert agrees(rho, budgets[epsilon, delta])
        assert agrees(mu, GAUSSIAN.mu_of_units(units))
    assert len(budgets) == 7
    for epsilon, twice in (("0.5", "1"), ("1", "2"), ("2", "4")):
        assert 3.4 < budgets[twice, "1e-6"] / budgets[epsilon, "1e-6"] < 4
    assert budgets["1", "1e-8"] / budgets["1", "1e-6"] == pytest.approx(2 / 3, abs=0.03)


def test_the_promises_for_more_records_are_right() -> None:
    """For k records mu is k times as large."""
    units = GAUSSIAN.budget_units(epsilon=Decimal(1), delta=Decimal("1e-6"))
    rows = tables()[1]
    assert len(rows) == 4
    for k, (_, epsilon) in enumerate(rows, start=1):
        assert agrees(epsilon, GAUSSIAN.epsilon_of_units(k * k * units, Decimal("1e-6")))


@pytest.mark.parametrize("place", [2, 3])
def test_bias_and_noise_of_clips_are_right(reader: Reader, place: int) -> None:
    """Nine in ten spend 40, one in ten spends 300; the noise is that of the page's preview."""
    for block in blocks(PAGE)[:2]:
        reader.read(block)
    analyst: Any = reader.names["analyst"]
    rows = tables()[place]
    truth = number(rows[0][1])
    people = PEOPLE[int(truth)]
    best = []
    for clip, counted, bias, noise, both in rows:
        true = people * (0.9 * min(40, number(clip)) + 0.1 * min(300, number(clip)))
        plan = analyst.queries.preview(
            dataset="shop", select=reader.names["sum_"]("spend"), l2_clip=number(clip), rho=0.0005
        )
        assert number(counted) == pytest.approx(true)
        assert number(bias) == pytest.approx(truth - true)
        assert agrees(noise, plan.half_width_95)
        assert number(both) == number(bias) + number(noise)
        best.append((number(both), number(clip)))
    assert min(best)[1] == (500 if people == 10_000 else 50)


def test_the_page_has_no_table_that_is_not_worked_out() -> None:
    """Four tables, and the tests above."""
    assert len(tables()) == 4
