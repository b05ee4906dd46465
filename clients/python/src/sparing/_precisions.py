"""The precisions of the items of a query, merged into the noise of the query: lists with a number for each item."""

from collections.abc import Sequence
from typing import Final, TypedDict

from sparing._normal import two_sided_quantile
from sparing._query import NoiseRequest

_SIZES: Final = ("sigma", "half_width")
_WITHIN: Final = 1 - 2.0**-28
"""A factor for sigma just below 1, so that rounding to steps of sigma / 2^28 stays within the half width."""


class ItemNoise(TypedDict, total=False):
    """The precision of one item: its sigma or half width, or its weight in a common cost."""

    sigma: float  # standard deviation, in the item's units
    half_width: float  # at most such that the item's numbers are within this of what was counted at `confidence`
    confidence: float  # default 0.95; goes with half_width
    weight: float  # the part of the query's rho or share, beside those of the other items; default 1


def noise_of(items: Sequence[ItemNoise], stated: NoiseRequest) -> NoiseRequest:
    """The noise of a query, from what is stated for the whole query and the precisions of its items.

    Items may mix half widths and sigmas, or half widths of several confidences. The query language only has one kind in
    a query, so that mixed half widths are sent as the sigmas that achieve them.

    Raises:
        ValueError: an item has several kinds of precision; only some items have a sigma or a half width; or the noise
            is stated both for items and for the whole query.
    """
    kinds = [[name for name in (*_SIZES, "weight") if name in item] for item in items]
    if any(len(each) > 1 for each in kinds):
        raise ValueError("give an item one of sigma, half_width and weight")
    if any("confidence" in item and "half_width" not in item for item in items):
        raise ValueError("confidence goes with half_width")
    found = {name for each in kinds for name in each}
    if not found:
        return stated
    if found == {"weight"}:
        return _weighted([item.get("weight", 1) for item in items], stated)
    if "weight" in found:
        raise ValueError(
            "an item has a weight, which divides the query's rho or share, and another one a sigma or half_width"
        )
    if not all(kinds):
        raise ValueError("give each item its sigma or half_width, or state the noise of the query and no item's")
    if stated:
        raise ValueError(f"the noise is stated by item and also for the query, by {', '.join(stated)}")
    return _sized(items)


def _weighted(weights: list[float], stated: NoiseRequest) -> NoiseRequest:
    if "weights" in stated:
        raise ValueError("weights are stated by item and also for the query")
    return {**stated, "weights": weights} if len(weights) > 1 else stated


def _sized(items: Sequence[ItemNoise]) -> NoiseRequest:
    confidences = {item.get("confidence", 0.95) for item in items}
    if all("half_width" in item for item in items) and len(confidences) == 1:
        widths = [item["half_width"] for item in items]
        return {"half_width": widths if len(widths) > 1 else widths[0], "confidence": confidences.pop()}
    sigmas = [_sigma(item) for item in items]
    return {"sigma": sigmas if len(sigmas) > 1 else sigmas[0]}


def _sigma(item: ItemNoise) -> float:
    if "sigma" in item:
        return item["sigma"]
    return item["half_width"] / two_sided_quantile(item.get("confidence", 0.95)) * _WITHIN
