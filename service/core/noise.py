"""Exact rounded Gaussian noise, round(N(0, sigma^2)) in whole grid steps, by certified Box-Muller.

Adding round(Z) to an integer m is rounding m + Z. So the answer is a post-processing of the Gaussian mechanism at any
sigma and any grid, and every theorem about that mechanism holds for it. A discrete Gaussian is no such post-processing
(it is not 1/sigma-GDP). A float Gaussian, whatever its generator, has gaps between its values that tell inputs apart
(Mironov 2012; Jin et al. 2022).

Exactness: the two numbers of a pair are a function of two infinite uniform bit strings, U1 and U2, of which 64 bits are
drawn first. Floats evaluate round(sigma sqrt(-2 ln U1) (cos, sin)(2 pi U2)) with a certified error. Where a number is
still undecided, the same strings are extended by fresh words and evaluated in decimal interval arithmetic until both
numbers of the pair are decided. An undecided pair is never dropped, since that would condition its law. Its two numbers
are never refined separately, since they share their bits ("interval refining", Haney et al. 2022, arXiv 2207.13793).
"""

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from math import cos, floor, log, pi, sin, sqrt
from typing import Final

import numpy as np

from service.arrays import Integers, Words

Entropy = Callable[[int], Words]  # a count to that many fresh, independent, uniform 64-bit words
SIGMA_STEPS_MIN: Final = 0.3
SIGMA_STEPS_MAX: Final = 2.0**32
CHUNK: Final = 2**16
_FEW: Final = 8  # pairs that are drawn sooner one by one than side by side
# For _W1_MIN <= w1 < _W1_END the float z is within ERROR of the true one, if log, cos and sin err by less than 64
# units in the last place (their authors promise fewer than 4). With u = U1, R = sqrt(-2 ln u), 2^-8 < R < 5.27, due to
#   log, cos, sin at 2^-46 each and the angle's three roundings:   R (2^-47 + 2^-46 + 2^-49.7)    < 2^-42.7
#   undrawn bits of u, 2^-65, and its roundings, 2^-52 u:            (2^-65 + 2^-52 u) / (u R)      < 2^-43.9
#   sqrt, the two products and the distance to an integer:           4 * 2^-53 (1 + R)              < 2^-48
ERROR: Final = 2.0**-42
_W1_MIN: Final = 2**44
_W1_END: Final = 2**64 - 2**47
# With 100 digits, rounding moves sigma * z by less than this, even for u = 1 - 2^-192, where the logarithm cancels.
DECIMAL: Final = Context(prec=100)
DECIMAL_ERROR: Final = Decimal("1e-55")
# Three words leave a pair undecided with probability below 2^-140: a source that would need a fourth is not random.
WORDS_MAX: Final = 3
_PI: Final = Decimal(
    "3.1415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170679821480865"
)


class EntropyFailure(Exception):
    """The entropy source returned something other than fresh uniform words; nothing was answered."""


def rounded_gaussian(count: int, sigma_steps: float, entropy: Entropy) -> Integers:
    """`count` independent draws of round(N(0, sigma_steps^2)), exactly, in grid steps: int64 of shape (count,).

    Adding the draws to an integer vector with squared norm n is n/(2 sigma^2)-zCDP and sqrt(n)/sigma-GDP (Bun and
    Steinke 2016, Proposition 1.6; Dong, Roth and Su 2022, Theorem 2.7; post-processing). No draw exceeds 17 sigma,
    since U1 is at least 2^-192. Each chunk of up to 2^16 draws uses words in this order: one word of U1 for each pair,
    one of U2 for each pair, then two (U1, U2) for each refinement of an undecided pair. Raises ValueError for a count
    below 1 or a sigma outside [0.3, 2^32], EntropyFailure for a broken source.
    """
    if count < 1:
        raise ValueError(f"count must be positive, got {count}")
    if not SIGMA_STEPS_MIN <= sigma_steps <= SIGMA_STEPS_MAX:
        raise ValueError(f"sigma_steps must be between {SIGMA_STEPS_MIN} and 2^32, got {sigma_steps}")
    if count <= 2 * _FEW:
        return _few(count, sigma_steps, entropy)
    draws = np.empty(count, dtype=np.int64)
    for start in range(0, count, CHUNK):
        chunk = draws[start : start + CHUNK]
        chunk[:] = _pairs((chunk.size + 1) // 2, sigma_steps, entropy).reshape(-1)[: chunk.size]
    return draws


def _pairs(pairs: int, sigma_steps: float, entropy: Entropy) -> Integers:
    """The draws (2, pairs): a row of cosines and a row of sines."""
    words = fresh_words(2 * pairs, entropy)
    first, second = words[:pairs], words[pairs:]
    radius = first.astype(np.float64)
    radius += 0.5
    radius *= 2.0**-64
    np.log(radius, out=radius)
    radius *= -2.0
    np.sqrt(radius, out=radius)
    radius *= sigma_steps
    # The angle of U2 - 1 is that of U2, and being smaller by half it is rounded less.
    angle = second.view(np.int64) * (np.pi * 2.0**-63)
    scaled = np.empty((2, pairs))
    np.cos(angle, out=scaled[0])
    np.sin(angle, out=scaled[1])
    scaled *= radius
    nearest = np.rint(scaled)
    draws = nearest.astype(np.int64)
    scaled -= nearest
    near_a_half = np.abs(scaled, out=scaled) >= 0.5 - sigma_steps * ERROR
    undecided = near_a_half.any(axis=0)
    undecided |= (first < _W1_MIN) | (first >= _W1_END)
    for pair in np.flatnonzero(undecided).tolist():
        draws[:, pair] = _refined(int(first[pair]), int(second[pair]), Decimal(sigma_steps), entropy)
    return draws


def _few(count: int, sigma_steps: float, entropy: Entropy) -> Integers:
    """The draws (count,), worked out pair by pair. They equal those of `_pairs`, since both decide with certainty."""
    pairs = (count + 1) // 2
    words = fresh_words(2 * pairs, entropy).tolist()
    drawn = [_pair(words[pair], words[pairs + pair], sigma_steps, entropy) for pair in range(pairs)]
    return np.array([*(cosine for cosine, _ in drawn), *(sine for _, sine in drawn)][:count], dtype=np.int64)


def _pair(first: int, second: int, sigma_steps: float, entropy: Entropy) -> tuple[int, int]:
    """The two numbers of the pair whose strings begin with these words."""
    if _W1_MIN <= first < _W1_END:
        radius = sqrt(-2.0 * log((first + 0.5) * 2.0**-64)) * sigma_steps
        angle = (second - (second >> 63 << 64)) * (pi * 2.0**-63)
        scaled = cos(angle) * radius, sin(angle) * radius
        nearest = round(scaled[0]), round(scaled[1])
        if max(abs(scaled[0] - nearest[0]), abs(scaled[1] - nearest[1])) < 0.5 - sigma_steps * ERROR:
            return nearest
    return _refined(first, second, Decimal(sigma_steps), entropy)


def fresh_words(count: int, entropy: Entropy) -> Words:
    """Words of the source, (count,). Raises EntropyFailure for anything else."""
    words = entropy(count)
    if words.dtype != np.uint64 or words.shape != (count,):
        raise EntropyFailure("the entropy source did not return the words it was asked for")
    return words


def _refined(first: int, second: int, sigma: Decimal, entropy: Entropy) -> tuple[int, int]:
    """The two numbers of the pair whose strings begin with these words, extended until both numbers are decided."""
    for words in range(2, WORDS_MAX + 1):
        more_first, more_second = fresh_words(2, entropy).tolist()
        first, second = first << 64 | more_first, second << 64 | more_second
        if first > 0:  # else U1 may still be zero, and ln U1 anything
            lows, highs = _interval(first, second, 64 * words, sigma)
            if lows == highs:
                return lows
    raise EntropyFailure("the entropy source repeats itself")


def _interval(first: int, second: int, bits: int, sigma: Decimal) -> tuple[tuple[int, int], tuple[int, int]]:
    """Lower and upper bounds of both numbers, for all U1 in (first, first + 1) 2^-bits and U2 likewise."""
    with localcontext(DECIMAL):
        scale = Decimal(2**bits)
        squared = -2 * (Decimal(first + 1) / scale).ln()
        # -2 ln(first / scale) is larger than that by 2 ln(1 + 1/first) <= 2/first.
        radii = sigma * squared.sqrt(), sigma * (squared + 2 / Decimal(first)).sqrt()
        reach = _PI / scale
        lows, highs = [], []
        for middle in _cos_sin(2 * _PI * (second + Decimal("0.5")) / scale):
            corners = [radius * (middle + side) for radius in radii for side in (-reach, reach)]
            lows.append(floor(min(corners) - DECIMAL_ERROR + Decimal("0.5")))
            highs.append(floor(max(corners) + DECIMAL_ERROR + Decimal("0.5")))
    return (lows[0], lows[1]), (highs[0], highs[1])


def _cos_sin(angle: Decimal) -> tuple[Decimal, Decimal]:
    """The cosine and sine of an angle in [0, 2 pi], by 120 terms of e^(i angle). The remainder is below 1e-102."""
    cosine, sine, term = Decimal(1), Decimal(0), Decimal(1)
    for order in range(1, 121, 2):
        term = term * angle / order
        sine += term
        term = -term * angle / (order + 1)
        cosine += term
    return cosine, sine
