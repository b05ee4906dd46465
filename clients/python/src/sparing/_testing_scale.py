"""The public scale of a query: its grid, the clip in grid steps, sigma and the worst case, as the service chooses them.

docs/query-language.md ("The grid", "The precision") states the rules. Everything is exact, in fractions.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from statistics import NormalDist

from sparing._testing_problems import invalid
from sparing._testing_shapes import members_of, number_of

__all__ = [
    "NOISE_KINDS",
    "STEPS_MIN",
    "UNITS_PER_RHO",
    "Asked",
    "Extent",
    "Noise",
    "Scale",
    "noise_of",
    "price_units",
    "rho_text",
    "scale_of",
    "steps_of",
]

UNITS_PER_RHO = 2**40
CHARGE_UNITS_MAX, LIMIT_UNITS_MAX = 2**62, 2**61
SIGMA_STEPS_MIN, SIGMA_STEPS_MAX, SIGMA_STEPS_EASY = 0.3, 2.0**32, 2.0**28
BITS_MAX, BITS_MIN = 30, 18
TOTAL_MAX = NORM_SQUARED_MAX = 2**61
STEPS_MIN = 256
NOISE_KINDS = ("sigma", "rho", "share", "half_width")
MAGNITUDE_MAX = 1e100
_MARGIN = 1 + 2.0**-47


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The numbers that one row may add to a coordinate: multiples of `2**step_log2` from `low` to `high`.

    Of an item with several coordinates for one row, `vectors` are all that a row may add to them, and `least` is the
    smallest of their largest numbers.
    """

    low: Fraction = Fraction(1)
    high: Fraction = Fraction(1)
    step_log2: int = 0
    is_whole: bool = True
    is_once: bool = False  # an individual adds it once to a group
    vectors: Sequence[Sequence[Fraction]] = ()
    least: Fraction | None = None

    @property
    def largest(self) -> Fraction:
        """The largest absolute number."""
        return max(abs(self.low), abs(self.high))

    @property
    def squared(self) -> Fraction:
        """The largest squared norm that one row adds."""
        norms = (sum((each**2 for each in vector), Fraction()) for vector in self.vectors)
        return max(norms, default=self.largest**2)

    def steps(self, grid_log2: int) -> int:
        """The largest absolute number in grid steps, rounded half up."""
        return max(abs(steps_of(self.low, grid_log2)), abs(steps_of(self.high, grid_log2)))

    def squared_steps(self, grid_log2: int) -> int:
        """The largest squared norm that one row adds in grid steps, each number rounded."""
        norms = (sum(steps_of(each, grid_log2) ** 2 for each in vector) for vector in self.vectors)
        return max(norms, default=self.steps(grid_log2) ** 2)

    def survives(self, grid_log2: int) -> bool:
        """Whether the grid keeps the numbers: exactly, or in enough steps for rounding not to matter."""
        if self.step_log2 >= grid_log2 or self.largest == 0:
            return True
        steps = self.steps(grid_log2) if self.least is None else steps_of(self.least, grid_log2)
        return steps >= STEPS_MIN

    def times_squared(self, rows: int, groups: int) -> int:
        """By how much the square of an individual's numbers may exceed that of one row."""
        return min(rows, groups) if self.is_once else rows**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The noise asked for: `sigma` or `half_width` in query units, or `units` as the most that may be charged."""

    field: str
    sigma: float | None = None
    half_width: float | None = None
    confidence: float = 0.95
    units: int = 0

    def estimate(self, clip_squared: int, grid_log2: int) -> float:
        """About sigma in grid steps."""
        if self.sigma is not None:
            return math.ldexp(self.sigma, -grid_log2)
        if self.half_width is not None:
            steps = math.floor(math.ldexp(self.half_width, -grid_log2))
            quantile = -_MARGIN * NormalDist().inv_cdf(math.nextafter(1 - self.confidence, 0.0) / 2)
            return math.nextafter((steps + 0.5) / quantile, 0.0)
        return math.sqrt((clip_squared * (UNITS_PER_RHO // 2)) / self.units)

    def sigma_steps(self, clip_squared: int, grid_log2: int) -> float:
        """Sigma in grid steps: for a bound on the charge the smallest double that keeps to it."""
        sigma = self.estimate(clip_squared, grid_log2)
        while self.units and price_units(clip_squared, sigma) > self.units:
            sigma = math.nextafter(sigma, math.inf)
        return sigma


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The facts that the scale depends on."""

    extents: Sequence[Extent]  # of each item
    rows: int  # of one individual, at most
    groups: int
    capacity: int
    l2_clip: float | None
    noise: Noise

    def natural_squared(self) -> Fraction:
        """The squared length that no individual's vector exceeds."""
        norms = (each.squared * each.times_squared(self.rows, self.groups) for each in self.extents)
        return sum(norms, Fraction())

    def natural_steps_squared(self, grid_log2: int) -> int:
        """The same in grid steps, each number rounded."""
        return sum(each.squared_steps(grid_log2) * each.times_squared(self.rows, self.groups) for each in self.extents)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A grid, and what is counted in its steps."""

    grid_log2: int
    clip_squared_steps: int
    l2_clip: float  # query units
    sigma_steps: float

    @property
    def grid(self) -> float:
        """One step in query units."""
        return 2.0**self.grid_log2

    @property
    def sigma(self) -> float:
        """In query units."""
        return math.ldexp(self.sigma_steps, self.grid_log2)

    @property
    def worst_case_units(self) -> int:
        """The most that an individual is charged."""
        return price_units(self.clip_squared_steps, self.sigma_steps)


def noise_of(node: object, *, budget_units: int) -> Noise:
    """The noise of a query on a dataset with this budget. Raises Refused."""
    given = node if isinstance(node, dict) else {}
    kind = next((each for each in NOISE_KINDS if each in given), None)
    if kind is None:
        raise invalid("noise", "must be an object with sigma, or rho, or share, or half_width and confidence")
    asked = members_of(given, "noise", required=[kind, "confidence"] if kind == "half_width" else [kind])
    field = f"noise.{kind}"
    amount = number_of(asked[kind], field, above=0, most=1 if kind == "share" else MAGNITUDE_MAX)
    if kind == "sigma":
        return Noise(field=field, sigma=amount)
    if kind == "half_width":
        confidence = number_of(asked["confidence"], "noise.confidence", above=0, most=1, below=True)
        if 1 - confidence == 1:
            raise invalid("noise.confidence", "is too small for an interval")
        return Noise(field=field, half_width=amount, confidence=confidence)
    units = math.floor(Fraction(amount) * (UNITS_PER_RHO if kind == "rho" else budget_units))
    if not 1 <= units <= LIMIT_UNITS_MAX:
        raise invalid(
            field,
            "must be at least 2^-40 and at most 2^21"
            if kind == "rho"
            else "is too small: of this dataset's budget it is less than 2^-40 rho",
        )
    return Noise(field=field, units=units)


def scale_of(asked: Asked) -> Scale:
    """The grid, and what follows from it. Raises Refused naming the field."""
    natural = asked.natural_squared()
    if natural == 0:
        raise invalid("select", "is always zero within the declared bounds")
    clip = None if asked.l2_clip is None else Fraction(asked.l2_clip) ** 2
    if clip is not None and clip >= natural:
        clip = None
    obstacles: list[tuple[str, str]] = []
    grids: list[int] = []
    for grid_log2, sigma_steps_max in _grids(asked, natural if clip is None else clip, is_natural=clip is None):
        reached = _clip_steps_squared(asked, grid_log2, clip)
        obstacle = _obstacle(asked, grid_log2, reached)
        obstacles += [] if obstacle is None else [obstacle]
        grids += [grid_log2] if obstacle is None else []
        if obstacle is None and asked.noise.estimate(reached, grid_log2) <= sigma_steps_max:
            return _scale(asked, grid_log2, reached, natural if clip is None else None)
    if grids:
        raise _out_of_range(asked, f"at most {math.ldexp(SIGMA_STEPS_MAX, max(grids)):.6g}")
    raise invalid(*obstacles[0])


def price_units(norm_squared: int, sigma_steps: float) -> int:
    """The charge of a squared norm, rounded up to units of 2^-40 rho (Feldman and Zrnic 2021, Example 2.6)."""
    price = Fraction(UNITS_PER_RHO // 2) / Fraction(sigma_steps) ** 2
    return min(math.ceil(norm_squared * price), CHARGE_UNITS_MAX)


def rho_text(units: int) -> str:
    """The rho of units, exactly, as the service writes it."""
    twos = min(40, (units & -units).bit_length() - 1) if units > 0 else 40
    return str(Decimal(f"{(units >> twos) * 5 ** (40 - twos)}E-{40 - twos}"))


def steps_of(number: int | Fraction, grid_log2: int) -> int:
    """A number in grid steps, rounded half up."""
    return math.floor(Fraction(number) / Fraction(2) ** grid_log2 + Fraction(1, 2))


def _grids(asked: Asked, reach: Fraction, *, is_natural: bool) -> Iterator[tuple[int, float]]:
    """The grids to try, the best first, each with the sigma in steps up to which it will do."""
    if is_natural and all(each.is_whole for each in asked.extents):
        yield 0, SIGMA_STEPS_MAX
    exponent = _exponent(reach)
    for bits in range(BITS_MAX, BITS_MIN - 1, -1):
        yield exponent - bits, SIGMA_STEPS_EASY
    for bits in range(BITS_MIN, BITS_MAX + 1):
        yield exponent - bits, SIGMA_STEPS_MAX


def _exponent(squared: Fraction) -> int:
    """The smallest e with sqrt(squared) <= 2^e."""
    guess = (squared.numerator.bit_length() - squared.denominator.bit_length()) // 2 - 1
    while squared > Fraction(4) ** guess:
        guess += 1
    return guess


def _clip_steps_squared(asked: Asked, grid_log2: int, clip: Fraction | None) -> int:
    natural = asked.natural_steps_squared(grid_log2)
    return natural if clip is None else min(natural, math.floor(clip / Fraction(4) ** grid_log2))


def _obstacle(asked: Asked, grid_log2: int, reached: int) -> tuple[str, str] | None:
    """The field and the text that speak against a grid, other than the noise."""
    for place, each in enumerate(asked.extents):
        if not each.survives(grid_log2):
            said = "would be lost in rounding beside the rest of select; ask it in a query of its own"
            return f"select[{place}]", said
    if max(each.steps(grid_log2) for each in asked.extents) * asked.rows > TOTAL_MAX:
        if asked.l2_clip is not None:
            return "per_individual.l2_clip", "is too small beside the declared bounds"
        return "select", "adds up to numbers too large for exact sums; give an l2_clip"
    if reached > NORM_SQUARED_MAX or reached * asked.capacity**2 > TOTAL_MAX**2:
        return "select", "adds up to numbers too large for exact sums over the dataset's capacity"
    return None


def _scale(asked: Asked, grid_log2: int, reached: int, natural: Fraction | None) -> Scale:
    sigma_steps = asked.noise.sigma_steps(reached, grid_log2)
    if sigma_steps < SIGMA_STEPS_MIN:
        raise _out_of_range(asked, f"at least {math.ldexp(SIGMA_STEPS_MIN, grid_log2):.6g}")
    l2_clip = math.sqrt(natural) if natural is not None else float(asked.l2_clip or 0)
    return Scale(grid_log2=grid_log2, clip_squared_steps=reached, l2_clip=l2_clip, sigma_steps=sigma_steps)


def _out_of_range(asked: Asked, bound: str) -> Exception:
    return invalid(asked.noise.field, f"must give a sigma of {bound} in this query")
