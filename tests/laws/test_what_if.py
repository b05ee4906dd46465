"""A ledger replayed under its own rule and budget decides as it did, whatever has happened to it.

The histories are those of the restore law: limits that uploads state, lowered limits, pauses, erasures and returns,
restores and burns. Here entries are amended after erasures too, some of them or all.
"""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule, run_state_machine_as_test
from numpy.typing import NDArray

from service.ledger.model.ledger_entry import LedgerEntry
from service.maintenance import amend as amend_module
from service.maintenance.amend import amend_erased
from service.maintenance.supposed_replay import QueryOutcome, SupposedReplay
from service.writer.state import DatasetState
from tests.laws.restore_machine import NAME, RestoreMachine
from tests.memory.shards import only_shard
from tests.rotation import times


class WhatIfMachine(RestoreMachine):
    """The histories of the restore law with amendments, and the replay after every step.

    `more_units` are added to the supposed budget: anything else than 0 is a planted mistake.
    """

    # The laws of restores are not looked at again here.
    remaining_budgets_are_at_most_the_true_ones = None  # type: ignore[assignment]
    promises_cover_all_that_may_be_spent = None  # type: ignore[assignment]
    everybody_is_told_the_same_totals = None  # type: ignore[assignment]
    the_ledger_replays = None  # type: ignore[assignment]

    def __init__(self, filter_rule: str = "skip", more_units: int = 0) -> None:
        super().__init__(filter_rule)
        self.more_units = more_units

    @rule(ranges=st.integers(1, 3))
    def amend(self, ranges: int) -> None:
        """Amend entries for erasures, in ranges of two entries."""
        before = self.amended()
        writer = self.replica.registry.writer(self.replica.registry.record(NAME))
        writer.catch_up()  # a new replica writes no checkpoint of what it has not read
        with patch.object(amend_module, "STRETCH_ENTRIES", 2):
            amend_erased(writer, is_over=lambda: self.amended() >= before + ranges)

    def amended(self) -> int:
        """The number of ranges that were amended."""
        with self.store.transaction(1, lock=False) as transaction:
            return len(transaction.acts_of("amend"))

    def spent(self) -> NDArray[np.int64]:
        """The spent totals by slot as a start would load them: amended entries do not tell all."""
        with self.store.transaction(1, lock=False) as transaction:
            state = DatasetState(transaction.registration())
            state.catch_up(transaction)
            return only_shard(state).memory.accounts.spent[: transaction.head.slots]

    @invariant()
    def its_own_decisions_come_out(self) -> None:
        """Entry by entry the very slots, and every spent total; of those erased, at most what they truly spent."""
        with self.store.transaction(1, lock=False) as transaction:
            record = transaction.registration()
            supposed = record.budget_units + self.more_units
            replay = SupposedReplay(
                record, transaction, rule=None, budget_units=supposed, accounting=record.accounting, tell=is_as_it_was
            )
            replay.run()
            erased = [act.detail["slot"] for act in transaction.acts_of("erase")]
        found, wanted = replay.spent, self.spent()
        assert bool((found <= wanted).all())
        assert np.delete(found, erased).tolist() == np.delete(wanted, erased).tolist()


def is_as_it_was(entry: LedgerEntry, outcome: QueryOutcome | None) -> None:
    """Check that a query touches and counts the very slots that it did."""
    assert (outcome is None) == (entry.kind == "burn")
    if outcome is not None:
        wanted, found = entry.priced(), outcome.touched
        assert found.slots(outcome.active).tolist() == wanted.charged.tolist(), entry.seq
        assert found.slots().tolist() == wanted.touched.tolist()
        assert outcome.counted_here == outcome.counted


@pytest.mark.parametrize("rule", ["skip", "drop"])
def test_a_ledger_under_its_own_rule_and_budget_decides_as_it_did(rule: str) -> None:
    """Eight histories of forty events in a run, four hundred in the soak."""
    run_state_machine_as_test(
        lambda: WhatIfMachine(rule),  # type: ignore[arg-type]  # it is only ever called
        settings=settings(max_examples=times(8, 400), stateful_step_count=40, deadline=None),
    )


def test_another_budget_is_noticed() -> None:
    """p1 cannot pay for the fifth of these queries, and could with half a rho more: the law can fail."""
    machine = WhatIfMachine()
    machine.register()
    for _ in range(5):
        machine.ask(0, 1.0)
    machine.its_own_decisions_come_out()
    machine.more_units = 2**39
    with pytest.raises(AssertionError):
        machine.its_own_decisions_come_out()
    machine.teardown()


@pytest.mark.parametrize("rule", ["skip", "drop"])
def test_one_that_was_shortened_and_came_back_pays_what_it_did(rule: str) -> None:
    """An upload stated its limit, which the ledger does not hold after the erasure; what was counted it does hold."""
    machine = WhatIfMachine(rule)
    machine.register()
    machine.ask(0, 0.7, query_rule="clip")
    machine.erase("p0")
    machine.join({"p0"}, 2)
    machine.its_own_decisions_come_out()
    machine.teardown()


@pytest.mark.parametrize("rule", ["skip", "drop"])
def test_one_that_joined_after_a_burn_had_no_more_than_the_burn_allowed(rule: str) -> None:
    """The ledger does not hold its limit after the erasure, but by how much limits are lowered since a restore."""
    machine = WhatIfMachine(rule)
    machine.register()
    machine.ask(0, 0.7)
    machine.put_back(machine.backups[0], is_running=False)
    machine.join({"p4"}, 2)
    machine.ask(0, 0.7, query_rule="clip")
    machine.erase("p4")
    machine.join({"p4"}, 2)
    machine.its_own_decisions_come_out()
    machine.teardown()
