"""Two people who pause, resume and lower their limits around backups, and never pay more than their limits.

A part of what `tests.laws.test_restore` does, in which little else happens: so a hundred short histories meet whoever
pauses before a backup, is charged after it, and has the backup, and with it the pause, brought back.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.laws.test_restore import RestoreMachine

WHO = st.sampled_from(["p0", "p1"])


class PauseMachine(RuleBasedStateMachine):
    """The rules that matter to a pause, in a world of the restore law."""

    def __init__(self) -> None:
        super().__init__()
        self.world = RestoreMachine()

    def teardown(self) -> None:
        self.world.teardown()

    @initialize()
    def register(self) -> None:
        """One dataset with two people, of whom one can pay for two answers and the other for four."""
        self.world.register()
        self.world.backups[:1] = []

    @rule(key=WHO, is_backed_up=st.booleans())
    def pause(self, key: str, is_backed_up: bool) -> None:
        """Perhaps once more, and perhaps just before a copy is made."""
        self.world.pause(key, paused=True)
        if is_backed_up:
            self.world.back_up()

    @rule(key=WHO, is_asked=st.booleans())
    def resume(self, key: str, is_asked: bool) -> None:
        """Perhaps without a pause, and perhaps just before an answer leaves."""
        self.world.pause(key, paused=False)
        if is_asked:
            self.world.ask(0, 1.0)

    @rule(key=WHO, to=st.sampled_from(["0.5", "0.75"]))
    def lower(self, key: str, to: str) -> None:
        """For good, unless a restore forgets it."""
        self.world.lower(key, to)

    @rule()
    def ask(self) -> None:
        """An answer leaves."""
        self.world.ask(0, 1.0)

    @rule()
    def back_up(self) -> None:
        """A copy."""
        self.world.back_up()

    @rule(age=st.integers(0, 2))
    def restore(self, age: int) -> None:
        """One of the newest copies comes back, and what it has forgotten is burned."""
        backups = self.world.backups
        self.world.put_back(backups[max(len(backups) - 1 - age, 0)], is_running=True)

    @invariant()
    def nobody_ever_pays_more_than_the_limit(self) -> None:
        """What restores forgot is counted; and what is left is no more than is truly left."""
        self.world.hold()


@pytest.mark.slow
def test_nobody_ever_pays_more_than_the_limit_by_pausing() -> None:
    """A hundred histories of twenty events."""
    run_state_machine_as_test(PauseMachine, settings=settings(max_examples=100, stateful_step_count=20, deadline=None))
