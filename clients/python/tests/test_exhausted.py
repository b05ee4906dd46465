"""The running counts of exhausted individuals: without a bias, with their errors, and by way of the fake service."""

import math
import random
from decimal import Decimal
from typing import Any

import pytest

import sparing
from sparing._exhausted import exhausted_counts, weights_of
from sparing._models import MonitorTicks
from sparing.testing import FakeService

TABLES: dict[str, Any] = {
    "people": {"kind": "individuals", "key": "person_id", "columns": {"member": {"type": "boolean"}}}
}
MONITOR: dict[str, Any] = {"rho": "0.1", "ticks": 3, "share": 0.5}


def steps_of(ticks: int) -> list[int]:
    """The coefficients in steps, by the formula."""
    return [math.floor(math.comb(2 * n, n) * 2**20 / 4**n + 0.5) for n in range(ticks)]


def ticks(values: list[float], sigma: float = 1.0) -> MonitorTicks:
    """A monitor with these ticks."""
    return MonitorTicks(
        rho=Decimal("0.001"), ticks=1024, share=0.1, sigma=sigma, asked=len(values), ended=False, values=tuple(values)
    )


def test_running_counts_come_back() -> None:
    """Ticks without noise give them to the last digits of doubles, also where roundings of coefficients add up."""
    source, count = random.Random(5), 200
    new = [source.randrange(100_000) for _ in range(count)]
    steps = steps_of(count)
    values = [sum(new[k] * steps[tick - k] for k in range(tick + 1)) / 2**20 for tick in range(count)]
    found = exhausted_counts(ticks(values))
    assert [each.tick for each in found] == list(range(1, count + 1))
    for tick, each in enumerate(found):
        assert each.value == pytest.approx(sum(new[: tick + 1]), abs=1e-3)


@pytest.mark.parametrize(
    ("count", "sigma", "error"), [(16, 31.175941796806782, 43.467), (1024, 40.450921493184666, 73.176)]
)
def test_the_standard_errors_of_a_thousandth(count: int, sigma: float, error: float) -> None:
    """At a reserve of .001 and the last tick of all; the first tick has sigma itself."""
    found = exhausted_counts(ticks([0.0] * count, sigma))
    assert found[-1].standard_error == pytest.approx(error, rel=1e-4)
    assert found[0].standard_error == sigma


def test_the_weights_are_nearly_the_coefficients() -> None:
    """The root of running sums is its own complement, but for the rounding."""
    for weight, step in zip(weights_of(300), steps_of(300), strict=True):
        assert weight == pytest.approx(step / 2**20, abs=3e-5)
    assert weights_of(0) == []


@pytest.fixture
def service() -> FakeService:
    """A service without noise, of three people."""
    fake = FakeService(noise=False)
    rows = [{"person_id": f"p{number}", "member": number < 2} for number in range(3)]
    fake.add_dataset("survey", TABLES, rows={"people": rows}, rho="0.5", monitor=MONITOR)
    return fake


def test_ticks_through_the_fake(service: FakeService) -> None:
    """Members fall below the share, then everybody; the curve asks nothing."""
    client = service.client()
    survey = client.dataset("survey")
    first = survey.query().exhausted().run()
    assert first.tick == 1
    assert first.worst_case_rho == 0
    assert first.values == (0.0,)
    survey.query().where(sparing.col("member") == True).count(sigma=1.6).run()  # noqa: E712 - a column
    client.queries.ask(dataset="survey", select=sparing.exhausted())
    survey.query().count(sigma=1.6).run()
    assert survey.query().exhausted().run().tick == 3
    asked = len(service.requests)
    curve = survey.exhausted_curve()
    assert len(service.requests) == asked + 1
    assert [each.value for each in curve] == pytest.approx([0, 2, 3], abs=1e-5)
    monitor = survey.describe().monitor
    assert monitor is not None
    assert (monitor.rho, monitor.ticks, monitor.asked, monitor.ended) == (Decimal("0.1"), 3, 3, True)
    assert curve[0].standard_error == monitor.sigma
    with pytest.raises(sparing.InvalidRequestError, match="3 ticks are used up"):
        survey.query().exhausted().run()


def test_a_dataset_without_a_monitor_has_no_curve(service: FakeService) -> None:
    """And no ticks."""
    service.add_dataset("plain", TABLES, rho=1)
    with pytest.raises(sparing.NotFoundError):
        service.client().dataset("plain").exhausted_curve()
    with pytest.raises(sparing.InvalidRequestError, match="no monitor"):
        service.client().dataset("plain").query().exhausted().run()


@pytest.mark.parametrize("monitor", [{"rho": "0.1"}, {"rho": "0.1", "ticks": 0, "share": 0.5}])
def test_a_fake_monitor_is_checked(monitor: dict[str, Any]) -> None:
    """The rooms of the service check it."""
    with pytest.raises(ValueError, match=r"rho, ticks and share|ticks must be"):
        FakeService().add_dataset("survey", TABLES, monitor=monitor)


def test_a_described_dataset_brings_its_monitor(service: FakeService) -> None:
    """Into another fake."""
    described = service.client().datasets.get(dataset="survey")
    other = FakeService()
    other.add_dataset(described)
    assert other.client().dataset("survey").describe().monitor == described.monitor


def test_a_noise_may_be_left_out_of_a_tick_alone(service: FakeService) -> None:
    """All others need it before anything is sent; a tick with noise is refused by the service."""
    with pytest.raises(ValueError, match="exactly one of"):
        service.client().dataset("survey").query().count().run()
    with pytest.raises(sparing.InvalidRequestError, match="noise"):
        service.client().queries.ask(dataset="survey", select=sparing.exhausted(), sigma=3)
