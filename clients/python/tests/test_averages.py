"""Items that the service works out: their JSON, by functions and steps."""

from typing import Any

import numpy as np
import pytest

from sparing import Client, Item, col, count, difference, mean, quantile, ratio, stddev, sum_, variance
from sparing._averages import AVERAGES, is_average

INCOME: dict[str, Any] = {"column": "income"}
ITEMS: list[tuple[Item, dict[str, Any]]] = [
    (mean("income"), {"mean": INCOME}),
    (variance(col("income")), {"variance": INCOME}),
    (stddev(col("income") * 2), {"stddev": {"of": {"mul": [{"col": "income"}, 2]}}}),
    (quantile("income", 0.5), {"quantile": INCOME | {"probability": 0.5}}),
    (quantile(col("income"), np.float64(0.25), bins=8), {"quantile": INCOME | {"probability": 0.25, "bins": 8}}),
    (
        quantile("income", 0.9, edges=np.array([0, 10, 250.5])),
        {"quantile": INCOME | {"probability": 0.9, "edges": [0, 10, 250.5]}},
    ),
    (ratio(sum_("income"), count()), {"ratio": {"of": {"sum": INCOME}, "to": {"count": {}}}}),
    (
        difference(mean("income"), "treated", first=False, second=True),
        {"difference": {"of": {"mean": INCOME}, "by": "treated", "from": False, "to": True}},
    ),
    (
        difference(count(), col("people.town"), first="a", second="b"),
        {"difference": {"of": {"count": {}}, "by": "people.town", "from": "a", "to": "b"}},
    ),
]


@pytest.mark.parametrize(("item", "json"), ITEMS, ids=range(len(ITEMS)))
def test_an_item_is_its_document(item: Item, json: dict[str, Any]) -> None:
    """The service does the rest: bounds, bins and parts of the cost are its own."""
    assert item.json == json
    assert is_average(json)
    assert not is_average(count().json)


def test_every_kind_has_a_function_and_a_step(client: Client) -> None:
    """Steps take a weight, which divides the cost among the items."""
    assert {kind for _, json in ITEMS for kind in json} == AVERAGES
    steps = client.dataset("d").query().group_by("treated").mean("income", weight=2).variance("income")
    steps = steps.stddev("income").quantile("income", 0.5, bins=9).ratio(sum_("income"), count())
    steps = steps.difference(mean("income"), "treated", first=False, second=True).noise(share=0.1)
    select: Any = steps.json["select"]
    assert [next(iter(item)) for item in select] == ["mean", "variance", "stddev", "quantile", "ratio", "difference"]
    assert steps.json["noise"] == {"share": 0.1, "weights": [2, 1, 1, 1, 1, 1]}


@pytest.mark.parametrize("probability", [0, 1, 1.5, True, "0.5"])
def test_a_quantile_has_a_probability(probability: Any) -> None:
    """Above 0 and below 1."""
    with pytest.raises(ValueError, match="probability of a quantile"):
        quantile("age", probability)
