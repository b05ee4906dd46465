"""The replay of a ledger: what its visitors are shown, and in which order."""

from dataclasses import replace

import pytest

from service.ledger.model.journal import JournalAct
from service.ledger.model.ledger_entry import LedgerEntry
from service.maintenance.journal_state import JournalState
from service.maintenance.replay import Visitor, replay
from service.query.keys import Key
from service.workflows.individual import pausing
from service.workflows.replica import Replica
from tests.factories import open_replica
from tests.maintenance.verify.histories import HALF, history
from tests.memory.store import MemoryStore
from tests.workflows.surveys import writer_of


class Seen(Visitor):
    """Keeps the kinds of acts and the sequences of entries, and the limit of Bob at each entry."""

    def __init__(self) -> None:
        self.seen: list[str | int] = []
        self.limits: list[int] = []

    def act(self, act: JournalAct, then: JournalState) -> None:
        self.seen.append(act.act)
        assert then.have_paused.any() == (act.act == "pause")

    def entry(self, entry: LedgerEntry, then: JournalState) -> None:
        self.seen.append(entry.seq)
        self.limits.append(int(then.limits[1]))

    def end(self) -> None:
        self.seen.append("end")


@pytest.fixture
def kept(store: MemoryStore) -> MemoryStore:
    """Three entries, with acts before, between and after them."""
    with open_replica(store) as replica:
        history(replica)
        paused(replica)
    return store


def paused(replica: Replica) -> None:
    """Have Ann pause, after the last entry."""
    writer_of(replica).act(pausing(Key("ann"), paused=True))


def test_every_visitor_sees_acts_and_entries_in_their_order(kept: MemoryStore) -> None:
    """An act of the journal comes before the entries that it decides about, and the end after all."""
    visitors, told = [Seen(), Seen()], []
    with kept.transaction(1, lock=False) as transaction:
        acts = transaction.acts(after=0)
        replay(transaction.registration(), transaction, acts, visitors, watch=lambda *far: told.append(far))
    for each in visitors:
        assert [shown for shown in each.seen if shown != "amend"] == [
            "rows",
            "limit",
            *(1, 2),
            "erase",
            "epoch",
            3,
            "pause",
            "end",
        ]
        assert each.limits == [HALF] * 3
    assert told == [("survey", number, 3) for number in (1, 2, 3)]


def test_an_act_that_makes_no_sense_is_shown_to_nobody(kept: MemoryStore) -> None:
    """The limit stays what it was."""
    visitor = Seen()
    with kept.transaction(1, lock=False) as transaction:
        acts = [replace(act, detail={}) if act.act == "limit" else act for act in transaction.acts(after=0)]
        replay(transaction.registration(), transaction, acts, [visitor])
    assert "limit" not in visitor.seen
    assert visitor.limits == [2 * HALF] * 3
