"""The noise that an answer states, and its numbers in query units, of one grid and of each item."""

from typing import Any

import numpy as np
import pytest

from service.core.laws import Gaussian
from service.query.stated_noise import in_query_units, packed, stated_noise, unpacked, with_noise
from tests.query.samples import half_width_95

AXES: list[dict[str, Any]] = [
    {"column": "country", "size": 2},
    {
        "select": [
            {"select": "count", "offset": 0, "size": 1, "item": 0},
            {"select": "linear(area)[0]", "offset": 1, "size": 1, "item": 1},
            {"select": "linear(area)[1]", "offset": 2, "size": 1, "item": 1},
        ]
    },
]
BY_ITEM = stated_noise(Gaussian(2.0**28), grid_log2=0, sigmas=(5.0, 2000.0))
ON_A_GRID = stated_noise(Gaussian(160.0), grid_log2=-3, sigmas=())


def test_one_grid_is_stated_in_numbers() -> None:
    """A query on one grid has always had plain numbers."""
    assert (ON_A_GRID.sigma, ON_A_GRID.grid) == (20.0, 0.125)
    assert ON_A_GRID.half_width_95 == half_width_95(sigma=20.0, grid_log2=-3)
    assert with_noise(AXES, ON_A_GRID) is AXES
    steps = np.array([8, -4, 2])
    assert in_query_units(steps, grid_log2=-3, grid=ON_A_GRID.grid, axes=[]).tolist() == [1.0, -0.5, 0.25]
    assert in_query_units(steps, grid_log2=0, grid=ON_A_GRID.grid, axes=[]) is steps


def test_items_are_stated_in_lists_and_on_their_axis() -> None:
    """Sigma is 2^28 steps of each item, and the half width as many for all."""
    assert BY_ITEM.sigma == (5.0, 2000.0)
    assert BY_ITEM.grid == (5 / 2**28, 2000 / 2**28)
    assert BY_ITEM.half_width_95 == pytest.approx((5 * 1.959964, 2000 * 1.959964))
    *groups, told = with_noise(AXES, BY_ITEM)
    assert groups == AXES[:1]
    assert [item["sigma"] for item in told["select"]] == [5.0, 2000.0, 2000.0]
    widths = [BY_ITEM.of_item(at)["half_width_95"] for at in (0, 1, 1)]
    assert [item["half_width_95"] for item in told["select"]] == widths
    assert with_noise(with_noise(AXES, BY_ITEM), BY_ITEM) == with_noise(AXES, BY_ITEM)


def test_numbers_are_multiples_of_the_step_of_their_item() -> None:
    """Group by group, item by item."""
    steps = np.array([1, 2, 3, -4, 5, 6]) * 2**28
    found = in_query_units(steps, grid_log2=0, grid=BY_ITEM.grid, axes=AXES)
    assert found.tolist() == [5, 4000, 6000, -20, 10_000, 12_000]


def test_sigmas_are_kept_as_doubles() -> None:
    """An entry on one grid has none."""
    assert unpacked(packed((5.0, 1 / 3))) == (5.0, 1 / 3)
    assert (packed(()), unpacked(b"")) == (b"", ())
    assert unpacked(packed((5.0,)) + b"?") != (5.0,)
