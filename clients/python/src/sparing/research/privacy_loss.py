"""Compositions of Gaussian steps by their privacy loss distributions: epsilon at delta, never below the truth.

    delta(epsilon) = E [1 - e^(epsilon - S)]+,  S the sum of the steps' losses

(Koskela, Tobaben and Honkela 2023, Theorem 6). The distribution of S is computed by the FFT over a grid (their Appendix
D.1), whose losses are rounded to the pessimistic side (loss_steps.py). This accountant is for parameters that were
fixed beforehand. If a step depends on earlier answers, its epsilon is no promise (docs/natural-filters.md) and must not
decide on admitting a query.

To keep numerical errors from making delta too small, three parts are added to it:

- the mass of infinite losses, once for each step;
- the probability of a sum above the window, which would be taken for a small sum. It is at most the least value of
  E e^(s S) / e^(s top) over s (Chernoff), and the top is chosen so that this is a millionth of delta. A sum below the
  window is taken for a larger one, which only raises delta;
- rounding errors. Masses at losses l are multiplied by e^(t l), the tilt, before the transform and divided by it
  afterwards, so that the likeliest sums are those that make up delta, and errors are relative to delta. The error of an
  FFT of n numbers is at most 7 u log2(n) times its Euclidean norm (Higham 2002, Theorem 24.2). For a power k it is k
  times as large. By Plancherel, an inner product with weights w has this error times the norm of w.

The inner product is computed twice: over losses, by the inverse transform, and over frequencies (Lemma D.1). If the two
differ by more than the bound, an ArithmeticError is raised.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparing.research.loss_steps import LOSS_ERROR, MASS_ERROR, GridLosses, losses_of_step
from sparing.research.subsampled_rdp import MU_MAX, refuse_rate

DELTA_MIN: Final = 1e-20
"""The least delta that is computed; of smaller deltas, the mass of infinite losses would be a large part."""
STEPS_MAX: Final = 10_000_000

_SHARE: Final = math.log(1e6)  # of delta what lies beyond the window is e^-_SHARE
_FINENESS: Final = 1e-4
POINTS_MAX: Final = 2**21
TILTS: Final = 2.0 ** (np.arange(-8, 36) / 2)
_UNIT: Final = 2.0**-53
_EPSILON_MOST: Final = 600.0
_EXPONENT_MOST: Final = 300.0  # far below every epsilon that is asked for; its square is a double
_RELATIVE: Final = 2 * MASS_ERROR  # of a tilted mass, whose exponent is off by some roundings too

Reals = NDArray[np.float64]


class Steps(NamedTuple):
    """A number of equal steps of one individual: mu (norm / sigma), sampling rate and number."""

    mu: float
    rate: float
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedLosses:
    """The losses of a composition: tilted masses (n,), the first at the loss `first * spacing`, and their transform."""

    spacing: float
    first: int
    masses: Reals
    transform: NDArray[np.complex128]
    tilt: float
    log_moment: float  # ln E e^(tilt S)
    count: int
    beyond: float  # the mass that is infinite, or above the window
    roundings: int  # for each step, of the product of transforms
    sums: Reals = field(
        init=False
    )  # (3, n + 1): from each place on, of masses, of masses e^-l, of squares of the scale

    def __post_init__(self) -> None:
        """Remove the tilt, and sum up the masses from the largest loss down."""
        losses = self._losses(0)
        scale = self._scale(losses)
        masses = self.masses * scale
        terms = np.stack((masses, masses * np.exp(np.minimum(-losses, 1.0)), scale * scale))  # no sum begins below -1
        sums = np.zeros((3, len(losses) + 1))
        sums[:, :-1] = terms[:, ::-1].cumsum(axis=1)[:, ::-1]
        object.__setattr__(self, "sums", sums)

    def delta(self, epsilon: float) -> float:
        """An upper bound on the delta at this epsilon, at most 1: the computed delta plus a bound on numerical errors.

        Raises ValueError for an epsilon outside [0, 600].
        """
        asked, start = self._asked(epsilon)
        if self.log_moment - self.tilt * asked > _EXPONENT_MOST:  # so far below what the tilt is for: nothing is known
            return 1.0
        mass, inverse, _ = map(float, self.sums[:, start])
        return min(1.0, self._relatively(mass - math.exp(asked) * inverse) + self.added(epsilon))

    def delta_by_plancherel(self, epsilon: float) -> float:
        """The bound of `delta`, computed as an inner product of transforms (Lemma D.1)."""
        asked, start = self._asked(epsilon)
        losses = self._losses(start)
        weights = np.maximum(-np.expm1(asked - losses), 0.0) * self._scale(losses)
        products = np.fft.rfft(np.concatenate((np.zeros(start), weights))) * self.transform.conj()
        product = float(2 * products.real.sum() - products[0].real - products[-1].real) / len(self.masses)
        return min(1.0, self._relatively(product) + self.added(epsilon))

    def added(self, epsilon: float) -> float:
        """The part of delta at this epsilon that is added for losses beyond the window and for rounding.

        It is an upper bound, as the norm of the scale factors replaces the smaller norm of the weights.
        """
        asked, start = self._asked(epsilon)
        mass, inverse, squares = map(float, self.sums[:, start])
        points = len(self.masses)
        roundings = 7 * math.log2(points)
        relative = _UNIT * (self.count * (roundings + self.roundings) + 2 * roundings)
        summed = 4 * _UNIT * points * (abs(mass) + math.exp(asked) * abs(inverse))
        return self.beyond + relative * math.sqrt(squares) + summed

    def epsilon(self, delta: float) -> float:
        """The least epsilon with at most this delta, by bisection to a relative 1e-12; infinity if it is above 600.

        Raises ArithmeticError if Plancherel's identity does not hold at this epsilon.
        """
        if self.delta(0.0) <= delta:
            return 0.0
        low, high = 0.0, min(self.spacing * (self.first + len(self.masses)), _EPSILON_MOST)
        if self.delta(high) > delta:
            return math.inf
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            if self.delta(middle) <= delta:
                high = middle
            else:
                low = middle
        if not abs(self.delta(high) - self.delta_by_plancherel(high)) <= 2 * self.added(high) + 1e-9 * delta:
            raise ArithmeticError("the composition and its transform are not of one distribution")
        return high

    def _asked(self, epsilon: float) -> tuple[float, int]:
        """Epsilon less the most by which losses may be too small, and the first place of a larger loss."""
        if not 0 <= epsilon <= _EPSILON_MOST:
            raise ValueError(f"epsilon must be from 0 to {_EPSILON_MOST}, got {epsilon}")
        asked = epsilon - self.count * LOSS_ERROR
        return asked, min(max(math.floor(asked / self.spacing) + 1 - self.first, 0), len(self.masses))

    def _losses(self, start: int) -> Reals:
        losses: Reals = self.spacing * np.arange(self.first + start, self.first + len(self.masses), dtype=np.float64)
        return losses

    def _scale(self, losses: Reals) -> Reals:
        """The factors (n,) that remove the tilt at these losses (n,)."""
        scale: Reals = np.exp(np.minimum(self.log_moment - self.tilt * losses, _EXPONENT_MOST))
        return scale

    def _relatively(self, delta: float) -> float:
        return delta * (1 + self.count * _RELATIVE)


class Window(NamedTuple):
    """The range of losses over which a composition is computed, and the tilt."""

    tilt: float
    first: int
    points: int


class Composition(NamedTuple):
    """The facts about a composition that its transform does not give."""

    log_moment: float  # ln E e^(tilt S)
    moments: Reals  # ln E e^(s S) (tilts,)
    steps: int
    infinite: float
    roundings: int


def composed_losses(steps: Sequence[Steps], *, delta: float) -> tuple[ComposedLosses, ComposedLosses]:
    """The compositions of removing and of adding one individual, computed for epsilons at or near this delta.

    Raises ValueError for no step, a mu outside (0, 20], a rate outside [1e-12, 1], a number of steps outside 1 to
    STEPS_MAX, and a delta outside [DELTA_MIN, 1).
    """
    refuse_steps(steps, delta)
    spacing = spacing_of(steps)
    while True:
        parts = _parts(steps, spacing)
        windows = [window_of(moments, sum(each.times for each in steps), spacing, delta) for _, moments in parts]
        if max(each.points for each in windows) <= POINTS_MAX:
            break
        spacing *= 2  # farther apart is above the truth by more, and never below it
    removing, adding = (
        _composed(losses, moments, spacing, window) for (losses, moments), window in zip(parts, windows, strict=True)
    )
    return removing, adding


def epsilon_of_steps(steps: Sequence[Steps], *, delta: float) -> float:
    """The epsilon of a composition at this delta, the larger of both directions; 0 without steps.

    It is never below the truth, and above it by about 1e-3 at most (measured in docs/natural-filters.md). Raises
    ValueError as `composed_losses` does.
    """
    if not steps:
        return 0.0
    return max(each.epsilon(delta) for each in composed_losses(steps, delta=delta))


def delta_of_steps(steps: Sequence[Steps], *, epsilon: float) -> float:
    """The delta of a composition at this epsilon, the larger of both directions; 0 without steps.

    It is never below the truth. The window is chosen for the delta of Chernoff's bound, at least DELTA_MIN. Raises
    ValueError for a negative epsilon, and as `composed_losses` does.
    """
    if not steps:
        return 0.0
    refuse_steps(steps, 0.5)
    if epsilon < 0:
        raise ValueError(f"epsilon must not be negative, got {epsilon}")
    spacing = spacing_of(steps)
    exponents = [float((moments - TILTS * epsilon).min()) for _, moments in _parts(steps, spacing)]
    delta = min(0.5, max(DELTA_MIN, math.exp(min(0.0, max(exponents)))))
    return max(each.delta(epsilon) for each in composed_losses(steps, delta=delta))


def spacing_of(steps: Sequence[Steps]) -> float:
    """The spacing h of losses at which rounding moves epsilon by less than 1e-3; it depends on the steps alone.

    k steps add about k h^2 / 6 to the variance of the sum and k h^2 / 12 to its mean. So epsilon moves by 1e-5 times
    the standard deviation of the sum, and by 5e-4 times its distance from the mean.
    """
    count = sum(each.times for each in steps)
    variance = sum(each.times * _variance(each.mu, each.rate) for each in steps)
    return math.sqrt(_FINENESS * math.sqrt(variance) / count)


def _variance(mu: float, rate: float) -> float:
    """The approximate variance of a step's loss: the chi-square divergence, or mu^2, as without sampling, if less."""
    return min(rate * rate * math.expm1(min(mu * mu, 600.0)), mu * mu)


@lru_cache(maxsize=1024)  # mostly the same few mus, at the same spacing
def losses_of(mu: float, rate: float, spacing: float) -> tuple[GridLosses, GridLosses]:
    """The result of `losses_of_step`, cached."""
    return losses_of_step(mu, rate=rate, spacing=spacing)


def _parts(steps: Sequence[Steps], spacing: float) -> list[tuple[list[tuple[GridLosses, int]], Reals]]:
    """The losses and numbers of the steps, and the moments of their composition: for removing, then for adding."""
    parts = [[(losses_of(*each[:2], spacing)[direction], each.times) for each in steps] for direction in (0, 1)]
    return [(each, log_moments(each, spacing)) for each in parts]


def _composed(
    parts: Sequence[tuple[GridLosses, int]], moments: Reals, spacing: float, window: Window
) -> ComposedLosses:
    """The composition of steps with these losses and numbers."""
    transform = np.ones(window.points // 2 + 1, dtype=np.complex128)
    log_moment = 0.0
    for losses, count in parts:
        tilted, own_moment = tilted_masses(losses, spacing, window.tilt)
        transform *= _power(np.fft.rfft(folded(losses, tilted, window.points)), count)
        log_moment += count * own_moment
    infinite = sum(count * losses.infinite for losses, count in parts)
    count = sum(count for _, count in parts)
    whole = Composition(log_moment=log_moment, moments=moments, steps=count, infinite=infinite, roundings=12)
    return windowed(transform, window, spacing, whole)


def windowed(
    transform: NDArray[np.complex128], window: Window, spacing: float, composition: Composition
) -> ComposedLosses:
    """The losses of a composition, from its transform over places modulo the number of the window's points."""
    shift = window.first % window.points
    places = np.arange(len(transform)) * shift % window.points  # exact, as a phase of large numbers is not
    exponents = composition.moments - TILTS * spacing * (window.first + window.points)
    return ComposedLosses(
        spacing=spacing,
        first=window.first,
        masses=np.roll(np.fft.irfft(transform, window.points), -shift),
        transform=transform * np.exp(2j * np.pi / window.points * places),
        tilt=window.tilt,
        log_moment=composition.log_moment,
        count=composition.steps,
        beyond=math.exp(float(exponents.min())) + composition.infinite,
        roundings=composition.roundings,
    )


def window_of(moments: Reals, count: int, spacing: float, delta: float) -> Window:
    """The smallest window, and its tilt, by the moments ln E e^(s S) at tilts with negligible rounding errors.

    The top is where Chernoff's bound is a millionth of delta. A sum outside the window is taken for a sum that is
    larger or smaller by the window's width. If it is below the window, its weight changes by e^(-tilt width); if it is
    above, and taken for one that still exceeds epsilon, by e^(tilt width). Both contributions are made a millionth of
    delta too.
    """
    lost = -math.log(delta)
    top = float(((moments + lost + _SHARE) / TILTS).min())
    least = float(((moments + lost) / TILTS).min())  # Chernoff's epsilon, which is above the true one
    rounding = moments - TILTS * least + lost + math.log(count * _RELATIVE)
    differences = TILTS - TILTS[:, None]
    with np.errstate(divide="ignore"):
        from_above = np.where(differences > 0, (moments + lost + _SHARE) / differences, np.inf).min(axis=1)
    widths = np.maximum(np.maximum(from_above, (lost + _SHARE) / TILTS), top) + count * LOSS_ERROR
    allowed = rounding <= max(float(rounding.min()), math.log(1e-5))
    best = int(np.argmin(np.where(allowed, widths, np.inf)))
    points = 2 ** math.ceil(math.log2(float(widths[best]) / spacing + 4))
    return Window(tilt=float(TILTS[best]), first=math.ceil(top / spacing) + 1 - points, points=points)


def log_moments(parts: Sequence[tuple[GridLosses, int]], spacing: float) -> Reals:
    """The logarithms (tilts,) of E e^(s S) for the sum S of a composition, without infinite losses."""
    moments = np.zeros(len(TILTS))
    for losses, count in parts:
        moments += count * _moments(losses, spacing)
    return moments


def _moments(losses: GridLosses, spacing: float) -> Reals:
    """The logarithms (tilts,) of E e^(s L) for the loss L of one step, without infinite losses."""
    with np.errstate(divide="ignore"):
        logs, values = np.log(losses.masses), spacing * losses.places
    found = np.empty(len(TILTS))
    for row, tilt in enumerate(TILTS):
        exponents = logs + tilt * values
        largest = exponents.max()
        found[row] = largest + np.log(np.exp(exponents - largest).sum())
    return found


def tilted_masses(losses: GridLosses, spacing: float, tilt: float) -> tuple[Reals, float]:
    """The masses (n,) times e^(tilt l), divided by their sum; and the logarithm of this sum."""
    exponents = tilt * spacing * losses.places
    with np.errstate(divide="ignore"):
        largest = float((np.log(losses.masses) + exponents).max())
    heights = losses.masses * np.exp(np.minimum(exponents - largest, 700.0))
    total = float(heights.sum())
    return heights / total, largest + math.log(total)


def folded(losses: GridLosses, masses: Reals, points: int) -> Reals:
    """The masses (points,) added up by their places modulo the number of the window's points."""
    return np.bincount(losses.places % points, weights=masses, minlength=points).astype(np.float64, copy=False)


def _power(transform: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    """Each number to a whole power, by squaring."""
    power = np.ones(len(transform), dtype=np.complex128)
    while count:
        if count & 1:
            power *= transform
        count >>= 1
        if count:
            transform = transform * transform
    return power


def refuse_steps(steps: Sequence[Steps], delta: float) -> None:
    """Raise ValueError for steps or a delta that `composed_losses` refuses."""
    if not steps or not DELTA_MIN <= delta < 1:
        raise ValueError(f"there must be a step, and delta from {DELTA_MIN} to below 1, got {delta}")
    for mu, rate, count in steps:
        refuse_rate(rate)
        if not (0 < mu <= MU_MAX and rate > 0 and 1 <= count <= STEPS_MAX):
            raise ValueError(f"steps need a mu from 0 to {MU_MAX}, a rate, and a count up to {STEPS_MAX}")
