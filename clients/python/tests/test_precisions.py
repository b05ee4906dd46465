"""The precisions of single items make one noise of the query, and what the query language has not is refused."""

from statistics import NormalDist
from typing import Any

import pytest

from sparing._precisions import noise_of


@pytest.mark.parametrize(
    ("items", "stated", "noise"),
    [
        ([{}, {}], {"sigma": 5}, {"sigma": 5}),
        ([{"sigma": 5}], {}, {"sigma": 5}),
        ([{"half_width": 5}], {}, {"half_width": 5, "confidence": 0.95}),
        ([{"weight": 5}], {"share": 0.1}, {"share": 0.1}),
        ([{"sigma": 5}, {"sigma": 2000}], {}, {"sigma": [5, 2000]}),
        (
            [{"half_width": 10, "confidence": 0.9}, {"half_width": 5000, "confidence": 0.9}],
            {},
            {"half_width": [10, 5000], "confidence": 0.9},
        ),
        ([{"weight": 3}, {}], {"rho": 0.5}, {"rho": 0.5, "weights": [3, 1]}),
    ],
)
def test_precisions_are_listed_by_item(items: Any, stated: Any, noise: dict[str, Any]) -> None:
    """One item alone has the noise that it had before, a number."""
    assert noise_of(items, stated) == noise


def test_half_widths_beside_sigmas_are_sigmas_that_keep_to_them() -> None:
    """Less than a hair below the half width over the normal quantile, and above it never."""
    first, second, third = noise_of([{"sigma": 5}, {"half_width": 5000}, {"half_width": 10, "confidence": 0.5}], {})[
        "sigma"
    ]  # type: ignore[misc]  # a list

    assert first == 5
    assert 5000 * (1 - 1e-8) < second * NormalDist().inv_cdf(0.975) <= 5000
    assert 10 * (1 - 1e-8) < third * NormalDist().inv_cdf(0.75) <= 10


@pytest.mark.parametrize(
    ("items", "stated", "message"),
    [
        ([{"sigma": 5, "weight": 1}], {}, "give an item one of"),
        ([{"confidence": 0.9}], {"half_width": 5}, "confidence goes with half_width"),
        ([{"sigma": 5}, {}], {}, "give each item its sigma or half_width"),
        ([{"sigma": 5}, {"weight": 2}], {"share": 0.1}, "an item has a weight"),
        ([{"sigma": 5}, {"sigma": 5}], {"share": 0.1}, "by item and also for the query, by share"),
        ([{"weight": 5}, {}], {"share": 0.1, "weights": [1, 2]}, "weights are stated by item and also"),
    ],
)
def test_a_mixture_that_has_no_meaning_is_refused(items: Any, stated: Any, message: str) -> None:
    """Before anything is sent."""
    with pytest.raises(ValueError, match=message):
        noise_of(items, stated)
