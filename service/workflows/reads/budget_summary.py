"""The summary of a dataset's budgets for curators, from a copy of all accounts made page by page."""

from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.engine.pages import PAGE_SLOTS
from service.workflows.model.errors import Unavailable
from service.workflows.model.rows import Head
from service.workflows.model.views import BudgetSummary, ShareBin
from service.workflows.reads.ledger import snapshot
from service.workflows.writer.state import DatasetState
from service.workflows.writer.threads import WriterThread

_BINS: Final = 10
_QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AllAccounts:
    """Copies of accounts by slot, (slots,), in units; `present` tells which slots hold a record.

    Each page is of one sequence, not before that of the page before: charges during the copying show in some pages.
    `seq` is the sequence of the first page.
    """

    seq: int
    present: NDArray[np.bool_]
    limit: NDArray[np.int64]
    spent: NDArray[np.int64]
    paused: NDArray[np.bool_]


def all_accounts(writer: WriterThread) -> AllAccounts:
    """A copy of every page, none older than the database at the call; queries are answered in between.

    Raises Unavailable, Fenced, Busy.
    """
    with snapshot(writer.guard) as transaction:
        head = transaction.head
    pages: list[AllAccounts] = []
    for number in count():
        page, pages_used = _page(writer, head, number)
        pages.append(page)
        if number + 1 >= pages_used:
            break
    return AllAccounts(
        seq=pages[0].seq,
        present=np.concatenate([page.present for page in pages]),
        limit=np.concatenate([page.limit for page in pages]),
        spent=np.concatenate([page.spent for page in pages]),
        paused=np.concatenate([page.paused for page in pages]),
    )


def summary(taken: AllAccounts) -> BudgetSummary:
    """The remaining shares of the budgets in ten bins and as quantiles, and the numbers of exhausted and paused."""
    limit, spent = taken.limit[taken.present], taken.spent[taken.present]
    # An individual that came back with a smaller budget may have spent more: the share is zero, not negative.
    share = np.maximum(limit - spent, 0) / np.maximum(limit, 1)
    counts, edges = np.histogram(share, bins=_BINS, range=(0.0, 1.0))
    bins = zip(edges[:-1], edges[1:], counts, strict=True)
    quantiles = np.quantile(share, _QUANTILES).tolist() if share.size else []
    return BudgetSummary(
        sequence=taken.seq,
        individuals=share.size,
        exhausted=int((spent >= limit).sum()),
        paused=int(taken.paused[taken.present].sum()),
        remaining_share_histogram=tuple(ShareBin(low=float(a), high=float(b), individuals=int(n)) for a, b, n in bins),
        quantiles={str(q): value for q, value in zip(_QUANTILES, quantiles, strict=False)},  # none without individuals
    )


def _page(writer: WriterThread, head: Head, number: int) -> tuple[AllAccounts, int]:
    """A page, and the number of pages; memory catches up first if it is behind `head`."""
    copied = writer.look(partial(_copied, head, number))
    if copied is None:
        writer.catch_up()
        copied = writer.look(partial(_copied, head, number))
    if copied is None:
        raise Unavailable
    return copied


def _copied(head: Head, number: int, state: DatasetState) -> tuple[AllAccounts, int] | None:
    if not state.has_come_to(head):
        return None
    copied = state.copy_accounts(slice(number * PAGE_SLOTS, (number + 1) * PAGE_SLOTS))
    page = AllAccounts(
        seq=state.seq, present=copied.present, limit=copied.limit, spent=copied.spent, paused=copied.paused
    )
    return page, state.pages
