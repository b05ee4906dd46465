"""The schedule: everything begun is ended, budgets are met at the end, and both analysts ask."""

from collections import Counter

from sparing_audit.adversaries import Act
from sparing_audit.moves import DYADIC, Again, Asks, Begins, Ends, Together, schedule
from sparing_audit.noise import UNITS_PER_RHO
from sparing_audit.service import ANALYSTS

MOVES = list(schedule())
ASKED = [move for move in MOVES if isinstance(move, Asks)]


def test_every_act_is_done_and_those_that_last_are_ended() -> None:
    """In the order: begun, then ended, before the last queries."""
    for act in Act:
        places = [number for number, move in enumerate(MOVES) if move == Begins(act)]
        ends = [number for number, move in enumerate(MOVES) if move == Ends(act)]
        assert places
        assert len(ends) == (len(places) if act is Act.PAUSE else act is Act.ERASE)
        assert all(place < end for place, end in zip(places, ends, strict=False))
        assert any(isinstance(move, Asks) and move.is_rest for move in MOVES[max(places + ends) :])


def test_all_analysts_ask_about_both_tables() -> None:
    """The sigma of the last queries meets budgets without rounding. An adversary goes by the turns of its own table."""
    assert len(Counter((move.table, move.analyst) for move in ASKED)) == 2 * ANALYSTS
    assert {(move.table, move.sigma) for move in ASKED if move.is_rest} == {("people", DYADIC), ("rows", DYADIC)}
    assert (UNITS_PER_RHO / (2 * DYADIC**2)).is_integer()
    assert not all((UNITS_PER_RHO / (2 * move.sigma**2)).is_integer() for move in ASKED)
    for table in ("people", "rows"):
        turns = [move.turn for move in ASKED if move.table == table]
        assert turns == list(range(len(turns)))


def test_there_are_batches_and_repeated_queries() -> None:
    """Several of each."""
    assert min(sum(isinstance(move, kind) for move in MOVES) for kind in (Together, Again)) >= 3
