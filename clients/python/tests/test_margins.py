"""Consistent tables, against least squares with dense matrices and against simulated answers."""

import functools
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from clients.python.tests.released import Numbers, in_groups, released, standard_error
from sparing import Answer, ConsistentTables, consistent_tables

VALUES: dict[str, list[object]] = {"country": ["NO", "SE", "DK"], "member": [False, True], "year": [2024, 2025]}
Table = tuple[str, ...]


def cells_of(columns: Sequence[str]) -> list[tuple[object, ...]]:
    """The groups by some columns."""
    return list(product(*(VALUES[column] for column in columns)))


def design(columns: Table, whole: Table) -> Numbers:
    """A row for each group by some columns, and a column for each cell of the whole table."""
    places = [whole.index(column) for column in columns]
    return np.array(
        [[all(cell[at] == value for at, value in zip(places, group, strict=True)) for cell in cells_of(whole)]
         for group in cells_of(columns)],
        dtype=np.float64,
    )  # fmt: skip


def table(columns: Table, numbers: Any, **more: Any) -> Answer:
    """An answer by some columns."""
    labels = [dict(zip(columns, cell, strict=True)) | {"select": "count"} for cell in cells_of(columns)]
    return released(numbers, labels, **more)


TABLES = st.lists(st.permutations(list(VALUES)).flatmap(
    lambda columns: st.integers(0, 3).map(lambda size: tuple(columns[:size]))
), min_size=1, max_size=5)  # fmt: skip


@given(TABLES, st.integers(0, 2**32 - 1))
def test_consistent_tables_are_least_squares(tables: list[Table], seed: int) -> None:
    """Values and standard errors, for any tables and sigmas, in the order of the answers."""
    whole = tuple(VALUES)
    rng = np.random.default_rng(seed)
    sigmas = rng.uniform(0.5, 4, len(tables))
    answers = [
        table(columns, rng.normal(50, 20, len(cells_of(columns))), sigma=float(sigma), grid=0.0)
        for columns, sigma in zip(tables, sigmas, strict=True)
    ]
    rows = [design(columns, whole) for columns in tables]
    scaled = np.vstack([each / sigma for each, sigma in zip(rows, sigmas, strict=True)])
    seen = np.concatenate([np.array(answer.values) / sigma for answer, sigma in zip(answers, sigmas, strict=True)])
    covariances = np.linalg.pinv(scaled.T @ scaled, hermitian=True)
    cells = covariances @ scaled.T @ seen
    found = consistent_tables(answers)

    for each, estimates in zip(rows, found.tables, strict=True):
        assert [estimate.value for estimate in estimates] == pytest.approx(list(each @ cells), rel=1e-8, abs=1e-6)
        expected = np.sqrt(np.diag(each @ covariances @ each.T))
        assert [estimate.standard_error for estimate in estimates] == pytest.approx(list(expected), rel=1e-6)
    degrees = len(seen) - np.linalg.matrix_rank(scaled)
    misfit = float(np.sum((seen - scaled @ cells) ** 2))
    if degrees:
        assert found.misfit_p == pytest.approx(stats.chi2.sf(misfit, degrees), abs=1e-6)
    else:
        assert found.misfit_p == pytest.approx(1)


@given(TABLES)
def test_parts_add_up_to_their_totals(tables: list[Table]) -> None:
    """Every table to every other one with fewer of its columns."""
    rng = np.random.default_rng(4)
    found = consistent_tables([table(columns, rng.normal(0, 9, len(cells_of(columns)))) for columns in tables])
    totals: dict[frozenset[tuple[str, object]], float] = {}
    for columns, estimates in zip(tables, found.tables, strict=True):
        for size in range(len(columns) + 1):
            for estimate in estimates if size == len(columns) else ():
                key = frozenset((name, value) for name, value in estimate.label.items() if name != "select")
                assert estimate.value == pytest.approx(totals.setdefault(key, estimate.value), abs=1e-6)
    for columns, estimates in zip(tables, found.tables, strict=True):
        for key, total in totals.items():
            if {name for name, _ in key} <= set(columns):
                parts = [each.value for each in estimates if key <= each.label.items()]
                assert sum(parts) == pytest.approx(total, abs=1e-6)


@functools.cache
def drawn(missing: float = 0.0, *, draws: int = 1000) -> list[ConsistentTables]:
    """A total, the countries and a cross table, with noise; some rows of the total may be missing in the others."""
    rng = np.random.default_rng(12)
    counted = np.array([[300.0, 200.0], [500.0, 100.0], [50.0, 10.0]])
    found = []
    for _ in range(draws):
        total = table((), [counted.sum() + missing + rng.normal(0, 5)], sigma=5.0)
        countries = table(("country",), counted.sum(axis=1) + rng.normal(0, 10, 3), sigma=10.0)
        cross = table(("member", "country"), (counted.T + rng.normal(0, 20, (2, 3))).ravel(), sigma=20.0)
        found.append(consistent_tables([cross, total, countries]))
    return found


def test_estimates_are_unbiased_and_as_precise_as_they_say() -> None:
    """Each is more precise than its own answer, and intervals hold as often as they say."""
    found = drawn()
    counted = [300, 500, 50, 200, 100, 10, 1160, 500, 600, 60]
    sigmas = [20.0] * 6 + [5.0] + [10.0] * 3
    for place, (truth, sigma) in enumerate(zip(counted, sigmas, strict=True)):
        estimates = [[each for part in tables.tables for each in part][place] for tables in found]
        values, stated = np.array([each.value for each in estimates]), estimates[0].standard_error
        assert stated < 0.99 * sigma
        assert np.mean(values) == pytest.approx(truth, abs=4 * stated / np.sqrt(len(found)))
        assert np.std(values) == pytest.approx(stated, rel=4 / np.sqrt(2 * len(found)))
        covered = np.mean([truth in each.interval(0.9) for each in estimates])
        assert covered == pytest.approx(0.9, abs=3.5 * standard_error(0.9, len(found)))


def test_a_contradiction_is_noticed() -> None:
    """The p of tables that add up is uniform; 60 rows without a country, three deviations, make it small."""
    fitting, contradicting = ([each.misfit_p for each in drawn(missing)] for missing in (0.0, 60.0))

    assert stats.kstest(fitting, "uniform").pvalue > 1e-3
    assert stats.kstest(contradicting, "uniform").pvalue < 1e-12
    assert np.median(contradicting) < 0.05


def test_a_total_and_its_parts_by_hand() -> None:
    """Parts 1 and 3 of a whole 10, all of sigma 1: two thirds of the missing 6 are shared out to the parts."""
    found = consistent_tables([in_groups([1.0, 3.0], grid=0.0), released([10.0], [{"select": "count"}], grid=0.0)])
    parts, (total,) = found.tables

    assert [each.value for each in parts] == pytest.approx([3, 5])
    assert total.value == pytest.approx(8)
    assert [each.standard_error**2 for each in (*parts, total)] == pytest.approx([2 / 3] * 3)
    assert found.misfit_p == pytest.approx(stats.chi2.sf(12, 1))
    assert parts[1].label == {"group": 1, "select": "count"}


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([], "tables must not be empty"),
        ([in_groups([1.0]), in_groups([1.0], "sum(x)")], r"tables\[1\] has the item sum\(x\), and tables\[0\] count"),
        ([in_groups([1.0, 2.0]), in_groups([1.0])], r"tables\[1\] has other values of group than a table before it"),
        ([released([1.0, 2.0], [{"a": 1, "b": 1, "select": "count"}, {"a": 2, "b": 2, "select": "count"}])],
         r"tables\[0\] has not a number for each combination of a, b"),
        ([in_groups([1.0]), in_groups([1.0], epoch=3)], r"tables\[1\] is of epoch 3"),
    ],
)  # fmt: skip
def test_tables_that_do_not_fit_are_refused(tables: list[Answer], message: str) -> None:
    """The difference and its place are named."""
    with pytest.raises(ValueError, match=message):
        consistent_tables(tables)


def test_a_histogram_is_a_table_of_counts() -> None:
    """It goes with counts by the same column."""
    labels = [{"select": "histogram(group)", "group": place} for place in range(2)]
    (first, _), (second, _) = consistent_tables([released([4.0, 5.0], labels), in_groups([6.0, 5.0])]).tables

    assert first.value == second.value == pytest.approx(5)
