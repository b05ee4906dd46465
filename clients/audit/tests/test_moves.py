"""The schedule: everything begun is ended, budgets are met at the end, and both analysts ask."""

from sparing_audit.adversaries import Act
from sparing_audit.moves import DYADIC, ask, ask_together, begin, end, schedule
from sparing_audit.noise import UNITS_PER_RHO
from sparing_audit.service import ANALYSTS

MOVES = [(move.func, move.keywords) for move in schedule()]
ASKED = [stated for func, stated in MOVES if func is ask]


def test_every_act_is_done_and_those_that_last_are_ended() -> None:
    """In the order: begun, then ended, before the last queries."""
    for act in Act:
        places, ends = (
            [number for number, move in enumerate(MOVES) if move == (func, {"act": act})] for func in (begin, end)
        )
        assert places
        assert len(ends) == (len(places) if act is Act.PAUSE else act is Act.ERASE)
        assert all(place < end for place, end in zip(places, ends, strict=False))
        assert any(func is ask and stated["is_rest"] for func, stated in MOVES[max(places + ends) :])


def test_all_analysts_ask_about_both_tables() -> None:
    """The sigma of the last queries meets budgets without rounding. An adversary goes by the turns of its own table."""
    assert len({(stated["table"], stated["analyst"]) for stated in ASKED}) == 2 * ANALYSTS
    rests = {(stated["table"], stated["sigma"]) for stated in ASKED if stated["is_rest"]}
    assert rests == {("people", DYADIC), ("rows", DYADIC)}
    is_whole = {stated["sigma"]: (UNITS_PER_RHO / (2 * stated["sigma"] ** 2)).is_integer() for stated in ASKED}
    assert is_whole[DYADIC]
    assert not all(is_whole.values())
    for table in ("people", "rows"):
        turns = [stated["turn"] for stated in ASKED if stated["table"] == table]
        assert turns == list(range(len(turns)))


def test_there_are_batches_and_repeated_queries() -> None:
    """Several of each."""
    assert sum(func is ask_together for func, _ in MOVES) >= 3
    assert sum(stated.get("is_repeated", False) for stated in ASKED) >= 3
