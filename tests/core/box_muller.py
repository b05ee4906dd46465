"""The two numbers of a pair by mpmath at 400 bits, from the whole bit strings: what the sampler must return, always."""

from collections.abc import Sequence

import mpmath

_REALS = mpmath.MPContext()
_REALS.prec = 400

Pair = tuple[mpmath.mpf, mpmath.mpf]


def standard_pair(first: Sequence[int], second: Sequence[int]) -> Pair:
    """sqrt(-2 ln U1) (cos, sin)(2 pi U2), the strings given as 64-bit words, most significant first."""
    radius = _REALS.sqrt(-2 * _REALS.log(_uniform(first)))
    cosine, sine = _REALS.cos_sin(2 * _REALS.pi * _uniform(second))
    return radius * cosine, radius * sine


def rounded(pair: Pair, sigma: float) -> tuple[int, int]:
    """The nearest integers of sigma times the pair."""
    cosine, sine = (int(_REALS.floor(sigma * number + 0.5)) for number in pair)
    return cosine, sine


def words_of_radius(steps: mpmath.mpf, sigma: float, *, shift: mpmath.mpf) -> list[int]:
    """Three words of the U1 whose radius times sigma is so many steps, but for a relative shift."""
    radius = steps / sigma * (1 + shift)
    return _words(_REALS.exp(-(radius**2) / 2))


def words_of_sine(first: Sequence[int], sigma: float, *, shift: mpmath.mpf) -> list[int]:
    """Three words of the least U2 that makes the second number half a step, but for a relative shift of U2."""
    radius = _REALS.sqrt(-2 * _REALS.log(_uniform(first)))
    return _words(_REALS.asin(1 / (2 * sigma * radius)) / (2 * _REALS.pi) * (1 + shift))


def number(digits: str | int) -> mpmath.mpf:
    """A real at 400 bits."""
    return _REALS.mpf(digits)


def elementary(name: str, argument: float) -> mpmath.mpf:
    """Its log, cos or sin, by name."""
    return getattr(_REALS, name)(_REALS.mpf(argument))


def _words(uniform: mpmath.mpf) -> list[int]:
    bits = int(_REALS.floor(uniform * _REALS.mpf(2) ** 192))
    return [bits >> 64 * place & 2**64 - 1 for place in (2, 1, 0)]


def _uniform(words: Sequence[int]) -> mpmath.mpf:
    bits = 0
    for word in words:
        bits = bits << 64 | word
    return (bits + _REALS.mpf(0.5)) / _REALS.mpf(2) ** (64 * len(words))
