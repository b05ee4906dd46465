"""The charge, the noise and the filter from the service's core, for which numpy is needed."""

from service.core.charge import charge_units, units_down
from service.core.noise import SIGMA_STEPS_MAX, SIGMA_STEPS_MIN, Entropy, rounded_gaussian
from service.core.renyi_filter import Accounts, Touched

__all__ = [
    "SIGMA_STEPS_MAX",
    "SIGMA_STEPS_MIN",
    "Accounts",
    "Entropy",
    "Touched",
    "charge_units",
    "rounded_gaussian",
    "units_down",
]
