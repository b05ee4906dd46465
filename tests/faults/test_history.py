"""The checker of histories, on small ones with a planted violation each: a checker that cannot fail shows nothing."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.faults.history import Attempt, Curve, Entry, History, Reading, Reply, Ticks, violations

COSTS = {"all": {0: 3, 1: 3}, "first": {0: 5}}
LIMITS = {0: 10, 1: 4}


def attempt(key: str, question: str, started: float, seen_at: float | None, body: bytes = b"") -> Attempt:
    """A delivery that was answered in full, or one of which nothing came back."""
    status = None if seen_at is None else 200
    return Attempt(
        key=key, question=question, started=started, seen_at=seen_at, status=status, body=body, complete=bool(body)
    )


def history() -> History:
    """Three executed queries and one that reuses the first; a fourth got lost on its way in."""
    return History(
        limits=LIMITS,
        costs=COSTS,
        attempts=[
            attempt("a", "all", 0, None),
            attempt("a", "all", 1, 2, b"A!"),
            attempt("b", "first", 3, 5, b"B!"),
            attempt("c", "all", 4, 6, b"C!"),
            attempt("d", "all", 4, 7, b"D!"),
            attempt("e", "all", 5, None),
        ],
        entries=[
            Entry(seq=1, made_by="a", charged={0: 3, 1: 3}, left_out=frozenset()),
            Entry(seq=2, made_by="b", charged={0: 5}, left_out=frozenset()),
            Entry(seq=3, made_by="c", charged={}, left_out=frozenset({0, 1})),
        ],
        replies=[
            Reply(key="a", seq=1, body=b"A!"),
            Reply(key="b", seq=2, body=b"B!"),
            Reply(key="c", seq=3, body=b"C!"),
            Reply(key="d", seq=1, body=b"D!"),
        ],
        readings=[
            Reading(started=0, ended=1.5, spent={0: 0, 1: 0}),
            Reading(started=2.5, ended=2.8, spent={0: 3, 1: 3}),
            Reading(started=3.5, ended=9, spent={0: 8, 1: 3}),
        ],
    )


def test_a_right_history_has_no_violation() -> None:
    """Retries, reuse, lost requests and overlapping readings are no violations."""
    assert violations(history()) == []


def test_an_attempt_without_an_answer_may_have_been_executed_or_not() -> None:
    """Also one whose client never got a response."""
    lost = history()
    entry = Entry(seq=4, made_by="e", charged={}, left_out=frozenset({0, 1}))
    assert violations(replace(lost, entries=[*lost.entries, entry])) == []


def test_half_an_answer_must_be_the_beginning_of_the_stored_one() -> None:
    """A prefix is right, anything else is not; headers without a body count as seen."""
    right = history()
    for body, found in ((b"", 0), (b"A", 0), (b"X", 1), (b"A!!", 1)):
        seen = replace(right.attempts[1], key="a", body=body, complete=False)
        assert len(violations(replace(right, attempts=[seen, *right.attempts]))) == found


def test_a_query_for_the_active_charges_those_that_have_the_threshold_left() -> None:
    """After the third entry the first person has 2 units left and the second 1; nobody else is touched, or left out."""
    h = history()
    h = replace(h, costs={**COSTS, "active": {0: 1, 1: 1}}, attempts=[*h.attempts, attempt("f", "active", 8, None)])
    for threshold, charged in ((1, {0: 1, 1: 1}), (2, {0: 1}), (3, {})):
        for told in ({0: 1, 1: 1}, {0: 1}, {}):
            entry = Entry(seq=4, made_by="f", charged=told, left_out=frozenset())
            found = violations(replace(h, entries=[*h.entries, entry], thresholds={"active": threshold}))
            assert (found == []) == (told == charged)


def test_under_the_drop_rule_nobody_pays_that_was_left_out() -> None:
    """The second person could pay for a cheaper query after the third entry, and does under skip."""
    h = history()
    asked = [*h.attempts, attempt("f", "cheap", 8, None)]
    costs = {**COSTS, "cheap": {1: 1}}
    paid, left = (
        [*h.entries, Entry(seq=4, made_by="f", charged=charged, left_out=left_out)]
        for charged, left_out in (({1: 1}, frozenset[int]()), ({}, frozenset({1})))
    )
    for rule, right, wrong in (("skip", paid, left), ("drop", left, paid)):
        seen = replace(h, rule=rule, costs=costs, attempts=asked)
        assert violations(replace(seen, entries=right)) == []
        assert any("does not charge whom" in each for each in violations(replace(seen, entries=wrong)))


def test_under_the_clip_rule_everybody_pays_for_the_part_that_fits() -> None:
    """The first person has two units left after the third entry and the second one, which pays for no step.

    Under the drop rule neither takes part: both were left out in the third entry.
    """
    h = history()
    seen = replace(
        h,
        costs={**COSTS, "short": {0: 5, 1: 5}},
        attempts=[*h.attempts, attempt("f", "short", 8, None)],
        shortened={"short": lambda left: left // 2 * 2},
    )
    rights: dict[str, dict[int, int]] = {"skip": {0: 2}, "drop": {}}
    for rule, right in rights.items():
        for told in ({0: 5, 1: 5}, {0: 5}, {0: 2, 1: 1}, {0: 2}, {0: 1}, {}):
            entry = Entry(seq=4, made_by="f", charged=told, left_out=frozenset({0, 1} - told.keys()))
            found = violations(replace(seen, rule=rule, entries=[*h.entries, entry]))
            assert (found == []) == (told == right)


PLANTED = {
    "a gap": lambda h: replace(h, entries=[h.entries[0], h.entries[1], replace(h.entries[2], seq=4)]),
    "executed 2 times": lambda h: replace(
        h, entries=[*h.entries, Entry(seq=4, made_by="a", charged={}, left_out=frozenset({0, 1}))]
    ),
    "was never asked": lambda h: replace(h, entries=[*h.entries[:2], replace(h.entries[2], made_by="x")]),
    "has a reply and was never": lambda h: replace(h, replies=[*h.replies, Reply(key="x", seq=1, body=b"A!")]),
    "has no stored reply": lambda h: replace(h, replies=h.replies[:2] + h.replies[3:]),
    "with other bytes": lambda h: replace(h, replies=[replace(h.replies[0], body=b"A?"), *h.replies[1:]]),
    "two replies": lambda h: replace(h, replies=[*h.replies, h.replies[0]]),
    "does not charge whom": lambda h: replace(
        h, entries=[h.entries[0], replace(h.entries[1], charged={}, left_out=frozenset({0})), h.entries[2]], readings=[]
    ),
    "more than its limit": lambda h: replace(
        h, entries=[*h.entries[:2], replace(h.entries[2], charged={0: 3}, left_out=frozenset({1}))]
    ),
    "comes after it in the ledger": lambda h: replace(
        h,
        attempts=[*h.attempts, attempt("f", "first", 8, 9, b"F!")],
        entries=[
            *h.entries[:2],
            Entry(seq=3, made_by="f", charged={}, left_out=frozenset({0})),
            replace(h.entries[2], seq=4),
        ],
        replies=[*h.replies[:2], replace(h.replies[2], seq=4), h.replies[3], Reply(key="f", seq=3, body=b"F!")],
    ),
    "before anybody asked": lambda h: replace(
        h,
        attempts=[*h.attempts[:4], replace(h.attempts[4], seen_at=3.5), h.attempts[5]],
        replies=[*h.replies[:3], replace(h.replies[3], seq=3)],
    ),
    "fits nowhere": lambda h: replace(h, readings=[Reading(started=2.5, ended=2.8, spent={0: 0, 1: 0})]),
}


@pytest.mark.parametrize("finding", PLANTED)
def test_a_planted_violation_is_found(finding: str) -> None:
    """Each kind by its own words."""
    found = violations(PLANTED[finding](history()))
    assert any(finding in each for each in found), found


def test_readings_are_placed_together() -> None:
    """Two readings that would each fit alone, and not in their order of time, are found out."""
    right = history()
    backwards = [
        Reading(started=3.2, ended=3.3, spent={0: 8, 1: 3}),
        Reading(started=3.4, ended=3.5, spent={0: 3, 1: 3}),
    ]
    assert len(violations(replace(right, readings=backwards))) == 1
    assert violations(replace(right, readings=backwards[:1])) == []
    assert violations(replace(right, readings=backwards[1:])) == []


def test_a_reading_cannot_know_the_future() -> None:
    """A query begun only after the reading ended is not in it."""
    early = [Reading(started=0, ended=2.9, spent={0: 8, 1: 3})]
    assert len(violations(replace(history(), readings=early))) == 1


def tick(key: str, number: int, added: dict[int, int]) -> Entry:
    """The entry of a tick, whose value is a hundred times its number."""
    charged: dict[int, int] = {}
    return Entry(
        seq=0, made_by=key, charged=charged, left_out=frozenset(), tick=number, value=100.0 * number, added=added
    )


def ticking() -> History:
    """Five ticks around the three queries: the first person has 10, 7 and 2 units left, the second 4 and 1."""
    h = history()
    entries = [
        tick("t1", 1, {}),
        h.entries[0],
        tick("t2", 2, {1: 8}),
        h.entries[1],
        tick("t3", 3, {0: 8, 1: 4}),
        h.entries[2],
        tick("t4", 4, {0: 4, 1: 3}),
    ]
    entries = [replace(entry, seq=number) for number, entry in enumerate(entries, 1)]
    places = {entry.made_by: entry.seq for entry in entries}
    shown = [
        Reply(key=each.made_by, seq=each.seq, body=b"T", tick=each.tick, value=each.value)
        for each in entries
        if each.tick
    ]
    return replace(
        h,
        attempts=[*h.attempts, *(attempt(f"t{number}", "tick", 0, None) for number in range(1, 6))],
        entries=entries,
        replies=[*(replace(reply, seq=places.get(reply.key, 2)) for reply in h.replies), *shown],
        costs={**COSTS, "tick": {}},
        ticks=Ticks(question="tick", coefficients=(8, 4, 3, 2), threshold=3),
        curves=[Curve(started=0, values=()), Curve(started=1, values=(100.0, 200.0))],
    )


def changed(history: History, place: int, **more: object) -> History:
    """With another entry at a place."""
    entries = [replace(each, **more) if n == place else each for n, each in enumerate(history.entries)]  # type: ignore[arg-type]
    return replace(history, entries=entries)


def answered_again(history: History, value: float) -> History:
    """The second tick is answered under another key too."""
    again = Reply(key="t5", seq=3, body=b"T", tick=2, value=value)
    return replace(history, replies=[*history.replies, again])


PLANTED_IN_TICKS: dict[str, tuple[str, Callable[[History], History]]] = {
    "a number twice": ("is tick 2 and not 3", lambda h: changed(h, 4, tick=2)),
    "nobody": ("tick 2 does not count", lambda h: changed(h, 2, added={})),
    "somebody too early": ("tick 1 does not count", lambda h: changed(h, 0, added={1: 8})),
    "a run that begins anew": ("tick 4 does not count", lambda h: changed(h, 6, added={0: 8, 1: 8})),
    "a charge": ("does not charge whom", lambda h: changed(h, 2, charged={1: 1})),
    "a count as a tick": ("was not asked for", lambda h: changed(h, 1, tick=9)),
    "a second answer": ("not one for each tick", lambda h: answered_again(h, 200.0)),
    "a second number": ("not one for each tick", lambda h: answered_again(h, 201.0)),
    "another number": ("not one for each tick", lambda h: changed(h, 2, value=201.0)),
    "a curve of other numbers": (
        "is not of the ledger",
        lambda h: replace(h, curves=[Curve(started=1, values=(100.0, 201.0))]),
    ),
    "a curve that lacks a tick": (
        "is not of the ledger",
        lambda h: replace(
            h, attempts=[*h.attempts, attempt("t1", "tick", 0, 1, b"T")], curves=[Curve(started=2, values=())]
        ),
    ),
}


def test_ticks_in_their_order_have_no_violation() -> None:
    """The second person is counted from the second tick on, the first from the third on."""
    assert violations(ticking()) == []


@pytest.mark.parametrize("planted", PLANTED_IN_TICKS)
def test_a_planted_violation_of_ticks_is_found(planted: str) -> None:
    """Each kind by its own words."""
    finding, plant = PLANTED_IN_TICKS[planted]
    found = violations(plant(ticking()))
    assert any(finding in each for each in found), found
