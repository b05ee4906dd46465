"""The journal checked: its own chain, and the dataset's head against everything that the acts decide."""

from collections.abc import Sequence

from service.ledger.model.journal import JournalAct
from service.ledger.model.rows import DatasetRecord, Head
from service.maintenance.journal_state import JournalState


def check_journal(record: DatasetRecord, head: Head, acts: Sequence[JournalAct]) -> tuple[JournalState, list[str]]:
    """(state after the acts, findings about the acts and about the head)."""
    last_state = JournalState.of(record)
    findings: list[str] = []
    number, previous = 0, record.genesis
    for act in acts:
        findings += [f"journal row {missing}: is missing" for missing in range(number + 1, min(act.number, number + 6))]
        findings += [f"journal row {act.number}: {wrong}" for wrong in _wrong_with(act, number, previous, head)]
        try:
            last_state.apply(act)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            findings.append(f"journal row {act.number}: its detail makes no sense ({type(error).__name__})")
        number, previous = act.number, act.hash
    findings += [f"heads row {record.id}: {wrong}" for wrong in _wrong_with_head(head, len(acts), previous, last_state)]
    last_state.make_room(min(head.slots, record.capacity))
    return last_state, findings


def _wrong_with_head(head: Head, count: int, last_hash: bytes, last_state: JournalState) -> list[str]:
    """Findings where the head differs from the journal."""
    given = {
        "data_version": count,
        "epoch": last_state.epoch,
        "fence": last_state.fence,
        "joining_units": last_state.joining_units,
    }
    if last_state.is_told:
        given["slots"] = last_state.slots
    findings = [
        f"says {name} {getattr(head, name)}, the journal gives {value}"
        for name, value in given.items()
        if getattr(head, name) != value
    ]
    if head.journal_hash != last_hash:
        findings.append("its journal_hash is not that of the last journal row")
    return findings


def _wrong_with(act: JournalAct, number: int, previous: bytes, head: Head) -> list[str]:
    wrong = []
    if act.number == number + 1 and act.previous_hash != previous:
        wrong.append("does not continue the row before")
    if not act.is_itself:
        wrong.append("its contents do not give its hash")
    if act.at_seq > head.seq:
        wrong.append(f"stands after sequence {act.at_seq}, which the ledger has not reached")
    return wrong
