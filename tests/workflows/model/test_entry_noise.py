"""The noise of an entry charges by the law and the accounting that its mechanism names."""

import numpy as np
import pytest

from service.accounting.laplace_prices import laplace_prices_of
from service.core.charge import charge_units, worst_case_units
from service.core.laplace import laplace_charge_units, laplace_worst_case_units
from service.workflows.model.entry_noise import EntryNoise

NORMS = np.array([0, 1, 49, 10_000])


def test_a_gaussian_is_charged_by_its_sigma() -> None:
    """By the core's integers."""
    noise = EntryNoise("gaussian", 30.0)
    assert noise.charge_units(NORMS).tolist() == charge_units(NORMS, 30.0).tolist()
    assert noise.worst_case_units(49) == worst_case_units(49, 30.0)


@pytest.mark.parametrize("name", ["gdp", "zcdp", "rdp 32.0", "pure"])
def test_laplace_noise_is_charged_by_the_prices_of_the_accounting(name: str) -> None:
    """By the core's integers, of no norms too."""
    noise, prices = EntryNoise(f"laplace {name}", 30.0), laplace_prices_of(name)
    expected = laplace_charge_units(NORMS, 30.0, prices, norm_squared_max=10_000)
    assert noise.charge_units(NORMS).tolist() == expected.tolist()
    assert noise.charge_units(NORMS[:0]).tolist() == []
    assert noise.worst_case_units(49) == laplace_worst_case_units(49, 30.0, prices)


def test_a_mechanism_without_a_price_is_an_error() -> None:
    """A replay then names the entry."""
    noise = EntryNoise("laplace pld", 30.0)
    for price in (lambda: noise.charge_units(NORMS), lambda: noise.worst_case_units(1)):
        with pytest.raises(ValueError, match="there is no accounting pld"):
            price()
