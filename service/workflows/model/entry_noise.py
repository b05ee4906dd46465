"""The noise of a ledger entry, and what it charges for the quantities that the entry keeps."""

from typing import NamedTuple

import numpy as np

from service.accounting.laplace_prices import prices_of_mechanism
from service.arrays import Integers
from service.core.charge import charge_units, worst_case_units
from service.core.laplace import laplace_charge_units, laplace_worst_case_units
from service.query.stated_noise import tick_of


class EntryNoise(NamedTuple):
    """The noise of an entry, in grid steps: its law and what that charges a squared norm, in squared steps.

    A tick of a monitor charges nothing: it is paid from the reserve.
    """

    mechanism: str
    sigma_steps: float  # of Laplace noise its scale

    @property
    def is_prepaid(self) -> bool:
        """True if it is a tick's."""
        return tick_of(self.mechanism) > 0

    def charge_units(self, norms_squared: Integers) -> Integers:
        """The charges of norms (k,), (k,) units. Raises ValueError for norms and a mechanism that have no price."""
        if self.is_prepaid:
            return np.zeros(norms_squared.size, dtype=np.int64)
        prices = prices_of_mechanism(self.mechanism)
        if prices is None:
            return charge_units(norms_squared, self.sigma_steps)
        most = int(norms_squared.max(initial=0))
        return laplace_charge_units(norms_squared, self.sigma_steps, prices, norm_squared_max=most)

    def worst_case_units(self, norm_squared: int) -> int:
        """The charge of one norm. Raises as `charge_units`."""
        if self.is_prepaid:
            return 0
        prices = prices_of_mechanism(self.mechanism)
        if prices is None:
            return worst_case_units(norm_squared, self.sigma_steps)
        return laplace_worst_case_units(norm_squared, self.sigma_steps, prices)
