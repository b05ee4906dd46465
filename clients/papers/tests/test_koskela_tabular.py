"""Figures 2 and 6 to 10 of Koskela et al. on the table, whole, and the numbers of docs/papers.md on them."""

import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from service.accounting.accountings import GAUSSIAN
from sparing_papers.__main__ import SEED
from sparing_papers.descent import LOGISTIC, fit
from sparing_papers.figure import Request
from sparing_papers.koskela_descent import (
    CERTIFIED,
    EPSILON,
    FACTORS,
    STEPS,
    TABULAR,
    compute_curves,
    compute_figure_2,
    compute_histograms,
    descent,
)
from sparing_papers.koskela_tabular import changes, choose
from sparing_papers.made_up import made_up_digits
from sparing_papers.tabular import BRACKETS

PAGE = (Path(__file__).parents[3] / "docs" / "papers.md").read_text(encoding="utf-8")
REQUEST = Request(seed=SEED, quick=True, digits=made_up_digits(1, individuals=20, tests=20))
DATA = TABULAR.data(REQUEST)
CLIPS = dict(zip(("half", "chosen", "twice", "five times"), FACTORS, strict=True))


def cells(first: str) -> list[float]:
    """The numbers of the page's row that begins with this cell; an uncertainty is a number of its own."""
    (line,) = re.findall(rf"^\| {re.escape(first)} \|(.+)\|$", PAGE, re.MULTILINE)
    return [float(each.replace(",", "")) for each in re.findall(r"[-+]?[\d,]*\.?\d+", line)]


def test_areas_are_those_of_the_page() -> None:
    """Figures 6, 9 and 10, to the last digit stated or one beside it; all are active for fifty steps."""
    shown = {name: (EPSILON, factor) for name, factor in CLIPS.items()}
    shown |= {f"chosen, ε = {epsilon}": (epsilon, 1.0) for epsilon in ("0.5", "10")}
    for name, (epsilon, factor) in shown.items():
        table = compute_curves(TABULAR, [(epsilon, factor)], REQUEST)
        areas = {row[0]: row[1] for row in table.series("auc", factor)}
        active = [count for _, count in table.series("active", factor)]
        stated = cells(name)

        assert [areas[CERTIFIED], areas[STEPS]] == pytest.approx(stated[:2], abs=1.5e-4), name
        assert [active[CERTIFIED], active[-1]] == pytest.approx(stated[-2:], abs=2), name
        assert set(active[:CERTIFIED]) == {len(DATA.train)}


def test_groups_of_smaller_charges_have_smaller_losses() -> None:
    """Figure 2: the three least charged brackets have the least losses, in training all in order; as on the page."""
    table = compute_figure_2(TABULAR, REQUEST)
    found = {}
    for name in BRACKETS:
        by_step = {row[0]: row[1:] for row in table.series(name)}
        found[name] = [by_step[step][place] for place in range(3) for step in (CERTIFIED, STEPS)]
        stated = cells(name)
        assert found[name][:4] == pytest.approx(stated[:4], abs=1.5e-3), name
        assert found[name][4:] == pytest.approx(stated[4:], abs=1.5e-4), name
        rho = [row[3] for row in table.series(name)]
        assert 0 == rho[0] < rho[-1]
        assert rho == sorted(rho)
    rise = {name: after - before for name, (before, after, *_) in found.items()}
    charged = sorted(BRACKETS, key=lambda name: found[name][4])

    assert charged == list(BRACKETS)
    assert sorted(BRACKETS, key=lambda name: found[name][0])[:3] == charged[:3]
    assert sorted(BRACKETS, key=lambda name: found[name][2]) == charged
    assert min(rise, key=rise.__getitem__) == charged[0]
    assert min(rise.values()) > 0
    apart = [max(each) - min(each) for each in zip(*found.values(), strict=True)]
    assert apart[1] > apart[0]
    assert apart[3] <= apart[2]


def test_medians_are_those_of_the_page() -> None:
    """Figures 7 and 8: half of the individual epsilons are below the first numbers, all below the second."""
    (words,) = re.findall(
        r"^Half of the individual epsilons are below (.+); the largest are (.+)\.$", PAGE, re.MULTILINE
    )
    medians, largest = ([float(each) for each in re.findall(r"\d\.\d+", part)] for part in words)
    table = compute_histograms(TABULAR, REQUEST)
    for factor, median, most in zip(FACTORS[1:], medians, largest, strict=True):
        settings = descent(TABULAR, EPSILON, factor)
        seed = [SEED, TABULAR.seed, 275, round(100 * factor)]
        spent = fit(DATA, settings, seed, loss=LOGISTIC, kept=[CERTIFIED]).spent[CERTIFIED]
        rho = np.quantile(spent, [0.5, 1]) / (2 * settings.noise**2)
        own = [GAUSSIAN.epsilon_of_units(int(each * 2**40), Decimal("1e-5")) for each in rho]

        assert own == pytest.approx([median, most], abs=6e-3)
        edges, shares = table.columns(factor)
        assert sum(shares) == pytest.approx(1)
        assert 0.5 - max(shares) < sum(s for e, s in zip(edges, shares, strict=True) if e <= own[0]) <= 0.5
    assert "here 0.1 % are in the last bar" in PAGE
    assert table.columns(1.0)[1][-1] == pytest.approx(0.001, abs=5e-4)


def test_those_who_leave_have_an_account() -> None:
    """So that later steps forget accounts: their number, and the mean predictions, are those of the page."""
    found = {}
    for factor in (0.5, 1.0):
        settings, seed = descent(TABULAR, EPSILON, factor), [SEED, TABULAR.seed, 275, round(100 * factor)]
        run = fit(DATA, settings, seed, loss=LOGISTIC, kept=[CERTIFIED])
        is_exhausted = run.spent[STEPS] >= settings.budget * (1 - 1e-9)
        means = [100 / (1 + np.exp(-DATA.test @ run.parameters[step][0])) for step in (CERTIFIED, STEPS)]
        with_account = 100 * DATA.train_labels[is_exhausted].mean()
        found[factor] = [int(is_exhausted.sum()), with_account, *(float(each.mean()) for each in means)]
    (stated,) = re.findall(
        r"chosen clip (\d+) are .* and (\d+) % .* from ([\d.]+) to ([\d.]+) %, and from ([\d.]+) to ([\d.]+) %", PAGE
    )
    numbers = [float(each) for each in stated]

    assert found[1.0][0] == pytest.approx(numbers[0], abs=2)
    assert found[1.0][1] == pytest.approx(numbers[1], abs=0.7)
    assert [*found[1.0][2:], *found[0.5][2:]] == pytest.approx(numbers[2:], abs=0.15)


def test_the_filter_gains_where_the_clip_is_too_large() -> None:
    """Twenty noises: beyond three standard errors at twice and five times the clip; it loses at the chosen one."""
    found = changes(DATA, 20)
    for name, factor in CLIPS.items():
        mean, error = found[factor]
        assert [mean, error] == pytest.approx(cells(name)[2:4], abs=1.5e-4), name
        assert abs(mean) > 3 * error
        assert (mean > 0) == (factor > 1)


def test_the_settings_are_the_best_of_those_kept_out() -> None:
    """The best of twenty pairs; those at the chosen rate times clip are as near each other as the page says."""
    found = choose(DATA)
    best = max(found, key=found.__getitem__)

    assert len(found) == 20
    assert best == (TABULAR.clip, TABULAR.reach)
    assert found[best] - min(area for (_, reach), area in found.items() if reach == TABULAR.reach) < 0.006
    assert f"A clip of {TABULAR.clip:g} and a rate of {TABULAR.reach / TABULAR.clip:g} were the best of twenty" in PAGE
    assert "were within 0.006 of each other" in PAGE


def test_the_choice_does_not_look_at_the_test_set() -> None:
    """Other test labels change nothing, other training labels do."""
    blind = replace(DATA, test=DATA.test[:1], test_labels=1 - DATA.test_labels[:1])
    other = replace(DATA, train_labels=1 - DATA.train_labels)
    first, second, third = (choose(each, clips=[1.0], reaches=[16.0], runs=1) for each in (DATA, blind, other))

    assert first == second
    assert first != third


def test_equal_seeds_give_equal_tables() -> None:
    """Bit by bit; another seed divides and draws otherwise."""
    runs = [(EPSILON, 1.0)]
    first, again = (compute_curves(TABULAR, runs, REQUEST).rows for _ in range(2))

    assert first == again
    assert first != compute_curves(TABULAR, runs, replace(REQUEST, seed=1)).rows


def test_the_page_counts_the_people() -> None:
    """Individuals, test set, and those with an account."""
    assert f"{len(DATA.train):,} of them are the individuals, {len(DATA.test):,} the test set" in PAGE
    labels = np.concatenate([DATA.train_labels, DATA.test_labels])
    assert f"holds {labels.size:,} people" in PAGE
    assert f"retirement account: {100 * labels.mean():.0f} % do" in PAGE
