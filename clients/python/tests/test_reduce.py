"""One number of a sum in the client: how it is asked for, what the fake answers, and what is not mixed with it."""

import math
from typing import Any

import pytest

from sparing import InvalidRequestError, combine, histogram
from sparing._cli_questions import request_of
from sparing._query import question_json
from sparing.testing import FakeService

TABLES: dict[str, Any] = {
    "people": {"kind": "individuals", "key": "id", "columns": {"place": {"type": "category", "size": 4}}},
    "visits": {
        "kind": "events",
        "key": "id",
        "rows_per_individual": 8,
        "columns": {"item": {"type": "category", "size": 3}},
    },
}
ROWS: dict[str, Any] = {
    "people": [{"id": f"p{n}", "place": n % 4} for n in range(10)],
    "visits": [{"id": f"p{n % 10}", "item": n % 3} for n in range(20)] + [{"id": "p0", "item": 2}],
}


def opened(*, noise: bool = False) -> Any:
    """The fake service with ten people and 21 visits."""
    service = FakeService(noise=noise, seed=1)
    service.add_dataset("shop", TABLES, rows=ROWS, rho=1)
    return service


def test_a_question_names_the_function() -> None:
    """A keyword, a step, and a member of a document of the command line."""
    asked = question_json({"dataset": "shop", "reduce": "max", "sigma": 5.0})
    assert asked["reduce"] == "max"
    assert "reduce" not in question_json({"dataset": "shop", "sigma": 5.0})
    query = opened().client().dataset("shop").query().histogram("place").reduce("norm").noise(sigma=5.0)
    assert query.json["reduce"] == "norm"
    assert "reduce='norm'" in repr(query)
    assert request_of({"reduce": "max", "noise": {"sigma": 5}}, "shop")["reduce"] == "max"


@pytest.mark.parametrize(("function", "number"), [("max", 7), ("norm", 7 * math.sqrt(3))])
def test_the_fake_answers_with_one_number(function: str, number: float) -> None:
    """The number of the exact sum is within half a step without noise; with noise it is one of its own."""
    client = opened().client()
    query = client.dataset("shop").query("visits").histogram("item").reduce(function).noise(sigma=4.0)
    answer = query.run()
    assert (answer.dimension, answer.labels) == (1, ({"select": f"{function}(histogram(item)) of 3"},))
    assert abs(answer.value - number) <= answer.grid / 2
    assert answer.half_width() == answer.half_width_95
    preview = query.preview()
    assert preview.dimension == 1
    assert preview.l2_clip == pytest.approx(8, rel=1e-5)
    noisy = (
        opened(noise=True)
        .client()
        .queries.ask(dataset="shop", from_="visits", select=histogram("item"), reduce=function, sigma=4.0)
    )
    assert 0 < abs(noisy.value - number) < 5 * 4.0


def test_reduced_answers_are_combined_with_their_own_kind_alone() -> None:
    """Two maxima are measurements of one number; a maximum and a norm, or a count, are not."""
    client = opened(noise=True).client()
    query = client.dataset("shop").query().histogram("place").noise(sigma=4.0).fresh()
    largest = [query.reduce("max").run() for _ in range(2)]
    assert combine(largest).sigma == pytest.approx(4 / math.sqrt(2))
    one = client.queries.ask(dataset="shop", sigma=4.0)
    for other in (query.reduce("norm").run(), query.run(), one):
        with pytest.raises(ValueError, match=r"answers\[1\]"):
            combine([largest[0], other])


def test_refusals_name_the_field() -> None:
    """One coordinate, and a rule that shortens vectors; averages are worked out from all numbers."""
    client = opened().client()
    with pytest.raises(InvalidRequestError, match="reduce"):
        client.queries.ask(dataset="shop", reduce="max", sigma=4.0)
    with pytest.raises(InvalidRequestError, match="rule"):
        client.dataset("shop").query().histogram("place").reduce("max").rule("clip").noise(sigma=4.0).run()
    with pytest.raises(InvalidRequestError, match="is for counts and sums, and not for mean"):
        client.dataset("shop").query().mean("place").reduce("max").noise(share=0.1).run()
