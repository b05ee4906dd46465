"""Steps of a select item that are no power of two: an item's values as whole numbers of steps, exactly.

An item whose noise has a sigma of its own is counted in steps of `ldexp(sigma, -s)`. One `s` serves all items of a
query, so that the noise on every coordinate has 2^s steps. A value that is no multiple of a step is truncated toward
zero. So a value within its declared bound is within the bound in steps too, and a worst case in query units also bounds
the worst case in steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp
from typing import Final

import numpy as np

from service.arrays import Integers, Reals

STEPS_LOG2: Final = 28
"""The usual number of steps in an item's noise, as a power of two. Up to it the sampler rarely needs its slow path."""
STEPS_MAX: Final = 2**58
"""The most steps of a quotient. An estimate in doubles is then off by less than 2^7, and its residue fits 64 bits."""
_MANTISSA_BITS: Final = 53
_WORD: Final = 2**64


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotient:
    """The number `value * 2**shift / divisor`, truncated toward zero. `divisor` is odd and below 2^53."""

    shift: int
    divisor: int

    def of(self, value: int) -> int:
        """The quotient of one value, of any size."""
        magnitude = abs(value) << self.shift if self.shift >= 0 else abs(value) >> -self.shift
        return magnitude // self.divisor if value >= 0 else -(magnitude // self.divisor)

    def of_all(self, values: Integers) -> Integers:
        """The quotients of `values` (m,). The values are below 2^60 in size, their quotients below 2^58."""
        (found,) = quotients([self])(values[np.newaxis])
        return np.asarray(found, dtype=np.int64)


def quotient_for(*, step_log2: int, size: float) -> Quotient:
    """The quotient that turns values in units of 2**step_log2 into steps of `size`, a positive double."""
    mantissa, exponent = frexp(size)
    whole = int(mantissa * 2.0**_MANTISSA_BITS)
    zeros = (whole & -whole).bit_length() - 1
    return Quotient(shift=step_log2 - (exponent - _MANTISSA_BITS + zeros), divisor=whole >> zeros)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quotients:
    """Several quotients (j of them) side by side, one for each row of values. All arrays are (j, 1).

    Doubles estimate a quotient, and the residue of the estimate, known modulo 2^64, corrects it.
    """

    rights: Integers
    factors: Reals  # the estimates' doubles
    multipliers: Integers  # 2^shift modulo 2^64
    divisors: Integers

    def __call__(self, values: Integers) -> Integers:
        """The quotients of `values` (j, m), row by row; sizes as in `Quotient.of_all`."""
        magnitudes = np.right_shift(np.abs(values), self.rights)
        found = (magnitudes * self.factors).astype(np.int64)
        residues = magnitudes * self.multipliers
        residues -= found * self.divisors
        found += np.floor_divide(residues, self.divisors, out=residues)
        return np.multiply(found, np.sign(values), out=found)


def quotients(each: Sequence[Quotient]) -> Quotients:
    """The given quotients side by side."""
    shifts = [quotient.shift for quotient in each]
    lefts = [max(shift, 0) for shift in shifts]
    return Quotients(
        rights=_upright([min(max(-shift, 0), 63) for shift in shifts]),
        factors=np.array([[2.0**left / quotient.divisor] for left, quotient in zip(lefts, each, strict=True)]),
        multipliers=_upright([_wrapped(1 << left) for left in lefts]),
        divisors=_upright([quotient.divisor for quotient in each]),
    )


def _wrapped(number: int) -> int:
    """The number modulo 2^64, as a signed one."""
    return (number + _WORD // 2) % _WORD - _WORD // 2


def _upright(numbers: Sequence[int]) -> Integers:
    return np.array(numbers, dtype=np.int64)[:, np.newaxis]
