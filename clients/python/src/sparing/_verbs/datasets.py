"""Register and change datasets, and read their accounts, ledgers and acts."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from sparing._calls import Call, Stream, acknowledged, for_each, listing, listing_by, reply_of
from sparing._chain import Chain, ChainCheck
from sparing._models import ActRow, BudgetRow, BudgetSummary, Dataset, LedgerRow, UploadReport
from sparing._requests import delete, get, patch, path, post
from sparing._retry import Repeat

Number = int | float | Decimal | str


def create(
    name: str,
    tables: Mapping[str, object],
    capacity: int | None,
    guarantee: Mapping[str, Number | None],
    limit_floor_rho: Number | None,
    rule: str,
) -> Call[Dataset]:
    """Register a dataset; `guarantee` may have `epsilon`, `delta` and `rho`."""
    body: dict[str, object] = {"name": name, "guarantee": _guarantee(guarantee), "tables": tables, "rule": rule}
    if capacity is not None:
        body["capacity"] = capacity
    if limit_floor_rho is not None:
        body["limit_floor_rho"] = str(limit_floor_rho)
    return reply_of(Dataset, post(path("datasets"), body))


def every() -> Stream[Dataset]:
    """Every dataset that the key may see."""
    return listing(Dataset, path("datasets"))


def one(dataset: str) -> Call[Dataset]:
    """One dataset."""
    return reply_of(Dataset, get(path("datasets", dataset)))


def budgets(dataset: str, page_size: int) -> Stream[BudgetRow]:
    """Every individual's account."""
    return listing(BudgetRow, path("datasets", dataset, "budgets"), limit=page_size)


def budget_summary(dataset: str) -> Call[BudgetSummary]:
    """Every individual's budgets, summed up."""
    return reply_of(BudgetSummary, get(path("datasets", dataset, "budgets", "summary")))


def ledger(dataset: str, page_size: int) -> Stream[LedgerRow]:
    """Every answered query."""
    return listing(LedgerRow, path("datasets", dataset, "ledger"), limit=page_size)


def audit(dataset: str, page_size: int) -> Call[Chain]:
    """The chain of the ledger, checked row by row as the pages come."""
    check = ChainCheck()
    yield from for_each(listing_by(lambda row: row, path("datasets", dataset, "ledger"), limit=page_size), check.add)
    return check.result()


def account(dataset: str, individual: str) -> Call[BudgetRow]:
    """One individual's account."""
    return reply_of(BudgetRow, get(_individual(dataset, individual)))


def acts(dataset: str, page_size: int) -> Stream[ActRow]:
    """The acts on the dataset."""
    return listing(ActRow, path("datasets", dataset, "acts"), limit=page_size)


def open_epoch(dataset: str) -> Call[int]:
    """The number of the epoch that is opened."""
    opened = yield from reply_of(_Epoch, post(path("datasets", dataset, "epochs")))
    return opened.epoch


def extend(dataset: str, tables: Mapping[str, object] | None, capacity: int | None) -> Call[Dataset]:
    """Add to a registration what is given."""
    wishes = {"tables": tables, "capacity": capacity}
    body = {name: value for name, value in wishes.items() if value is not None}
    return reply_of(Dataset, patch(path("datasets", dataset), body))


def correct(dataset: str, individual: str, values: Mapping[str, object]) -> Call[UploadReport]:
    """Put other values into an individual's record."""
    return reply_of(UploadReport, patch(_individual(dataset, individual), dict(values)))


def archive(dataset: str, rows: str) -> Call[Dataset]:
    """Close a dataset for good; a repeated request has no further effect."""
    return reply_of(Dataset, post(path("datasets", dataset, "archive"), {"rows": rows}, repeat=Repeat.READ))


def remove(dataset: str) -> Call[None]:
    """Delete a dataset that never answered."""
    return acknowledged(delete(path("datasets", dataset), repeat=Repeat.ONCE))


def erase(dataset: str, individual: str) -> Call[None]:
    """Erase an individual's record."""
    return acknowledged(delete(_individual(dataset, individual)))


def _individual(dataset: str, individual: str) -> str:
    return path("datasets", dataset, "individuals", individual)


def _guarantee(given: Mapping[str, Number | None]) -> dict[str, str]:
    stated = {name: str(value) for name, value in given.items() if value is not None}
    if set(stated) not in ({"rho"}, {"epsilon", "delta"}):
        raise ValueError("give epsilon and delta, or rho")
    return stated


@dataclass(frozen=True, slots=True, kw_only=True)
class _Epoch:
    """The response to opening an epoch."""

    epoch: int
