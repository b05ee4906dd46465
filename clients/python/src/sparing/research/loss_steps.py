"""The privacy loss distribution of one Gaussian step, subsampled or not, on a grid of losses. No filter.

The dominating pair of a step is N(0, 1) and the mixture (1 - q) N(0, 1) + q N(mu, 1) (Koskela, Tobaben and Honkela
2023, Lemma 8 and Appendix D.3). For removing the individual, P is the mixture; for adding it, Q is the mixture. The
loss ln(P/Q) is monotone in the output, so that the masses of P and Q between two losses are differences of normal
tails.

The mass between two losses of the grid is split onto these two so that the masses under P and under Q both stay
(Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022). The true pair is then a post-processing of the pair on the grid.
So the hockey-stick divergence is nowhere below the truth, also for compositions. With the spacing h, a loss moves by
h^2 / 12 on average, instead of by h / 2. Losses below the grid are raised to its first loss, and losses above the grid
count as infinite.

Rounding: some mass of each cell, as much as arithmetic may have lost, is moved from its lower loss to its upper one.
The true loss may exceed the grid's by up to LOSS_ERROR, and the mass from any loss on is right to a relative
MASS_ERROR. The composition accounts for both errors.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

REACH: Final = 12.0
"""The standard deviations of noise that are covered; losses beyond, of probability 2e-33, count as infinite."""
LOSS_ERROR: Final = 2.0**-43
"""A bound on the error in the boundaries of cells, as a loss: some ten roundings of numbers up to 500."""
MASS_ERROR: Final = 2.0**-43
"""A bound on the relative error of the mass from any loss on."""

_TAIL_ERROR: Final = 2.0**-43  # of a normal tail: its argument, up to 32, is off by some roundings

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class GridLosses:
    """A distribution of losses: masses[i] at the loss (first + i) * spacing, and the mass of an infinite loss."""

    first: int
    masses: Reals
    infinite: float

    @property
    def places(self) -> NDArray[np.int64]:
        """The losses (n,) of the masses, divided by the spacing."""
        return self.first + np.arange(len(self.masses), dtype=np.int64)


def losses_of_step(mu: float, *, rate: float, spacing: float) -> tuple[GridLosses, GridLosses]:
    """The losses of removing and of adding an individual with this mu (norm / sigma), sampled at this rate.

    `mu` must be in (0, 20], `rate` in (0, 1] and `spacing` above 0; the callers check this.
    """
    unsampled = mu * np.array([-REACH, mu + REACH]) - mu * mu / 2
    low, high = np.logaddexp(math.log1p(-rate) if rate < 1 else -np.inf, math.log(rate) + unsampled)
    places = np.arange(math.floor(low / spacing), math.ceil(high / spacing) + 1)
    losses = places * spacing
    # ln((e^l - 1 + q) / q), the loss without sampling; -inf below ln(1 - q)
    grown = np.maximum(-(1 - rate) / rate * np.expm1(-losses), -1.0) if rate < 1 else np.zeros(len(losses))
    with np.errstate(divide="ignore"):
        outputs = (losses + np.log1p(grown)) / mu + mu / 2
    out, out_tails = _between(outputs)
    shifted, shifted_tails = _between(outputs - mu)
    mixed, mixed_tails = (1 - rate) * out + rate * shifted, (1 - rate) * out_tails + rate * shifted_tails
    removing = _split(mixed, out, losses, spacing, mixed_tails + np.exp(losses[1:]) * out_tails)
    adding = _split(
        out[::-1], mixed[::-1], -losses[::-1], spacing, (out_tails + np.exp(-losses[:-1]) * mixed_tails)[::-1]
    )
    first, last = float(outputs[0]), float(outputs[-1])
    below = (1 - rate) * _tail(-first) + rate * _tail(mu - first)
    above = (1 - rate) * _tail(last) + rate * _tail(last - mu)
    return (
        _whole(int(places[0]), removing, below=below, above=above),
        _whole(-int(places[-1]), adding, below=_tail(last), above=_tail(-first)),
    )


def _split(p: Reals, q: Reals, losses: Reals, spacing: float, tails: Reals) -> Reals:
    """The masses (n + 1,) at the losses (n + 1,) that replace the cells' masses (n,) under P and under Q."""
    lower = (q * np.exp(losses[1:]) - p - _TAIL_ERROR * tails) / math.expm1(spacing)
    lower = np.minimum(np.maximum(lower, 0.0), p)
    masses = np.zeros(len(losses))
    masses[:-1] += lower
    masses[1:] += p - lower
    return masses


def _whole(first: int, masses: Reals, *, below: float, above: float) -> GridLosses:
    """The losses on the grid, with the mass below the grid at its first loss, and the mass above it at infinity."""
    masses[0] += below
    return GridLosses(first=first, masses=masses, infinite=above)


def _between(outputs: Reals) -> tuple[Reals, Reals]:
    """The normal mass (n,) between increasing outputs (n + 1,), and the normal tail (n,) that contains each mass."""
    tails = np.array([math.erfc(each) for each in (np.abs(outputs) / math.sqrt(2)).tolist()]) / 2
    low, high = tails[:-1], tails[1:]
    is_left, is_right = outputs[1:] <= 0, outputs[:-1] > 0
    masses: Reals = np.where(is_left, high - low, np.where(is_right, low - high, 1 - low - high))
    return masses, np.where(is_left, high, np.where(is_right, low, 1.0))


def _tail(x: float) -> float:
    """The probability that a standard normal number is above x, with a small relative error."""
    return math.erfc(x / math.sqrt(2)) / 2
