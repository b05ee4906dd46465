"""Register and change datasets, and read their accounts, ledgers and acts."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from sparing._calls import Call, Stream, acknowledged, all_of, for_each, listing, listing_by, reply_of
from sparing._chain import Chain, ChainCheck
from sparing._dataset_replies import described
from sparing._decode import read_object, read_text
from sparing._documents import WrittenQuery, checked
from sparing._errors import APIReplyError
from sparing._files import CSV, PARQUET
from sparing._models import (
    ActRow,
    Alarm,
    AnalystRow,
    BudgetRow,
    BudgetSummary,
    Dataset,
    DatasetRow,
    Forecast,
    LedgerRow,
    MonitorTicks,
    Receipt,
    RunDivergence,
    SummaryHistory,
    UploadReport,
    Verification,
)
from sparing._query import QueryRequest
from sparing._requests import delete, get, patch, path, post
from sparing._retry import Repeat
from sparing._wire import key_text, record_of

_FORMS: Final = {"csv": CSV, "parquet": PARQUET}

Number = int | float | Decimal | str


def create(
    name: str,
    tables: Mapping[str, object],
    guarantee: Mapping[str, Number | None],
    monitor: Mapping[str, object] | None = None,
    **stated: object,
) -> Call[Dataset]:
    """Register a dataset; `guarantee` may have `epsilon`, `delta` and `rho`. Arguments of None are not sent."""
    body: dict[str, object] = {"name": name, "guarantee": _guarantee(guarantee), "tables": tables}
    body |= {each: value for each, value in stated.items() if value is not None}
    if stated.get("limit_floor_rho") is not None:
        body["limit_floor_rho"] = str(stated["limit_floor_rho"])
    if monitor is not None:
        body["monitor"] = {each: str(value) if each == "rho" else value for each, value in monitor.items()}
    return described(post(path("datasets"), body))


def every(page_size: int) -> Stream[DatasetRow]:
    """Every dataset that the key may see."""
    return listing(DatasetRow, path("datasets"), limit=page_size)


def one(dataset: str) -> Call[Dataset]:
    """The dataset of this name."""
    return described(get(path("datasets", dataset)))


def monitor(dataset: str) -> Call[MonitorTicks]:
    """A dataset's monitor with every tick that was answered."""
    return reply_of(MonitorTicks, get(path("datasets", dataset, "monitor")))


def budgets(dataset: str, page_size: int) -> Stream[BudgetRow]:
    """Every individual's account."""
    return listing(BudgetRow, path("datasets", dataset, "budgets"), limit=page_size)


def budget_summary(dataset: str) -> Call[BudgetSummary]:
    """The summary of all individuals' budgets."""
    return reply_of(BudgetSummary, get(path("datasets", dataset, "budgets", "summary")))


def budget_history(dataset: str) -> Call[SummaryHistory]:
    """The summaries of all individuals' budgets at earlier sequences."""
    return reply_of(SummaryHistory, get(path("datasets", dataset, "budgets", "history")))


def export_budgets(dataset: str, form: str) -> Call[bytes]:
    """Every individual's account as a file."""
    if form not in _FORMS:
        raise ValueError(f"form must be {' or '.join(_FORMS)}, got {form!r}")
    asked = get(path("datasets", dataset, "budgets", "export"))
    reply = yield dataclasses.replace(asked, accept=_FORMS[form], is_for_file=True)
    if not isinstance(reply, bytes):
        raise APIReplyError("the reply is not a file of accounts")
    return reply


def forecast(question: QueryRequest | WrittenQuery) -> Call[Forecast]:
    """The forecast for repeating one query."""
    document = checked(question)
    where = path("datasets", document.dataset, "forecast")
    return (yield from reply_of(Forecast, post(where, document.json, repeat=Repeat.READ)))


def alarm(dataset: str) -> Call[Alarm]:
    """The dataset's alarm."""
    return reply_of(Alarm, get(path("datasets", dataset, "alarm")))


def set_alarm(dataset: str, share: float | None) -> Call[Alarm]:
    """Set or remove the alarm."""
    return reply_of(Alarm, patch(path("datasets", dataset, "alarm"), {"share": share}, method="PUT"))


def verify(dataset: str) -> Call[Verification]:
    """Begin a verification, unless one is under way."""
    return reply_of(Verification, post(path("datasets", dataset, "verification"), repeat=Repeat.READ))


def verification(dataset: str) -> Call[Verification]:
    """The last verification."""
    return reply_of(Verification, get(path("datasets", dataset, "verification")))


def receipts(dataset: str, individual: str | int, page_size: int) -> Stream[Receipt]:
    """The receipts of one individual."""
    where = path("datasets", dataset, "receipts")
    return listing(Receipt, where, individual=key_text(individual), limit=page_size)


def erasure_requests(dataset: str) -> Call[tuple[str, ...]]:
    """The keys of the individuals that ask to be erased."""
    return all_of(listing_by(read_text, path("datasets", dataset, "erasure-requests")))


def analysts(dataset: str) -> Call[tuple[AnalystRow, ...]]:
    """The analysts that may query the dataset."""
    return all_of(listing(AnalystRow, path("datasets", dataset, "analysts")))


def ledger(dataset: str, analyst: str | None, search: str | None, page_size: int) -> Stream[LedgerRow]:
    """Every answered query, or only the queries of one analyst or with all words of `search`."""
    return listing(LedgerRow, path("datasets", dataset, "ledger"), analyst=analyst, search=search, limit=page_size)


def audit(dataset: str, kept: str | None, page_size: int) -> Call[Chain]:
    """The chain of the ledger, checked row by row as the pages come."""
    check = ChainCheck(kept)
    yield from for_each(listing_by(read_object, path("datasets", dataset, "ledger"), limit=page_size), check.add)
    return check.result()


def account(dataset: str, individual: str | int) -> Call[BudgetRow]:
    """One individual's account."""
    return reply_of(BudgetRow, get(_individual(dataset), individual=key_text(individual)))


def record(dataset: str, individual: str | int) -> Call[Mapping[str, object]]:
    """One individual's record."""
    return read_object((yield get(path("datasets", dataset, "record"), individual=key_text(individual))))


def divergence(dataset: str, individual: str | int) -> Call[RunDivergence]:
    """The divergence between the dataset with and without one individual's record, over the answers so far."""
    return reply_of(RunDivergence, get(path("datasets", dataset, "divergence"), individual=key_text(individual)))


def acts(dataset: str, page_size: int) -> Stream[ActRow]:
    """The acts on the dataset."""
    return listing(ActRow, path("datasets", dataset, "acts"), limit=page_size)


def open_epoch(dataset: str) -> Call[int]:
    """Open the next epoch, and return its number."""
    opened = yield from reply_of(_Epoch, post(path("datasets", dataset, "epochs")))
    return opened.epoch


def extend(dataset: str, tables: Mapping[str, object] | None, capacity: int | None) -> Call[Dataset]:
    """Add the given tables or capacity to a registration."""
    wishes = {"tables": tables, "capacity": capacity}
    body = {name: value for name, value in wishes.items() if value is not None}
    return described(patch(path("datasets", dataset), body))


def correct(dataset: str, individual: str | int, values: Mapping[str, object]) -> Call[UploadReport]:
    """Replace values in an individual's record."""
    return reply_of(UploadReport, patch(_individual(dataset), record_of(values), individual=key_text(individual)))


def archive(dataset: str, rows: str) -> Call[Dataset]:
    """Archive a dataset for good; repeating the request has no further effect."""
    return described(post(path("datasets", dataset, "archive"), {"rows": rows}, repeat=Repeat.READ))


def remove(dataset: str) -> Call[None]:
    """Delete a dataset that never answered a query."""
    return acknowledged(delete(path("datasets", dataset), repeat=Repeat.ONCE))


def erase(dataset: str, individual: str | int) -> Call[None]:
    """Erase an individual's record."""
    return acknowledged(delete(_individual(dataset), individual=key_text(individual)))


def _individual(dataset: str) -> str:
    return path("datasets", dataset, "individual")


def _guarantee(given: Mapping[str, Number | None]) -> dict[str, str]:
    stated = {name: str(value) for name, value in given.items() if value is not None}
    if set(stated) not in ({"rho"}, {"epsilon", "delta"}, {"epsilon"}):
        raise ValueError("give epsilon and delta, or rho, or for pure differential privacy epsilon alone")
    return stated


@dataclass(frozen=True, slots=True, kw_only=True)
class _Epoch:
    """The response to opening an epoch."""

    epoch: int
