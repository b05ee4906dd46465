"""Half widths computed by an analyst."""

import math

import pytest

from sparing import half_width


@pytest.mark.parametrize(
    ("sigma", "grid", "confidence", "width"),
    [
        (0.3, 1, 0.9, 0),
        (0.3, 1, 0.95, 1),
        (0.5, 1, 0.95, 1),
        (1, 1, 0.95, 2),
        (3, 1, 0.95, 6),
        (20, 1, 0.95, 39),
        (20, 1, 0.99, 52),
        (10, 0.5, 0.95, 19.5),
    ],
)
def test_a_half_width_is_whole_steps_of_the_grid(sigma: float, grid: float, confidence: float, width: float) -> None:
    """The least one that holds enough of the rounded noise; one step less does not."""
    assert half_width(sigma=sigma, grid=grid, confidence=confidence) == width
    assert math.erf((width + grid / 2) / sigma / math.sqrt(2)) >= confidence
    assert width == 0 or math.erf((width - grid / 2) / sigma / math.sqrt(2)) < confidence


def test_the_confidence_is_95_per_cent_unless_another_is_given() -> None:
    """As in `half_width_95`."""
    assert half_width(sigma=20, grid=1) == 39


@pytest.mark.parametrize(
    ("sigma", "grid", "confidence"),
    [(0, 1, 0.9), (math.inf, 1, 0.9), (1, 0, 0.9), (1, math.nan, 0.9), (1, 1, 0), (1, 1, 1), (1, 1, math.nan)],
)
def test_mistakes_are_named(sigma: float, grid: float, confidence: float) -> None:
    """Invalid arguments raise errors instead of returning a number."""
    with pytest.raises(ValueError, match="must be"):
        half_width(sigma=sigma, grid=grid, confidence=confidence)
