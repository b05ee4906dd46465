"""The charges of an entry, worked out from its pieces, also those that left-out individuals would have paid."""

from dataclasses import dataclass

from service.arrays import Integers, Mask, kept
from service.core.laws import Law
from service.ledger.model.pieces import Quantities


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Priced:
    """The quantities of an entry, and what the counted vector of each touched individual costs, `prices` (k,) units.

    `asked` (k,) are the units that the whole vectors would cost. The clip rule may have shortened them.
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
    def active(self) -> Mask:
        """True for each touched individual that was active, (k,)."""
        return self.quantities.active

    @property
    def charged(self) -> Integers:
        """The slots that are charged, increasing."""
        return kept(self.active, self.touched)

    @property
    def charges(self) -> Integers:
        """The charges in units, in the order of `charged`."""
        return kept(self.active, self.prices)

    @property
    def left_out(self) -> Integers:
        """The slots that are left out, increasing."""
        return kept(~self.active, self.touched)

    @property
    def of_left_out(self) -> Integers:
        """The charge in units that each left-out individual's whole vector would have, in the order of `left_out`."""
        return kept(~self.active, self.asked)

    @property
    def is_shortened(self) -> Mask:
        """True for each touched individual whose vector the clip rule has shortened, (k,)."""
        quantities = self.quantities
        return self.active & (quantities.amounts < quantities.whole)

    @property
    def is_longer(self) -> Mask:
        """True where an individual's counted vector is longer than its whole one, (k,): never in a sound entry."""
        return self.quantities.amounts > self.quantities.whole
