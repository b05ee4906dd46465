"""Sums of reports, and their standard errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparing_local.aggregate import aggregate
from sparing_local.device import LocalFilter, LocalReport
from tests.core.injected import seeded


def report(*steps: int, grid: float = 0.5, sigma: float = 2.0) -> LocalReport:
    """A report with these steps."""
    return LocalReport(steps=np.array(steps, dtype=np.int64), grid=grid, sigma=sigma)


def test_sums_are_exact_and_variances_add_up() -> None:
    """The sums are in the unit of the vectors."""
    found = aggregate([report(1, 2), report(3, -5), report(2**40, 0), report(-(2**40), 7)])
    assert found.sums.tolist() == [2.0, 2.0]
    assert (found.reports, found.standard_error) == (4, 4.0)


@pytest.mark.parametrize("other", [report(1), report(1, 2, grid=0.25), report(1, 2, sigma=1.0)])
def test_reports_of_different_questions_are_refused(other: LocalReport) -> None:
    """The sum of such reports would mean nothing."""
    with pytest.raises(ValueError, match="different"):
        aggregate([report(1, 2), other])


def test_no_reports_are_refused() -> None:
    """The sum of no reports says nothing."""
    with pytest.raises(ValueError, match="no reports"):
        aggregate([])


def test_the_standard_error_is_that_of_devices(tmp_path: Path) -> None:
    """The mean square of the noise, over 300 sums of 100 devices, is within six of its own standard errors."""
    vector = np.zeros(300)
    vector[0] = 1.0
    terms: dict[str, Any] = {"budget": "1", "clip": 1.0, "sigma": 3.0}
    devices = [LocalFilter(tmp_path / f"{number}", **terms, entropy=seeded(number)) for number in range(100)]
    found = aggregate([device.report(vector) for device in devices])
    assert found.standard_error == 30.0
    squares = (found.sums[1:] / 30.0) ** 2
    assert abs(squares.mean() - 1) < 6 * np.sqrt(2 / squares.size)
    assert abs(found.sums[0] - 100) < 6 * 30.0
