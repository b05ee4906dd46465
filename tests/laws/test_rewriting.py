"""Erasures and prunings rewrite entries at any time: the ledger stays sound, and no individual gains budget.

All rules of `tests.laws.test_restore`, restores included, with amendments and prunings in between.
"""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from numpy.typing import NDArray

from service.ledger.model.errors import InvalidRequest
from service.maintenance.amend import amend_erased
from service.maintenance.prune import prune
from service.writer.threads import WriterThread
from tests.laws.restore_machine import KEYS, NAME, RestoreMachine
from tests.memory.shards import only_shard
from tests.rotation import times


class RewritingMachine(RestoreMachine):
    """The restore law with rules that rewrite entries."""

    @property
    def writer(self) -> WriterThread:
        """The writer of the one dataset."""
        return self.replica.registry.writer(self.replica.registry.record(NAME))

    def spent(self) -> NDArray[np.int64]:
        """The spent totals by slot from pages and entries: a replay from the first entry would not give them."""
        with self.store.transaction(1, lock=False) as transaction:
            slots = range(transaction.head.slots)
            return np.array([transaction.account_of(slot).spent for slot in slots], dtype=np.int64)

    @rule()
    def amend(self) -> None:
        """Amend for all erasures: no entry before an erasure holds the erased individual."""
        amend_erased(self.writer)
        with self.store.transaction(1, lock=False) as transaction:
            for act in transaction.acts_of("erase"):
                for entry in transaction.entries(after=transaction.head.pruned_seq):
                    if entry.seq <= act.at_seq:
                        assert entry.quantities().own(act.detail["slot"], entry.law).outcome == "untouched"

    @rule(key=KEYS, age=st.sampled_from([0, 5]))
    def forget(self, key: str, age: int) -> None:
        """Charge an individual, erase it and amend its entries."""
        self.ask(age, 3.0)
        self.erase(key)
        self.amend()

    @rule(share=st.sampled_from([0.3, 0.7, 1.0]), has_checkpoint=st.booleans())
    def prune(self, share: float, has_checkpoint: bool) -> None:
        """Prune the first entries, up to a checkpoint at most; no account changes."""
        before = self.spent()
        if has_checkpoint:
            self.writer.checkpoint()
        try:
            prune(self.store, self.witness, NAME, before=int(share * self.head.seq) + 1, entropy=self.entropy)
        except InvalidRequest:
            assert self.head.pruned_seq == 0
        assert np.array_equal(self.spent(), before)
        with self.store.transaction(1, lock=False) as transaction:
            pruned_seq = transaction.head.pruned_seq
            assert all(entry.is_pruned == (entry.seq <= pruned_seq) for entry in transaction.entries(after=0))

    @rule()
    def start_anew(self) -> None:
        """Start another process, which has nothing in memory."""
        self.replica.close()
        self.replica = self.open()
        before = self.spent()
        self.writer.catch_up()
        held = self.writer.look(lambda state: only_shard(state).memory.accounts.spent[: before.size].tolist())
        assert held == before.tolist()


def test_rewriting_keeps_the_ledger_sound_and_gives_no_budget_back() -> None:
    """Ten histories of forty events in a run, sixty in the soak."""
    run_state_machine_as_test(
        RewritingMachine, settings=settings(max_examples=times(10, 60), stateful_step_count=40, deadline=None)
    )
