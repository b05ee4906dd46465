"""Filtered descent on samples, on generated digits, and the numbers that the page tells of the digits themselves."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sparing.research import RenyiFilter, descend
from sparing_papers.figure import Request, Table
from sparing_papers.made_up import made_up_digits
from sparing_papers.poisson_filters import FILTERS, RATES, STEPS, compute_filters, settings_of

DIGITS = made_up_digits(1, individuals=600, tests=200)
ROOT = Path(__file__).parents[3]
WORDS = {"order": "order 18", "gdp": "Gaussian DP"}


@pytest.fixture(scope="module")
def table() -> Table:
    """The figure's numbers."""
    return compute_filters(Request(seed=1, quick=True, digits=DIGITS))


def test_the_order_is_that_of_the_most_certified_steps() -> None:
    """The best of all whole orders up to 40, at either clip; Gaussian DP certifies a fifteenth of the steps."""
    limit = FILTERS["order"]
    assert isinstance(limit, RenyiFilter)
    steps = {order: replace(limit, order=order).certified_steps(settings_of(0.5)) for order in range(12, 41)}

    assert steps[int(limit.order)] == max(steps.values())
    found = [{name: each.certified_steps(settings_of(clip)) for name, each in FILTERS.items()} for clip in RATES]
    assert found == [{"order": 59, "gdp": 4}] * 2


def test_without_a_filter_a_descent_is_the_beginning_of_the_filtered_one() -> None:
    """Up to the certified steps, bit by bit, for either filter."""
    for limit in FILTERS.values():
        certified = limit.certified_steps(settings_of(0.5))
        short, long = settings_of(0.5, certified), settings_of(0.5, certified + 1)
        plain = descend(DIGITS.train, DIGITS.train_labels, short, seed=4)
        filtered = descend(DIGITS.train, DIGITS.train_labels, short, seed=4, limit=limit)
        longer = descend(DIGITS.train, DIGITS.train_labels, long, seed=4, limit=limit)

        assert plain.parameters.tobytes() == filtered.parameters.tobytes()
        assert filtered.active.tolist() == [600] * certified
        assert longer.active.tolist()[:-1] == [600] * certified


def test_individuals_leave_after_the_certified_steps(table: Table) -> None:
    """Those of Gaussian DP first; at the long clip fewer leave the other filter."""
    left = {
        (name, clip): dict(zip(*table.columns("active", name, clip), strict=True)) for name in FILTERS for clip in RATES
    }

    for (name, _), active in left.items():
        certified = FILTERS[name].certified_steps(settings_of(0.5))
        assert {number for step, number in active.items() if step <= certified} == {600}
        assert active[STEPS] < 600
    for clip in RATES:
        assert left["gdp", clip][STEPS] < left["order", clip][STEPS]
    assert left["order", 5.2][STEPS] > left["order", 0.5][STEPS]


def test_an_accuracy_is_that_of_the_parameters(table: Table) -> None:
    """The run that the seeds make has it at its last step and where it would end without a filter."""
    drawn = np.sort(np.random.default_rng([1, 63]).choice(600, 600, replace=False))
    told: dict[int, float] = {}

    def look(step: int, parameters: np.ndarray) -> None:
        told[step] = 100 * float(np.mean((DIGITS.test @ parameters.T).argmax(axis=1) == DIGITS.test_labels))

    settings = settings_of(5.2)
    data = DIGITS.train[drawn], DIGITS.train_labels[drawn]
    descend(*data, settings, seed=[1, 64, 52], limit=FILTERS["order"], after_step=look)
    shown = dict(zip(*table.columns("accuracy", "order", 5.2), strict=True))

    assert [shown[step] for step in (5, 59, STEPS)] == [told[step] for step in (5, 59, STEPS)]
    assert table.series("certified", "order", 5.2) == [(59.0, told[59])]


def test_the_page_has_the_numbers_of_the_figure() -> None:
    """Those that `make figures` made of MNIST, which are kept beside this test."""
    with (Path(__file__).parent / "poisson-filters.csv").open(encoding="utf-8", newline="") as opened:
        found = {
            (curve, name, float(clip), int(step)): float(value)
            for curve, name, clip, step, value in list(csv.reader(opened))[1:]
        }
    rows = []
    for name, clip, steps in [key[1:] for key in found if key[0] == "certified"]:
        values = [found["accuracy", name, clip, step] for step in (steps, 120, STEPS)]
        active = [found["active", name, clip, step] for step in (60, 120, STEPS)]
        begin = f"{clip} | {WORDS[name]} | {steps}"
        cells = [begin, *(f"{each:.2f} %" for each in values), *(f"{each:,.0f}" for each in active)]
        rows.append(f"| {' | '.join(cells)} |")
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^\| clip \| filter \|.*\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE)

    assert shown.splitlines() == rows
