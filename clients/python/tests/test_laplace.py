"""Laplace noise in the client: how it is asked for, the intervals of its answers, and the fake service."""

import math
from typing import Any

import pytest

from sparing import InvalidRequestError
from sparing._normal import laplace_half_width
from sparing._query import question_json
from sparing.testing import FakeService

PEOPLE: dict[str, Any] = {
    "people": {"kind": "individuals", "key": "id", "columns": {"age": {"type": "integer", "lower": 0, "upper": 120}}}
}


def test_a_scale_is_of_laplace_noise() -> None:
    """The other precisions need the word."""
    asked = question_json({"dataset": "d", "scale": 5.0})
    assert (asked["noise"], asked["mechanism"]) == ({"scale": 5.0}, "laplace")
    asked = question_json({"dataset": "d", "share": 0.1, "mechanism": "laplace"})
    assert (asked["noise"], asked["mechanism"]) == ({"share": 0.1}, "laplace")
    assert "mechanism" not in question_json({"dataset": "d", "sigma": 5.0})
    with pytest.raises(ValueError, match="give exactly one of sigma, rho, share, half_width and scale"):
        question_json({"dataset": "d", "sigma": 5.0, "scale": 5.0})


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999999])
@pytest.mark.parametrize(("scale", "grid"), [(20.0, 1.0), (3.5, 0.25), (0.4, 1.0)])
def test_a_half_width_holds_the_noise(scale: float, grid: float, confidence: float) -> None:
    """The least number of steps at which 1 - e^(-(k + 1/2) grid / scale) is the confidence."""
    steps = laplace_half_width(scale=scale, grid=grid, confidence=confidence) / grid
    assert 1 - math.exp(-(steps + 0.5) * grid / scale) >= confidence * (1 - 1e-12)
    assert steps == 0 or 1 - math.exp(-(steps - 0.5) * grid / scale) < confidence


@pytest.mark.parametrize("wrong", [{"scale": 0.0}, {"grid": math.inf}, {"confidence": 1.0}])
def test_what_is_no_noise_is_refused(wrong: dict[str, float]) -> None:
    """The arguments are bounded as those of a Gaussian are."""
    with pytest.raises(ValueError, match="out of range"):
        laplace_half_width(**{"scale": 1.0, "grid": 1.0, **wrong})


def test_the_fake_answers_with_laplace_noise() -> None:
    """Scale, standard deviation and intervals are those of Laplace noise; the builder asks for it too."""
    service = FakeService(noise=True, seed=1)
    service.add_dataset("shop", PEOPLE, rows={"people": [{"id": f"p{n}", "age": n} for n in range(50)]}, rho=1)
    client = service.client()
    answer = client.queries.ask(dataset="shop", scale=20.0)
    assert (answer.mechanism, answer.scale) == ("laplace", 20.0)
    assert answer.sigma == pytest.approx(20 * math.sqrt(2))
    assert answer.half_width() == answer.half_width_95 == 60.0
    assert answer.half_width(0.5) == 14.0
    preview = client.queries.preview(dataset="shop", scale=20.0)
    assert (preview.scale, preview.half_width_95) == (20.0, 60.0)
    built = client.dataset("shop").query().count().noise(sigma=20.0, mechanism="laplace").run()
    assert built.scale == pytest.approx(20 / math.sqrt(2))
    gaussian = client.queries.ask(dataset="shop", sigma=20.0)
    assert (gaussian.mechanism, gaussian.scale) == ("gaussian", None)


@pytest.mark.parametrize(
    ("accounting", "guarantee", "unit"),
    [
        ({"kind": "pure"}, {"epsilon": 1}, "epsilon"),
        ({"kind": "zcdp"}, {"epsilon": 1, "delta": "1e-5"}, "rho"),
        ({"kind": "rdp", "order": 16, "conversion": "simple"}, {"epsilon": 1, "delta": "1e-5"}, "rho at order 16"),
    ],
)
def test_the_fake_registers_an_accounting(accounting: dict[str, Any], guarantee: dict[str, Any], unit: str) -> None:
    """Its budget and its prices are the service's, and a real dataset that is described so is the same one."""
    service = FakeService()
    service.add_dataset("shop", PEOPLE, rows={"people": [{"id": "a", "age": 4}]}, accounting=accounting, **guarantee)
    client = service.client()
    found = client.datasets.get(dataset="shop")
    assert found.unit == unit
    assert (found.accounting if isinstance(found.accounting, str) else dict(found.accounting)) == {
        **({} if unit == "epsilon" else {"conversion": "optimal"}),
        **accounting,
    }
    share = client.queries.ask(dataset="shop", scale=100.0).worst_case_share
    assert share == pytest.approx({"epsilon": 0.01, "rho": 0.00163, "rho at order 16": 0.00342}[unit], rel=0.02)
    again = FakeService()
    again.add_dataset(found)
    assert again.client().datasets.get(dataset="shop") == found


def test_a_pure_fake_refuses_what_the_service_refuses() -> None:
    """A Gaussian has no price there; its guarantee is epsilon alone, and an accounting is one that exists."""
    service = FakeService()
    service.add_dataset("shop", PEOPLE, accounting={"kind": "pure"}, epsilon=1)
    with pytest.raises(InvalidRequestError, match="gaussian has no finite charge"):
        service.client().queries.ask(dataset="shop", sigma=20.0)
    for wrong in ({"epsilon": 1, "delta": "1e-5"}, {"rho": 1}, {}):
        with pytest.raises(ValueError, match="epsilon alone"):
            service.add_dataset("other", PEOPLE, accounting={"kind": "pure"}, **wrong)
    for unknown in ("pld", {"kind": "rdp"}, {"kind": "gdp"}):
        with pytest.raises(ValueError, match="there is no accounting"):
            service.add_dataset("other", PEOPLE, accounting=unknown, rho=1)
