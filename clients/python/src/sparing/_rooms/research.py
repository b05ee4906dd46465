"""The service's accountants, which `sparing.research` runs; they need numpy and mpmath."""

from service.accounting.accountings import GAUSSIAN, Accounting, RenyiAccounting
from service.accounting.admitted_steps import ORDERS
from service.accounting.noise_grid import NoiseGrid, OwnSteps, grid_of_equal_ratios
from service.accounting.own_losses import epsilons_of_own_steps
from service.accounting.subsampled_rdp import MU_MAX, epsilons_of_divergences, refuse_rate, subsampled_divergences
from service.core.charge import CHARGE_UNITS_MAX, UNITS_PER_RHO

__all__ = [
    "CHARGE_UNITS_MAX",
    "GAUSSIAN",
    "MU_MAX",
    "ORDERS",
    "UNITS_PER_RHO",
    "Accounting",
    "NoiseGrid",
    "OwnSteps",
    "RenyiAccounting",
    "epsilons_of_divergences",
    "epsilons_of_own_steps",
    "grid_of_equal_ratios",
    "refuse_rate",
    "subsampled_divergences",
]
