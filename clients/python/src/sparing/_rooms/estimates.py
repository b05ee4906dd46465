"""The service's own code for estimates, which every client runs on answers; it needs only the standard library."""

from service.query.estimated_items import EstimatedItem, ReleasedNumbers, in_groups, items_of
from service.query.estimates import QUANTILE_95, RELIABLE_MIN, Noisy, crossing, fieller, isotonic, variance_interval

__all__ = [
    "QUANTILE_95",
    "RELIABLE_MIN",
    "EstimatedItem",
    "Noisy",
    "ReleasedNumbers",
    "crossing",
    "fieller",
    "in_groups",
    "isotonic",
    "items_of",
    "variance_interval",
]
