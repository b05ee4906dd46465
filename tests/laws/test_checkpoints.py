"""Pages and the entries after them give the ledger's totals, under any order of checkpoints, crashes and joins.

Two replicas hold three pages of people. Each step is one of the smallest things that can be durable: an entry, one page
of a checkpoint, the end of one, an act of a curator, or a restored backup under copies that are still to be written.
After each step a replica that starts anew must hold the same accounts and counters as a replay from the genesis.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from service.engine.pages import slots_on
from service.ledger.model.journal import told_slots
from service.ledger.model.rows import Checkpoint
from service.maintenance.replay import replay
from service.maintenance.verify.journal import check_journal
from service.maintenance.verify.ledger import LedgerCheck
from service.query.division import PAGE_SLOTS
from service.query.keys import Key
from service.writer.state import DatasetState
from tests.contracts.stores import answer, dataset, entry, totals
from tests.memory.shards import only_shard
from tests.memory.store import MemoryStore
from tests.memory.transaction import MemoryTransaction
from tests.rotation import times

PAGES = 3
SLOTS = [0, 1, PAGE_SLOTS, PAGE_SLOTS + 1, 2 * PAGE_SLOTS]
REPLICAS = st.integers(0, 1)


@dataclass
class Replica:
    """One process: its memory, and the pages of its copied checkpoint that are still to be written."""

    state: DatasetState
    copied: Checkpoint | None = None
    pages: list[int] = field(default_factory=list)


class CheckpointMachine(RuleBasedStateMachine):
    """Queries, checkpoints, crashes, backups and restores of two replicas, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()
        self.record = self.store.add_dataset(dataset())
        self.replicas = [Replica(DatasetState(self.record)) for _ in range(2)]
        self.keys = 0
        with self.store.transaction(1, lock=True) as transaction:
            slots = np.array(SLOTS)
            transaction.add_individuals(slots, [Key(f"p{slot}") for slot in SLOTS], np.full(slots.size, 10**9))
            transaction.add_records("visits", slots, {"item": slots.astype(np.uint32) % 7})
            told = told_slots(joined=np.arange(SLOTS[-1] + 1), rows=slots)  # slots are handed out without a gap
            transaction.journal("rows", told, slots=SLOTS[-1] + 1)
            transaction.commit()
        self.backups = [self.store.kept[1]]

    @rule(
        who=REPLICAS,
        places=st.sets(st.sampled_from(SLOTS), max_size=3),
        out=st.sets(st.sampled_from(SLOTS), max_size=3),
        units=st.integers(1, 9),
        ok=st.booleans(),
    )
    def charge(self, who: int, places: AbstractSet[int], out: AbstractSet[int], units: int, ok: bool) -> None:
        """A query is answered, or its commit fails; on some pages it charges no slot, and leaves slots out."""
        state = self.replicas[who].state
        with self.store.transaction(1, lock=True) as transaction:
            state.catch_up(transaction)
            following = entry(transaction.head, {slot: units + slot % 3 for slot in places}, tuple(out - places))
            self.keys += 1
            transaction.append([following], [answer(following, f"k{self.keys}")], {})
            state.apply(following)
            if ok:
                transaction.commit()
            else:
                state.invalidate()

    @rule(who=REPLICAS)
    def look(self, who: int) -> None:
        """A read catches up, and finds the accounts of the ledger."""
        state = self.replicas[who].state
        with self.store.transaction(1, lock=False) as transaction:
            state.catch_up(transaction)
            self.check(state, transaction)

    @rule(who=REPLICAS)
    def copy(self, who: int) -> None:
        """The writer hands over copies of the changed pages; earlier copies are dropped."""
        replica = self.replicas[who]
        if replica.state.seq > 0:
            replica.copied = replica.state.checkpoint()
            replica.pages = list(replica.copied.pages)

    @precondition(lambda self: any(replica.pages for replica in self.replicas))
    @rule(data=st.data())
    def write_page(self, data: st.DataObject) -> None:
        """One page becomes durable."""
        replica = data.draw(st.sampled_from([replica for replica in self.replicas if replica.pages]))
        page = data.draw(st.sampled_from(replica.pages))
        assert replica.copied is not None
        self.store.write_page(1, replica.copied, page)
        replica.pages.remove(page)

    @precondition(lambda self: any(replica.copied for replica in self.replicas))
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        """A checkpoint is finished, rightly or with pages missing."""
        replica = data.draw(st.sampled_from([replica for replica in self.replicas if replica.copied]))
        assert replica.copied is not None
        self.store.finish_checkpoint(1, replica.copied)

    @rule(who=REPLICAS)
    def crash(self, who: int) -> None:
        """A new process takes the place of one that crashed; its unwritten pages are lost."""
        self.replicas[who] = Replica(DatasetState(self.record))

    @rule(place=st.sampled_from(SLOTS))
    def leave_or_return(self, place: int) -> None:
        """An individual is erased, or registers again with its former spent total."""
        with self.store.transaction(1, lock=True) as transaction:
            if transaction.slots_of([Key(f"p{place}")])[0] >= 0:
                transaction.erase(place, place.to_bytes(32))
            else:
                transaction.add_individuals(np.array([place]), [Key(f"p{place}")], np.array([10**9]))
            transaction.journal("extend", {})  # an act after which all is read again
            transaction.commit()

    @rule()
    def back_up(self) -> None:
        """Make a consistent copy of the database."""
        self.backups.append(self.store.kept[1])

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        """Restore an older copy under a new fence; replicas may still write pages copied before it."""
        backup = data.draw(st.sampled_from(self.backups))
        fence = self.store.kept[1].head.fence + 1
        self.store.kept[1] = replace(backup, head=replace(backup.head, fence=fence))

    @invariant()
    def pages_and_tail_are_the_ledger(self) -> None:
        """For a replica that starts now, and for the verifier."""
        fresh = DatasetState(self.record)
        with self.store.transaction(1, lock=False) as transaction:
            fresh.catch_up(transaction)
            self.check(fresh, transaction)
            assert self.verified_pages(transaction) == []

    def verified_pages(self, transaction: MemoryTransaction) -> list[str]:
        """The verifier's findings about pages; it would also report the acts and answers that are made up here."""
        acts = transaction.acts(after=0)
        last_state, _ = check_journal(self.record, transaction.head, acts)
        checked = LedgerCheck(self.record, transaction, acts=acts, last_state=last_state)
        replay(self.record, transaction, acts, [checked])
        return [finding for finding in checked.findings if finding.startswith("pages")]

    @staticmethod
    def check(state: DatasetState, transaction: MemoryTransaction) -> None:
        """Compare memory with a replay of every entry from the genesis on."""
        accounts, counters = only_shard(state).memory.accounts, only_shard(state).memory.counters
        assert (
            accounts.spent.size
            == counters.charged_of(slice(None)).size
            == counters.left_out_of(slice(None)).size
            == PAGES * PAGE_SLOTS
        )
        for page in range(PAGES):
            given = totals(transaction.entries(after=0), page)
            assert np.array_equal(accounts.spent[slots_on(page)], given.spent)
            assert np.array_equal(counters.charged_of(slice(None))[slots_on(page)], given.charged)
            assert np.array_equal(counters.left_out_of(slice(None))[slots_on(page)], given.left_out)


def test_pages_and_later_entries_give_the_ledgers_totals() -> None:
    """Histories of forty events."""
    run_state_machine_as_test(
        CheckpointMachine, settings=settings(max_examples=times(5, 120), stateful_step_count=40, deadline=None)
    )


def test_a_checkpoint_has_the_pages_of_a_lost_one_too() -> None:
    """A copy that was dropped before it was written leaves its pages to the next."""
    machine = CheckpointMachine()
    for slot in (0, PAGE_SLOTS):
        machine.charge(0, {slot}, set(), 1, ok=True)
        machine.copy(0)
    copied = machine.replicas[0].copied
    assert copied is not None
    for page in copied.pages:
        machine.store.write_page(1, copied, page)
    machine.store.finish_checkpoint(1, copied)
    machine.pages_and_tail_are_the_ledger()
