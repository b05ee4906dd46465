"""Vectors scaled to within a bound: their direction is kept, and integers decide that they are within.

Feldman and Zrnic (2021), Algorithm 3: the factor makes the charge what is left of the budget. The scaled vector is
truncated toward zero and measured again. The only floats are factors and products, elementwise, so that a vector's
result does not depend on the vectors beside it.
"""

import numpy as np

from service.arrays import HALF_BITS, Integers, halves


def shortened(values: Integers, firsts: Integers, norms_squared_max: Integers) -> tuple[Integers, Integers]:
    """Vectors times their bounds over their norms, truncated toward zero, and their new squared norms, (k,).

    Every vector is beyond its bound `norms_squared_max` (k,), which is from 0 to 2^61, and within it afterwards. Where
    rounding has made a factor slightly too large, the factor is reduced until the vector is within. Raises ValueError
    for any other bound.
    """
    if norms_squared_max.min(initial=0) < 0 or norms_squared_max.max(initial=0) > 2**61:
        raise ValueError("a squared norm is bounded by a number between 0 and 2^61")
    begins = np.zeros(values.size, dtype=np.int64)
    begins[firsts[1:]] = 1
    owners = np.cumsum(begins)
    magnitudes = np.abs(values)
    # A vector beyond 32 bits loses low bits first, so that squares fit 64; the bound is below 31 bits: it stays beyond.
    bits = np.frexp(np.maximum.reduceat(magnitudes, firsts).astype(np.float64))[1]
    small = (magnitudes >> np.maximum(bits - HALF_BITS, 0).astype(np.int64)[owners]).astype(np.uint64)
    high, low = halves(small * small, firsts)
    factors = np.sqrt(norms_squared_max.astype(np.float64)) / np.sqrt(high * float(2**HALF_BITS) + low)
    cut, attempt = (small * factors[owners]).astype(np.int64), 0
    while (beyond := (norms := np.add.reduceat(cut * cut, firsts)) > norms_squared_max).any():
        factors[beyond] *= 1 - 2.0 ** (attempt - 50)  # at the fiftieth attempt zero
        cut, attempt = (small * factors[owners]).astype(np.int64), attempt + 1
    return np.sign(values) * cut, norms
