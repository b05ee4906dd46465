"""Laplace numbers by mpmath at 400 bits from the whole bit strings: what the sampler must return, always."""

from collections.abc import Sequence

import mpmath

_REALS = mpmath.MPContext()
_REALS.prec = 400


def drawn(words: Sequence[int], scale: float) -> int:
    """The nearest integer of the number whose string begins with these words: a sign, then the bits of U."""
    bits = 64 * len(words) - 1
    string = 0
    for word in words:
        string = string << 64 | word
    uniform = (_REALS.mpf(string & (1 << bits) - 1) + 0.5) / _REALS.mpf(2) ** bits
    magnitude = int(_REALS.floor(-scale * _REALS.log(uniform) + 0.5))
    return -magnitude if string >> bits else magnitude


def words_of(magnitude: float, scale: float, *, shift: int, negative: bool = False) -> list[int]:
    """Three words of the string of a magnitude in steps, but for a change of U by a 2^shift-th of it."""
    uniform = _REALS.exp(-_REALS.mpf(magnitude) / scale)
    string = int(_REALS.floor(uniform * (1 + _REALS.sign(shift) * _REALS.mpf(2) ** -abs(shift)) * _REALS.mpf(2) ** 191))
    string |= negative << 191
    return [string >> 64 * place & 2**64 - 1 for place in (2, 1, 0)]


def log(argument: float) -> mpmath.mpf:
    """The logarithm of a double."""
    return _REALS.log(_REALS.mpf(argument))
