"""The schedule: everything begun is ended, budgets are met at the end, and both analysts ask."""

from collections import Counter

from sparing_audit.adversaries import Act
from sparing_audit.own_filter import price_of
from sparing_audit.schedule import DYADIC, Again, Asks, Begins, Ends, Together, schedule
from sparing_audit.service import ANALYSTS

STEPS = list(schedule())


def test_every_act_is_done_and_those_that_last_are_ended() -> None:
    """In the order: begun, then ended, before the last queries."""
    for act in Act:
        places = [number for number, step in enumerate(STEPS) if step == Begins(act)]
        ends = [number for number, step in enumerate(STEPS) if step == Ends(act)]
        assert places
        assert len(ends) == (len(places) if act is Act.PAUSE else act is Act.ERASE)
        assert all(place < end for place, end in zip(places, ends, strict=False))
        assert any(isinstance(step, Asks) and step.is_rest for step in STEPS[max(places + ends) :])


def test_all_analysts_ask_about_both_tables() -> None:
    """And the sigma of the last queries meets budgets without rounding."""
    asked = Counter((step.table, step.analyst) for step in STEPS if isinstance(step, Asks))
    rest = [step for step in STEPS if isinstance(step, Asks) and step.is_rest]

    assert len(asked) == 2 * ANALYSTS
    assert {step.sigma for step in rest} == {DYADIC}
    assert price_of(DYADIC).denominator == 1
    assert {step.table for step in rest} == {"people", "rows"}
    assert any(price_of(step.sigma).denominator > 1 for step in STEPS if isinstance(step, Asks))


def test_there_are_batches_and_repeated_queries() -> None:
    """Several of each, and of batches at least one before budgets are spent."""
    assert sum(isinstance(step, Together) for step in STEPS) >= 3
    assert sum(isinstance(step, Again) for step in STEPS) >= 3


def test_turns_of_a_table_count_from_zero() -> None:
    """An adversary goes by its own turns."""
    for table in ("people", "rows"):
        turns = [step.turn for step in STEPS if isinstance(step, Asks) and step.table == table]
        assert turns == list(range(len(turns)))
