"""The summary of a dataset's budgets for curators, from a copy of all accounts made page by page."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import count
from typing import Final

import numpy as np
import orjson

from service.accounting.statements import advisory_epsilon
from service.arrays import Integers, Mask, Reals
from service.core.charge import rho_of_units
from service.ledger.model.errors import Unavailable
from service.ledger.model.ledger_entry import EntryRecord
from service.ledger.model.rows import DatasetRecord, Head
from service.ledger.model.views import BudgetSummary, ShareBin, TypicalQuery
from service.ledger.ports.transaction import Transaction
from service.query.division import PAGE_SLOTS
from service.query.words import in_words
from service.reads.ledger import PAGE_BYTES_MAX, delta_of, is_all_gaussian, snapshot
from service.writer.state import DatasetState
from service.writer.threads import WriterThread

BINS: Final = 50
QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
RECENT: Final = 100
"""The typical query is sought among this many of the newest entries."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AllAccounts:
    """Copies of accounts by slot, (slots,), in units; `present` tells which slots hold a record.

    All accounts of a page are copied at one sequence, and later pages at the same or a later sequence. So a charge
    during the copying shows only in pages copied after it. `seq` is the sequence of the first page.
    """

    seq: int
    present: Mask
    limit: Integers
    spent: Integers
    paused: Mask
    dropped: Mask  # under the drop rule, those that a query has left out

    @property
    def individuals(self) -> int:
        """The number of individuals."""
        return int(np.count_nonzero(self.present))

    @property
    def exhausted(self) -> int:
        """The number of individuals that have nothing left."""
        return int(np.count_nonzero(self.present & (self.spent >= self.limit)))

    @property
    def pauses(self) -> int:
        """The number of individuals that have paused."""
        return int(np.count_nonzero(self.present & self.paused))

    @property
    def left_out_for_good(self) -> int:
        """The number of individuals that the drop rule leaves out of every further query."""
        return int(np.count_nonzero(self.present & self.dropped))

    @property
    def remaining(self) -> Integers:
        """The units left in each slot, (slots,); zero where one came back with a limit below its spent total."""
        remaining: Integers = np.maximum(self.limit - self.spent, 0)
        return remaining

    def shares(self) -> Reals:
        """The share of its limit that each individual has left, (individuals,)."""
        limit: Integers = self.limit[self.present]
        return self.remaining[self.present] / np.maximum(limit, 1)

    def typical(self, recent: Sequence[EntryRecord]) -> TypicalQuery | None:
        """The query with the lower median of the worst cases that some limit covers; None if there is no such query.

        The median is used because one query of a strange cost must not decide. A worst case above every limit is not
        counted: such a query leaves everybody out, however much is left. A tick is not counted either, because it is
        prepaid.
        """
        limit_max = int(self.limit[self.present].max(initial=0))
        payable = sorted(
            (each for each in recent if 0 < each.worst_case_units <= limit_max), key=lambda each: each.worst_case_units
        )
        if not payable:
            return None
        middle = payable[(len(payable) - 1) // 2]
        has_too_little = self.dropped | (self.remaining < middle.worst_case_units)
        return TypicalQuery(
            of=len(payable),
            sequence=middle.seq,
            words=in_words(orjson.loads(middle.canonical)),
            worst_case_rho=str(rho_of_units(middle.worst_case_units)),
            cannot_afford=int(np.count_nonzero(self.present & has_too_little)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFacts:
    """Facts from the database: newest queries, open erasures, end of worst-case accounting, advisory epsilon.

    `recent` begins with the newest query. `worst_case_ended_after` is as `_ended_after` says.
    """

    recent: Sequence[EntryRecord]
    erasures_asked: int
    worst_case_ended_after: int | None
    promise_epsilon_advisory: float | None


def all_accounts(writer: WriterThread) -> AllAccounts:
    """A copy of all accounts, page by page, none older than the database at the call; queries are answered in between.

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
    columns = ("present", "limit", "spent", "paused", "dropped")
    copied = {name: np.concatenate([getattr(page, name) for page in pages]) for name in columns}
    return AllAccounts(seq=pages[0].seq, **copied)


def ledger_facts(record: DatasetRecord, transaction: Transaction, *, seq: int) -> LedgerFacts:
    """The facts of the entries up to `seq`."""
    return LedgerFacts(
        recent=recent_queries(transaction, seq=seq),
        erasures_asked=sum(not each.is_done for each in transaction.erasures_asked()),
        worst_case_ended_after=_ended_after(record, transaction, seq),
        promise_epsilon_advisory=_advisory(record, transaction),
    )


def recent_queries(transaction: Transaction, *, seq: int) -> list[EntryRecord]:
    """The queries among the RECENT entries up to `seq`, newest first."""
    entries = transaction.entry_records(before=seq + 1, limit=RECENT, bytes_max=PAGE_BYTES_MAX)
    return [entry for entry in entries if entry.kind == "query"]


def summary(taken: AllAccounts, facts: LedgerFacts) -> BudgetSummary:
    """The remaining shares of the budgets in bins and as quantiles, and the numbers of exhausted and paused."""
    share = taken.shares()
    counts, edges = np.histogram(share, bins=BINS, range=(0.0, 1.0))
    bins = zip(edges[:-1], edges[1:], counts, strict=True)
    quantiles = quantiles_of(share)
    return BudgetSummary(
        sequence=taken.seq,
        individuals=taken.individuals,
        exhausted=taken.exhausted,
        paused=taken.pauses,
        left_out_for_good=taken.left_out_for_good,
        erasures_asked=facts.erasures_asked,
        remaining_share_histogram=tuple(ShareBin(low=float(a), high=float(b), individuals=int(n)) for a, b, n in bins),
        quantiles={str(q): value for q, value in zip(QUANTILES, quantiles, strict=False)},  # none without individuals
        typical_query=taken.typical(facts.recent),
        worst_case_ended_after=facts.worst_case_ended_after,
        promise_epsilon_advisory=facts.promise_epsilon_advisory,
    )


def quantiles_of(share: Reals) -> list[float]:
    """The QUANTILES of shares; an empty list where there are no shares."""
    found: list[float] = np.quantile(share, QUANTILES).tolist() if share.size else []
    return found


def _advisory(record: DatasetRecord, transaction: Transaction) -> float | None:
    """The advisory epsilon of the dataset's budget."""
    if not is_all_gaussian(record, transaction):
        return None
    return advisory_epsilon(record.accounting, record.budget_units, Decimal(delta_of(record)))


def _ended_after(record: DatasetRecord, transaction: Transaction, seq: int) -> int | None:
    """The number of first entries whose worst cases together fit into the dataset's budget; None if all fit."""
    if _total(transaction, seq) <= record.budget_units - record.reserve_units:
        return None
    kept, beyond = 0, seq
    while beyond - kept > 1:
        middle = (kept + beyond) // 2
        if _total(transaction, middle) <= record.budget_units - record.reserve_units:
            kept = middle
        else:
            beyond = middle
    return kept


def _total(transaction: Transaction, seq: int) -> int:
    """The sum of the worst cases of all entries up to `seq`, in units."""
    found = transaction.entry_records(before=seq + 1, limit=1, bytes_max=PAGE_BYTES_MAX)
    return found[0].worst_case_total_units if found else 0


def _page(writer: WriterThread, head: Head, number: int) -> tuple[AllAccounts, int]:
    """One page of accounts, and the number of pages. Memory catches up first if it is behind `head`."""
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
        seq=state.seq,
        present=copied.present,
        limit=copied.limit,
        spent=copied.spent,
        paused=copied.paused,
        dropped=np.logical_and(copied.left_out > 0, state.record.rule == "drop"),
    )
    return page, state.pages
