"""The filter of a device: its account, its reports of pure noise, and an account that survives faults."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from math import ceil, inf, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from service.core.charge import UNITS_PER_RHO
from sparing_local.device import DIMENSION_MAX, AccountMismatch, LocalFilter
from tests.core.injected import seeded

CLIP, SIGMA = 1.0, 2.0


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The path of an account."""
    return tmp_path / "account.json"


def opened(file: Path, budget: str = "0.5", **more: Any) -> LocalFilter:
    """A device with seeded noise."""
    terms: dict[str, Any] = {"clip": CLIP, "sigma": SIGMA, "entropy": seeded(7), "budget": budget}
    return LocalFilter(file, **(terms | more))


def noise_of(file: Path, dimension: int) -> Any:
    """The noise in the first report of a device with seeded noise."""
    return opened(file.with_suffix(".blank")).report(np.zeros(dimension)).steps


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=5), st.sampled_from(["0.01", "0.125", "0.5"]))
def test_a_report_is_the_vector_within_the_clip_plus_noise(tmp_path: Path, vector: list[float], budget: str) -> None:
    """The charge is that of the integers that were added. When the budget has ended, a report is the noise alone."""
    file = tmp_path / f"{abs(hash((*vector, budget)))}.json"
    file.unlink(missing_ok=True)
    mine, blank = opened(file, budget), opened(file.with_suffix(".blank"), budget)
    limit, spent = int(Fraction(budget) * UNITS_PER_RHO), 0
    for _ in range(3):
        report = mine.report(vector)
        steps = report.steps - blank.report(np.zeros(len(vector))).steps
        norm = int(steps @ steps)
        charge = ceil(norm * UNITS_PER_RHO / (2 * Fraction(SIGMA / report.grid) ** 2))
        spent += charge
        assert mine.spent_units == spent <= limit
        assert norm <= (CLIP / report.grid) ** 2
        if norm > 0:
            scale = max(1, sqrt(sum(each**2 for each in vector)) / CLIP)
            assert steps * report.grid == pytest.approx(np.array(vector) / scale, abs=2.1 * report.grid)
    file.with_suffix(".blank").unlink()


def test_a_budget_pays_for_so_many_reports_and_then_for_none(file: Path) -> None:
    """A report costs 1/8 rho, so that four are paid for. What is left still pays for a shorter vector."""
    mine = opened(file, "0.5625")
    blank = opened(file.with_suffix(".blank"))
    sums = [int((mine.report([1.0]).steps - blank.report([0.0]).steps)[0]) for _ in range(6)]
    assert sums == [int(1 / mine.grid)] * 4 + [0] * 2
    assert mine.spent_units == UNITS_PER_RHO // 2
    assert (mine.report([0.5]).steps - blank.report([0.0]).steps).tolist() == [int(0.5 / mine.grid)]
    assert mine.spent_units == UNITS_PER_RHO // 2 + UNITS_PER_RHO // 32


def test_another_process_goes_on_with_the_account(file: Path) -> None:
    """The file has the charge before a report is returned."""
    opened(file).report([1.0])
    assert json.loads(file.read_text(encoding="ascii"))["spent_units"] == UNITS_PER_RHO // 8
    again = opened(file)
    again.report([1.0])
    assert again.spent_units == UNITS_PER_RHO // 4


def test_threads_spend_one_budget(file: Path) -> None:
    """Four of sixteen reports at once are paid for."""
    with ThreadPoolExecutor(16) as crowd:
        list(crowd.map(lambda number: opened(file, entropy=seeded(number)).report([1.0]), range(16)))
    assert opened(file).spent_units == UNITS_PER_RHO // 2


@pytest.mark.parametrize("fault", ["fsync", "replace"])
def test_a_report_that_cannot_be_charged_is_none(file: Path, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no report. The account is as before, or has the charge."""
    mine = opened(file)
    mine.report([1.0])

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(os if fault == "fsync" else Path, fault, fail)
        with pytest.raises(OSError, match="full"):
            mine.report([1.0])
    assert mine.spent_units in {UNITS_PER_RHO // 8, UNITS_PER_RHO // 4}
    mine.report([0.0])


def test_exhausted_and_blank_devices_write_as_much(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system calls, the words of entropy and the size of a report are the same."""
    seen: list[tuple[str, int]] = []
    fsync, entropy = os.fsync, seeded(3)

    def synced(descriptor: int) -> None:
        seen.append(("fsync", 0))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", synced)

    def counted(count: int) -> Any:
        seen.append(("words", count))
        return entropy(count)

    devices = {name: opened(file.with_name(name), entropy=counted) for name in ("rich", "spent", "blank")}
    for _ in range(5):
        devices["spent"].report([1.0, 0.0])
    traces = []
    for name, vector in (("rich", [1.0, 0.0]), ("spent", [1.0, 0.0]), ("blank", [0.0, 0.0]), ("rich", [9.0, 9.0])):
        seen.clear()
        report = devices[name].report(vector)
        traces.append((tuple(seen), report.steps.nbytes, report.grid))
    assert len(set(traces)) == 1


@pytest.mark.parametrize("vector", [[nan, 1.0], [inf], [-inf, 0.0]])
def test_numbers_that_are_not_finite_count_as_blank(file: Path, vector: list[float]) -> None:
    """Nothing is added and nothing is charged."""
    mine = opened(file)
    assert mine.report(vector).steps.tolist() == noise_of(file, len(vector)).tolist()
    assert mine.spent_units == 0


def test_a_vector_of_huge_numbers_keeps_its_direction(file: Path) -> None:
    """The vector is scaled to the clip, whatever its length."""
    steps = opened(file).report([3e300, -4e300]).steps - noise_of(file, 2)
    mine = opened(file)
    assert steps * mine.grid == pytest.approx([0.6, -0.8], abs=1e-5)


@pytest.mark.parametrize("vector", [[], [[1.0]], np.zeros(DIMENSION_MAX + 1)])
def test_what_is_no_vector_is_refused(file: Path, vector: Any) -> None:
    """It is refused before anything is charged."""
    mine = opened(file)
    with pytest.raises(ValueError, match="a vector is a row"):
        mine.report(vector)
    assert not file.exists()


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"budget_units": 5, "spent_units": 9}', '{"budget_units": "a", "spent_units": 0}']
)
def test_a_file_that_is_no_account_is_refused(file: Path, content: str) -> None:
    """The file is left as it is, and nothing is sent."""
    file.write_text(content, encoding="ascii")
    with pytest.raises(AccountMismatch):
        opened(file).report([1.0])
    assert file.read_text(encoding="ascii") == content


def test_another_budget_is_refused(file: Path) -> None:
    """A larger budget would change the promise for reports that were already sent."""
    opened(file).report([1.0])
    for budget in ("0.25", "1"):
        with pytest.raises(AccountMismatch, match="another budget"):
            opened(file, budget).report([1.0])


@pytest.mark.parametrize(
    "terms",
    [
        {"clip": 0.0},
        {"clip": inf},
        {"sigma": -1.0},
        {"sigma": nan},
        {"sigma": 1e-9},
        {"budget": "0"},
        {"budget": "3e6"},
    ],
)
def test_terms_without_a_meaning_are_refused(file: Path, terms: dict[str, Any]) -> None:
    """Examples are a budget of nothing, and noise smaller than the grid."""
    with pytest.raises(ValueError, match=r"must be|rho"):
        opened(file, **terms)


def test_a_large_sigma_has_a_coarser_grid(file: Path) -> None:
    """A coarser grid keeps the exact sampler within its range."""
    mine = LocalFilter(file, budget=Decimal(1), clip=1.0, sigma=1e6)
    assert 2**27 <= 1e6 / mine.grid <= 2**28


def test_reports_have_the_law_of_the_vector_plus_a_gaussian(file: Path) -> None:
    """Kolmogorov and Smirnov's test over 200,000 coordinates of one report would reject a sigma that is 3 % off."""
    vector = np.full(200_000, 0.002)
    values = opened(file, budget="1").report(vector).values
    assert stats.kstest(values, stats.norm(0.002, 2.0).cdf).pvalue > 1e-5
    assert stats.kstest(values, stats.norm(0.002, 2.06).cdf).pvalue < 1e-5
