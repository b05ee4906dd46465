"""The ledger's unit: 2^-40 of zCDP rho, in int64.

Binary floats cannot hold a budget: six charges of 0.01 add up to 0.060000000000000005. Integers add exactly in any
order, so that spent + charge <= limit means what it says. Charges are rounded up, limits down.
"""

from decimal import Decimal
from fractions import Fraction
from typing import Final

UNITS_PER_RHO: Final = 2**40

CHARGE_UNITS_MAX: Final = 2**62
"""Where a charge saturates: more than any limit, so unaffordable, and a spent total plus it still fits an int64."""

LIMIT_UNITS_MAX: Final = 2**61
"""The largest limit (2^21 rho). Spent totals stay below it too, because they stay below a limit."""


def units_down(rho: Fraction) -> int:
    """The largest number of units not above `rho`.

    Raises ValueError when rho is negative or above LIMIT_UNITS_MAX units.
    """
    units = rho.numerator * UNITS_PER_RHO // rho.denominator
    if units < 0:
        raise ValueError(f"rho must not be negative, got {rho}")
    if units > LIMIT_UNITS_MAX:
        raise ValueError(f"rho must be at most {LIMIT_UNITS_MAX // UNITS_PER_RHO}, got {rho}")
    return units


def rho_of_units(units: int) -> Decimal:
    """The rho that `units` stand for, exactly, with as few digits as it has.

    Raises ValueError when units are negative.
    """
    if units < 0:
        raise ValueError(f"units must not be negative, got {units}")
    twos = min(40, (units & -units).bit_length() - 1) if units > 0 else 40
    places = 40 - twos
    # The constructor is exact, whereas arithmetic would round to the caller's decimal context.
    return Decimal(f"{(units >> twos) * 5**places}E-{places}")
