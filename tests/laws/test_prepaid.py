"""Ticks through erasures, returns, pauses, lowered limits and restores never cost anybody more than the reserve."""

from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.laws.monitor_machine import MonitorMachine
from tests.rotation import times


def test_no_history_costs_anybody_more_than_the_reserve() -> None:
    """Fifteen histories of forty events in a run, eighty in the soak."""
    run_state_machine_as_test(
        MonitorMachine, settings=settings(max_examples=times(8, 80), stateful_step_count=40, deadline=None)
    )


@pytest.fixture
def machine() -> Iterator[MonitorMachine]:
    """A machine for a history written by hand."""
    made = MonitorMachine()
    made.register()
    yield made
    made.teardown()


def hold(machine: MonitorMachine) -> None:
    """All laws."""
    machine.hold()
    machine.no_ticks_cost_more_than_the_reserve()
    machine.everybody_has_one_first_tick()


def test_an_individual_erased_and_back_goes_on_with_its_run(machine: MonitorMachine) -> None:
    """p0 is counted at the first tick, is gone at the second, and adds at the third what its first tick asks for."""
    machine.ask(0, 0.8)
    machine.tick()
    machine.erase("p0")
    machine.tick()
    machine.join({"p0"}, 5)
    machine.tick()
    assert [tick for tick, _ in machine.added["p0"]] == [1, 3]
    hold(machine)


@pytest.mark.parametrize("is_running", [True, False])
def test_a_restore_that_forgets_a_tick_ends_the_monitor(machine: MonitorMachine, is_running: bool) -> None:
    """Else p0 would be counted at the first tick twice."""
    machine.ask(0, 0.8)
    before = machine.backups[-1]
    machine.tick()
    machine.back_up()
    knowing = machine.backups[-1]
    machine.put_back(before, is_running)
    machine.tick()
    machine.put_back(knowing, is_running)
    machine.tick()
    assert (machine.ticks, machine.refusals) == (1, 2)
    hold(machine)
