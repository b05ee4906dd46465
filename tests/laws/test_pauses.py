"""Two individuals pause, resume and lower their limits around backups, and never pay more than their limits.

A subset of the rules of `tests.laws.test_restore`, so that some dozens of short histories reach the case of an
individual that pauses before a backup, is charged after it, and is paused again by the restore.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.laws.restore_machine import RestoreMachine
from tests.rotation import times

WHO = st.sampled_from(["p0", "p1"])


class PauseMachine(RuleBasedStateMachine):
    """The rules of the restore law that concern pauses."""

    def __init__(self) -> None:
        super().__init__()
        self.world = RestoreMachine()

    def teardown(self) -> None:
        self.world.teardown()

    @initialize()
    def register(self) -> None:
        """One dataset with two individuals: one can pay for two answers, the other for four."""
        self.world.register()
        self.world.backups[:1] = []

    @rule(key=WHO, is_backed_up=st.booleans())
    def pause(self, key: str, is_backed_up: bool) -> None:
        """Pause, possibly repeatedly, and possibly just before a backup."""
        self.world.pause(key, paused=True)
        if is_backed_up:
            self.world.back_up()

    @rule(key=WHO, is_asked=st.booleans())
    def resume(self, key: str, is_asked: bool) -> None:
        """Resume, possibly without a pause, and possibly just before an answer."""
        self.world.pause(key, paused=False)
        if is_asked:
            self.world.ask(0, 1.0)

    @rule(key=WHO, to=st.sampled_from(["0.5", "0.75"]))
    def lower(self, key: str, to: str) -> None:
        """Lower a limit, permanently unless a restore undoes it."""
        self.world.lower(key, to)

    @rule()
    def ask(self) -> None:
        """Answer a query."""
        self.world.ask(0, 1.0)

    @rule()
    def back_up(self) -> None:
        """Make a backup."""
        self.world.back_up()

    @rule(age=st.integers(0, 2))
    def restore(self, age: int) -> None:
        """Restore one of the newest backups and reconcile, which burns the charges that it lacks."""
        backups = self.world.backups
        self.world.put_back(backups[max(len(backups) - 1 - age, 0)], is_running=True)

    @invariant()
    def no_individual_pays_more_than_its_limit(self) -> None:
        """Charges lost by restores are counted, and the remaining budget is at most the true one."""
        self.world.hold()


@pytest.mark.slow
def test_no_individual_pays_more_than_its_limit_by_pausing() -> None:
    """Histories of twenty events."""
    run_state_machine_as_test(
        PauseMachine, settings=settings(max_examples=times(50, 200), stateful_step_count=20, deadline=None)
    )
