"""An entry's words and size give its law; words that name none can be read, and have no price."""

import numpy as np
import pytest

from service.accounting.accountings import GAUSSIAN, PURE, Accounting, ConcentratedAccounting, RenyiAccounting
from service.accounting.laws import Unpriced, deviation_of, law_of, repriced, tick_of
from service.core.laws import Gaussian, Laplace, PrepaidGaussian
from tests.core.injected import seeded

ACCOUNTINGS = [GAUSSIAN, ConcentratedAccounting(conversion="simple"), RenyiAccounting(order=17.809), PURE]
NORMS = np.array([0, 1, 49, 10_000])


@pytest.mark.parametrize("law", [Gaussian(30.0), PrepaidGaussian(30.0, tick=12)])
def test_the_words_of_a_gaussian_give_it_again(law: Gaussian) -> None:
    """A tick's with its number."""
    assert law_of(law.name, 30.0) == law
    assert repriced(law, "pure") is law


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
def test_the_words_of_laplace_noise_give_its_prices(accounting: Accounting) -> None:
    """Those of the accounting that they name; another one's prices are for what would have been."""
    law = Laplace.priced(30.0, accounting.name, accounting.laplace_prices)
    found, other = law_of(law.name, 30.0), law_of("laplace zcdp", 30.0)
    assert law.name == accounting.mechanisms["laplace"].name
    assert found.name == law.name
    assert found.charges(NORMS).tolist() == law.charges(NORMS).tolist()
    assert repriced(other, accounting.name).charges(NORMS).tolist() == law.charges(NORMS).tolist()


@pytest.mark.parametrize(
    "name", ["gaussian", "gaussian prepaid 3", *(f"laplace {accounting.name}" for accounting in ACCOUNTINGS)]
)
def test_a_deviation_needs_no_prices(name: str) -> None:
    """It is that of the law."""
    assert deviation_of(name) == law_of(name, 30.0).deviation


def test_the_laws_that_an_accounting_prices() -> None:
    """A Gaussian has no price of pure differential privacy."""
    assert {word: each.name for word, each in GAUSSIAN.mechanisms.items()} == {
        "gaussian": "gaussian",
        "laplace": "laplace gdp",
    }
    assert {word: each.name for word, each in PURE.mechanisms.items()} == {"laplace": "laplace pure"}


@pytest.mark.parametrize(
    ("name", "size"),
    [
        *((name, 30.0) for name in ("laplace", "laplace rdp", "laplace rdp x", "laplace pld", "gaussian gdp", "", "x")),
        *(
            (name, 30.0)
            for name in ("gaussian prepaid", "gaussian prepaid 0", "gaussian prepaid -1", "gaussian prepaid x")
        ),
        ("laplace zcdp", 0.1),
    ],
)
def test_words_that_name_no_law_have_no_price(name: str, size: float) -> None:
    """Neither has Laplace noise of a scale that cannot be drawn. A replay names the entry."""
    law = law_of(name, size)
    assert isinstance(law, Unpriced)
    assert (law.name, law.size_steps, law.tick, tick_of(name)) == (name, size, 0, 0)
    assert (law.longest(2**40), law.half_width(0.95)) == (0.0, 0)
    for ask in (
        lambda: law.charges(NORMS),
        lambda: law.charge(1),
        lambda: law.norms_within(NORMS, norm_squared_max=1),
        lambda: law.rounds(1),
        lambda: law.draw(1, seeded(1)),
    ):
        with pytest.raises(ValueError, match="there is no mechanism"):
            ask()
