"""The service's accountings and conversions, which `sparing.research` runs; they need numpy and mpmath."""

from service.accounting.accountings import GAUSSIAN, Accounting, RenyiAccounting
from service.accounting.conversions import (
    Conversion,
    Real,
    amount_of_best_order,
    amount_of_order,
    amount_of_units,
    delta_of_mu,
    real,
)
from service.core.charge import CHARGE_UNITS_MAX, UNITS_PER_RHO

__all__ = [
    "CHARGE_UNITS_MAX",
    "GAUSSIAN",
    "UNITS_PER_RHO",
    "Accounting",
    "Conversion",
    "Real",
    "RenyiAccounting",
    "amount_of_best_order",
    "amount_of_order",
    "amount_of_units",
    "delta_of_mu",
    "real",
]
