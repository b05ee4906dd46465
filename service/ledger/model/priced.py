"""The charges of an entry, worked out from its pieces for those charged and for those left out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.arrays import Integers, kept
from service.core.laws import Law
from service.ledger.model.pieces import Quantities


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Priced:
    """The quantities of an entry, and for each touched individual the units of what is counted, `prices` (k,).

    `asked` (k,) are the units of the whole vectors, which the clip rule may have shortened.
    """

    quantities: Quantities
    prices: Integers
    asked: Integers

    @classmethod
    def of(cls, quantities: Quantities, law: Law) -> "Priced":
        """Price quantities by a law of noise."""
        prices = quantities.prices(law)
        asked = prices if quantities.norms_before is None else quantities.asked_prices(law)
        return cls(quantities=quantities, prices=prices, asked=asked)

    @property
    def touched(self) -> Integers:
        """The slots that the entry touches, (k,), increasing."""
        return self.quantities.touched

    @property
    def active(self) -> NDArray[np.bool_]:
        """Marks of the touched that are charged, (k,)."""
        return self.quantities.active

    @property
    def charged(self) -> Integers:
        """The slots that are charged."""
        return kept(self.active, self.touched)

    @property
    def charges(self) -> Integers:
        """The charge of each slot that is charged."""
        return kept(self.active, self.prices)

    @property
    def left_out(self) -> Integers:
        """The slots that are left out."""
        return kept(~self.active, self.touched)

    @property
    def of_left_out(self) -> Integers:
        """The charge that the whole vector of each slot left out would have."""
        return kept(~self.active, self.asked)

    @property
    def is_shortened(self) -> NDArray[np.bool_]:
        """Marks of those whose vector the clip rule has shortened, (k,)."""
        quantities = self.quantities
        return self.active & (quantities.amounts < quantities.whole)

    @property
    def is_longer(self) -> NDArray[np.bool_]:
        """Marks of those whose counted vector is longer than the whole one, (k,): nobody in a sound entry."""
        return self.quantities.amounts > self.quantities.whole
