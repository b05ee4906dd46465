"""Hockey-stick divergences of one subsampled Gaussian step, in closed form and to 30 digits."""

from typing import Final

import mpmath

REALS: Final = mpmath.MPContext()
REALS.dps = 30


def hockey_stick(mu: float, rate: float, epsilon: float, *, adding: bool) -> mpmath.mpf:
    """The divergence H at e^epsilon, in closed form: the loss passes epsilon at one output."""
    m, q, e = REALS.mpf(mu), REALS.mpf(rate), REALS.exp(REALS.mpf(epsilon))

    def above(x: mpmath.mpf) -> mpmath.mpf:
        return REALS.erfc(x / REALS.sqrt(2)) / 2

    level = (1 / e if adding else e) - (1 - q)
    if level <= 0:  # of adding no output has a larger loss; of removing each has
        return REALS.zero if adding else 1 - e
    x = REALS.log(level / q) / m + m / 2
    if adding:
        mixed = (1 - q) * above(-x) + q * above(m - x)
        return above(-x) - e * mixed
    mixed = (1 - q) * above(x) + q * above(x - m)
    return mixed - e * above(x)
