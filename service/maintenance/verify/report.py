"""`ledger verify`: everything that can be derived from stored rows is derived again and compared, row by row.

The registration gives the genesis (`verify.registration`); the journal gives the head and bounds of limits
(`verify.journal`); the ledger gives spent totals, pages and worst cases (`verify.ledger`), and with its queries every
answer (`verify.answers`); all together give the accounts (`verify.accounts`). Witness records must be in the database.
A finding names table and row; docs/known-limits.md lists the data that nothing binds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from service.ledger.model.rows import DatasetRecord, RegistrationHistory, WitnessRecord
from service.ledger.ports.store import Store
from service.ledger.ports.transaction import Transaction
from service.ledger.ports.witness import Witness, WitnessUnavailable
from service.maintenance.replay import Watch, replay
from service.maintenance.verify.accounts import check_accounts
from service.maintenance.verify.answers import AnswersCheck
from service.maintenance.verify.journal import check_journal
from service.maintenance.verify.ledger import LedgerCheck
from service.maintenance.verify.registration import check_registration
from service.maintenance.verify.totals import ReplayedTotals
from service.writer.rollback.guard import judge, unaccounted, witness_name


@dataclass(slots=True, kw_only=True)
class Report:
    """The findings about one dataset, and the amount of data checked."""

    dataset: str
    entries: int
    acts: int
    answers: int
    accounts: int
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """One line for the operator."""
        looked = f"{self.entries} entries, {self.answers} answers, {self.acts} acts, {self.accounts} accounts"
        return f"{self.dataset}: {looked} verified, {len(self.findings)} findings"


def verify_all(store: Store, witness: Witness | None = None, *, watch: Watch | None = None) -> Iterator[Report]:
    """Replay every dataset, each in one snapshot, and compare it with its witness; `watch` is given each entry."""
    for record in store.datasets():
        yield verify_dataset(store, record, witness, watch=watch)


def verify_dataset(
    store: Store, record: DatasetRecord, witness: Witness | None = None, *, watch: Watch | None = None
) -> Report:
    """Replay one dataset in one snapshot, and compare it with its witness."""
    history = None if witness is None else _history(witness, record)  # before the snapshot, which contains it
    with store.transaction(record.id, lock=False) as transaction:
        report, _ = verified(record, transaction, watch=watch)
        if witness is not None:
            report.findings.extend(_behind(record, transaction, history))
    return report


def _history(witness: Witness, record: DatasetRecord) -> list[WitnessRecord] | None:
    try:
        return witness.history(witness_name(record))
    except WitnessUnavailable:
        return None


def _behind(record: DatasetRecord, transaction: Transaction, history: list[WitnessRecord] | None) -> list[str]:
    if history is None:
        return ["witness: cannot be read"]
    verdict = judge(record, transaction, history)
    if verdict is None:
        return []
    if not history:
        return [f"witness: nothing is left that could say whether sequence {transaction.head.seq} is the last"]
    lost, head = unaccounted(record, transaction, history)[-1], transaction.head
    seen = f"sequence {lost.seq} under fence {lost.fence} and {lost.acts} acts"
    return [f"witness: has seen {seen}; here are {head.seq} under {head.fence} and {head.data_version}"]


def verified(
    record: DatasetRecord, transaction: Transaction, *, totals_at: int | None = None, watch: Watch | None = None
) -> tuple[Report, ReplayedTotals]:
    """(report, totals) of one pass over the journal, and one over entries and answers.

    Copies the totals at `totals_at`.
    """
    head, acts = transaction.head, transaction.acts(after=0)
    history = RegistrationHistory(transaction.registration(), transaction.earlier_registrations())
    last_state, findings = check_journal(record, head, acts)
    ledger = LedgerCheck(record, transaction, acts=acts, last_state=last_state, totals_at=totals_at)
    answers = AnswersCheck(history, transaction.answers(), transaction.parameters)
    replay(record, transaction, acts, [ledger, answers], watch=watch)
    report = Report(
        dataset=record.name,
        entries=ledger.entries,
        acts=len(acts),
        answers=answers.count,
        accounts=int(ledger.accounts.slots.size),
        findings=[
            *check_registration(history, acts),
            *findings,
            *ledger.findings,
            *answers.findings,
            *check_accounts(head, ledger.accounts, last_state, ledger.totals.spent),
        ],
    )
    return report, ledger.totals
