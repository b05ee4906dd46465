"""An analyst's own allowances."""

from sparing._calls import Call, all_of, listing
from sparing._models import Allowance
from sparing._requests import path


def allowances() -> Call[tuple[Allowance, ...]]:
    """The allowance of the key in each dataset."""
    return all_of(listing(Allowance, path("allowances")))
