"""The filter whose prices are ranges: it decides what is certain, and says what is not."""

import pytest

from sparing_audit.accountings import Range
from sparing_audit.ranged_filter import Fate, RangedFilter


def test_what_the_rounding_of_a_price_decides_is_open() -> None:
    """Surely affordable, surely not, and between."""
    own = RangedFilter(100, 2, is_dropping=False)
    assert own.decide([0, 0], [Range(40, 42), Range(30, 30)]) == [True, True]
    fates = [own.fate(0, charge) for charge in (Range(27, 28), Range(28, 29), Range(30, 31), Range(31, 31))]
    assert fates == [Fate.CHARGED, Fate.OPEN, Fate.OPEN, Fate.LEFT_OUT]
    with pytest.raises(ValueError, match="place 0"):
        own.decide([0], [Range(28, 29)])
    assert (own.least, own.most, own.charged, own.left_out) == ([70, 0], [72, 0], [2, 0], [0, 0])


@pytest.mark.parametrize(("is_dropping", "then"), [(False, [True]), (True, [False])])
def test_left_out_for_good_by_the_rule_drop_alone(is_dropping: bool, then: list[bool]) -> None:
    """At any price of the next query."""
    own = RangedFilter(100, 1, is_dropping=is_dropping)
    assert own.decide([0], [Range(101, 102)]) == [False]
    assert own.decide([0], [Range(1, 1)]) == then
    assert own.left_out == [1 + is_dropping]
