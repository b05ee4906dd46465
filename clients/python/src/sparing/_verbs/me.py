"""An individual's own account."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from sparing._calls import Call, Stream, acknowledged, all_of, listing, reply_of
from sparing._decode import read_object
from sparing._models import IndividualBudget, Receipt
from sparing._requests import get, path, post
from sparing._retry import Repeat


def budgets() -> Call[tuple[IndividualBudget, ...]]:
    """The account in each dataset."""
    return all_of(listing(IndividualBudget, path("me", "budgets")))


def receipts(page_size: int) -> Stream[Receipt]:
    """The receipts of the individual."""
    return listing(Receipt, path("me", "receipts"), limit=page_size)


def lower(dataset: str, limit_rho: float | Decimal | str | None, *, pause: bool) -> Call[IndividualBudget]:
    """Lower the limit, or pause; repeating the request has no further effect."""
    if (limit_rho is None) != pause:
        raise ValueError("give either limit_rho or pause=True")
    body: dict[str, object] = {"pause": True} if limit_rho is None else {"limit_rho": str(limit_rho)}
    return reply_of(IndividualBudget, post(path("me", "budgets", dataset, "lower"), body, repeat=Repeat.READ))


def resume(dataset: str) -> Call[IndividualBudget]:
    """End a pause."""
    return reply_of(IndividualBudget, post(path("me", "budgets", dataset, "resume"), repeat=Repeat.READ))


def record(dataset: str) -> Call[Mapping[str, object]]:
    """The individual's own record."""
    return read_object((yield get(path("me", "record", dataset))))


def erasure_requested(dataset: str) -> Call[bool]:
    """Tell whether the individual has asked for an erasure."""
    return (yield from reply_of(_Erasure, get(path("me", "erasure", dataset)))).requested


def request_erasure(dataset: str) -> Call[None]:
    """Ask for an erasure."""
    return acknowledged(post(path("me", "erasure", dataset), repeat=Repeat.READ))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Erasure:
    """Tell whether the individual has asked for an erasure."""

    requested: bool
