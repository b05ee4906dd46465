"""The law of noise that a ledger entry names, from its stored words and size. No other module reads these words."""

from contextlib import suppress
from functools import lru_cache
from typing import ClassVar, NoReturn

from service.accounting.laplace_prices import laplace_prices_of
from service.arrays import Integers
from service.core.laws import PREPAID, Gaussian, Laplace, Law, PrepaidGaussian
from service.core.noise import Entropy


class Unpriced(Law):
    """A law whose stored words name no law, as in a damaged row: it can be read and stated, but it has no price."""

    word: ClassVar[str] = "unknown"
    size_word: ClassVar[str] = "sigma"
    deviation: ClassVar[float] = 1.0

    def __init__(self, name: str, size_steps: float) -> None:
        """Keep the name and the size as they are stored."""
        self.name, self.size_steps = name, size_steps

    def draw(self, count: int, entropy: Entropy) -> Integers:  # noqa: ARG002 - none is known
        """Raise ValueError."""
        self._refuse()

    def charges(self, norms_squared: Integers, *, norm_squared_max: int | None = None) -> Integers:  # noqa: ARG002
        """Raise ValueError."""
        self._refuse()

    def charge(self, norm_squared: int) -> int:  # noqa: ARG002 - as above
        """Raise ValueError."""
        self._refuse()

    def norms_within(self, room_units: Integers, *, norm_squared_max: int) -> Integers:  # noqa: ARG002 - as above
        """Raise ValueError."""
        self._refuse()

    def longest(self, units: int) -> float:  # noqa: ARG002 - as above
        """Zero steps: no units pay for a vector without a price."""
        return 0.0

    def half_width(self, confidence: float) -> int:  # noqa: ARG002 - as above
        """Zero steps: no width is known."""
        return 0

    def rounds(self, norm_squared_max: int) -> int:  # noqa: ARG002 - as above
        """Raise ValueError."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ValueError(f"there is no mechanism {self.name}")


def repriced(law: Law, accounting: str) -> Law:
    """This noise at the prices of another accounting, by its name. A Gaussian keeps its price."""
    return law_of(f"{Laplace.word} {accounting}", law.size_steps) if isinstance(law, Laplace) else law


@lru_cache(maxsize=64)  # a table of Laplace noise takes milliseconds to make, and entries repeat their noise
def law_of(name: str, size_steps: float) -> Law:
    """The law that an entry names: `gaussian`, `gaussian prepaid` and a number, `laplace` and an accounting's name."""
    word, _, accounting = name.partition(" ")
    tick = tick_of(name)
    if name == Gaussian.word:
        return Gaussian(size_steps)
    if tick > 0:
        return PrepaidGaussian(size_steps, tick=tick)
    if word == Laplace.word:
        with suppress(ValueError):
            return Laplace.priced(size_steps, accounting, laplace_prices_of(accounting))
    return Unpriced(name, size_steps)


def deviation_of(name: str) -> float:
    """The standard deviation at size 1 of the law that an entry names. No prices are needed for it."""
    return Laplace.deviation if name.partition(" ")[0] == Laplace.word else Gaussian.deviation


def tick_of(name: str) -> int:
    """The number of the tick in a law's name, from 1; 0 for the name of any other law, and for damaged words."""
    number = name.removeprefix(f"{PREPAID} ")
    return int(number) if name == f"{PREPAID} {number}" and number.isdecimal() else 0
