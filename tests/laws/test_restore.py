"""Any backup may be restored at any time: after reconciling, no individual has more left than it truly has.

Pauses do not change that, although a restore may bring back a pause or the end of one.

The true totals are kept outside the service: every charge of every answer that ever left it, in any history, is added
up and never taken back. Any copy of the database, also one of a history given up before, replaces the newest, under
a running replica or a new one.
"""

from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.laws.restore_machine import RestoreMachine
from tests.rotation import times


@pytest.mark.parametrize("rule", ["skip", "drop"])
def test_no_restore_gives_an_individual_budget_back(rule: str) -> None:
    """Eight histories of forty events in a run, eighty in the soak.

    Under the drop rule no answer counts an individual that was left out once, restored or not: a burn is at least the
    charges of the lost entries, of which one did not fit.
    """
    run_state_machine_as_test(
        lambda: RestoreMachine(rule),  # type: ignore[arg-type]  # it is only ever called
        settings=settings(max_examples=times(8, 80), stateful_step_count=40, deadline=None),
    )


def test_an_individual_left_out_in_a_lost_entry_stays_out() -> None:
    """p0 pays, cannot pay for the next, and the restore forgets both: what the burn leaves pays for nothing."""
    machine = RestoreMachine("drop")
    machine.register()
    before = machine.backups[-1]
    machine.ask(0, 1.0)
    machine.ask(0, 0.9)
    assert machine.truth.left_out == {"p0"}
    machine.put_back(before, is_running=True)
    machine.ask(0, 3.0)
    assert machine.truth.spent["p0"] == 2**39
    machine.hold()
    machine.teardown()


def test_one_left_out_after_a_burn_may_pay_in_a_history_without_it() -> None:
    """The burn of an empty copy lowers p2's limit as it joins, so that a query leaves it out.

    The copy that is put back then has the entry that was burned for: p2 joins under a burn of the lost query alone, as
    decision 49 says of a lowered limit, and pays no more than it states.
    """
    machine = RestoreMachine("drop")
    machine.register()
    empty = machine.backups[0]
    machine.ask(0, 0.7)
    machine.back_up()
    machine.put_back(empty, is_running=False)
    machine.join({"p2"}, 2)
    machine.ask(0, 0.7)
    assert machine.truth.left_out == {"p0", "p2"}
    machine.put_back(machine.backups[-1], is_running=False)
    machine.join({"p2"}, 2)
    machine.ask(0, 3.0)
    assert 0 < machine.truth.spent["p2"] < machine.account("p2")[1] < machine.truth.limit("p2")
    machine.hold()
    machine.teardown()


@pytest.fixture
def machine() -> Iterator[RestoreMachine]:
    """A machine for a history written by hand."""
    made = RestoreMachine()
    made.register()
    yield made
    made.teardown()


@pytest.mark.parametrize("is_running", [True, False])
def test_an_individual_above_a_limit_lowered_in_another_history_has_nothing_left(
    machine: RestoreMachine, is_running: bool
) -> None:
    """A restore forgets that p0 lowered its limit, and p0 pays again; then the copy that knows of it is put back.

    Its ledger cannot hold the true total, which is above p0's limit there, so it holds the limit. Leaving and coming
    back leaves p0 nothing, and the copy without the lowered limit burns all that was spent.
    """
    ignorant = machine.backups[-1]
    machine.ask(0, 1.0)
    machine.lower("p0")
    machine.back_up()
    knowing = machine.backups[-1]
    machine.put_back(ignorant, is_running)
    machine.ask(0, 1.0)
    machine.put_back(knowing, is_running)
    assert (machine.account("p0"), machine.truth.spent["p0"]) == ((2**39, 2**39), 2**40)
    machine.hold()
    machine.erase("p0")
    machine.join({"p0"}, 5)
    assert machine.account("p0") == (2**39, 2**39)
    machine.ask(0, 1.0)
    assert machine.truth.spent["p0"] == 2**40
    machine.hold()
    machine.put_back(ignorant, is_running)
    assert machine.account("p0") == (2**40, 2**40)
    machine.ask(0, 1.0)
    machine.hold()


@pytest.mark.parametrize("is_running", [True, False])
def test_a_pause_brings_back_no_charge_lost_by_a_restore(machine: RestoreMachine, is_running: bool) -> None:
    """p0 pauses before the backup and pays for answers after it; the backup is restored, with the pause.

    If a burn took a pause for a limit, it would charge nothing, and the end of the pause would give p0 the
    whole limit again.
    """
    machine.pause("p0")
    machine.back_up()
    resting = machine.backups[-1]
    machine.pause("p0", paused=False)
    machine.ask(0, 1.0)
    machine.ask(0, 1.0)
    assert machine.truth.spent["p0"] == 2**40
    machine.put_back(resting, is_running)
    assert machine.account("p0") == (2**40, 2**40)
    machine.pause("p0", paused=False)
    machine.ask(0, 1.0)
    assert machine.truth.spent["p0"] == 2**40
    machine.hold()


def test_limit_and_pause_survive_an_erasure_and_a_return(machine: RestoreMachine) -> None:
    """The account survives the erasure, and only the individual ends its pause."""
    machine.ask(0, 1.0)
    machine.pause("p0")
    machine.erase("p0")
    machine.join({"p0"}, 5)
    assert machine.account("p0") == (2**39, 2**40)
    machine.ask(0, 1.0)
    assert machine.truth.spent["p0"] == 2**39
    machine.pause("p0", paused=False)
    machine.ask(0, 1.0)
    assert machine.truth.spent["p0"] == 2**40
