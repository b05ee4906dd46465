"""Worlds in which everybody, one person or nobody has too little left, under the clip rule: what others receive.

Whose vectors are shortened, and to what, depends on all records and answers before. All that analysts and auditors
receive has the same statuses, headers, texts and lengths in all of these worlds but for the values, and what is stored
of each query has the same size.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from service.core.release import Participants
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.pieces import Measure, Piece, pieces_of
from service.ledger.ports.telemetry import NULL_TELEMETRY
from tests.factories import SeededEntropy, open_replica
from tests.leaks.worlds import (
    KINDS,
    PURE_SESSION,
    SESSION,
    N,
    World,
    furnish,
    lower_to,
    lower_to_the_least,
    public_parts,
    session,
)
from tests.memory.store import MemoryStore
from tests.rotation import one_of

ONE = f"p{N - 1}"
NOTHING, LITTLE, ENOUGH = "0", "0.001", "0.089"
"""Limits in rho: the last one is a little less than the budget, so that it is an act too."""
LIMITS = {
    "everybody": (ENOUGH, ENOUGH),
    "nobody": (NOTHING, NOTHING),
    "all but one": (ENOUGH, NOTHING),
    "one alone": (NOTHING, ENOUGH),
    "all a little": (LITTLE, LITTLE),
    "one a little": (ENOUGH, LITTLE),
}
"""By who has anything left: the limit of all others, and of the one person."""


def lived(kind: str, *, is_pure: bool = False) -> World:
    """Everybody states a limit, then an analyst asks under the clip rule, and an auditor reads.

    A pure dataset has Laplace noise alone, and so the skip rule.
    """
    others, own = LIMITS[kind]
    store = MemoryStore()
    with open_replica(store, SeededEntropy(9)) as replica:
        furnish(replica, ONE, KINDS["present"], is_pure=is_pure)
        for number in range(N):
            key = f"p{number}"
            limit = own if key == ONE else others
            (lower_to_the_least if limit == NOTHING else lower_to(limit))(replica, key)
        rule, asked = ("skip", PURE_SESSION) if is_pure else ("clip", SESSION)
        exchanges = asyncio.run(session(replica, NULL_TELEMETRY, roles=("analyst", "auditor"), rule=rule, asked=asked))
        with store.transaction(1, lock=False) as transaction:
            entries = list(transaction.entries(after=0))
    return World(exchanges, entries, accounts={})


@cache
def life(kind: str) -> World:
    """A world without a planted leak, which several tests look at."""
    return lived(kind)


def sizes(entries: Sequence[LedgerEntry]) -> list[list[int]]:
    """The lengths of the pieces of each entry whose query touches those that the records say, whatever they have left.

    Those for `active` and `exhausted` touch by what is left.
    """
    asked = [entry for entry in entries if b'"active"' not in entry.canonical and not entry.tick]
    return [[len(piece.content) for piece in entry.pieces] for entry in asked]


def shortened(entry: LedgerEntry) -> int:
    """The number of individuals of whom an entry counts a part."""
    quantities = entry.quantities()
    if quantities.norms_before is None:
        return 0
    return int(np.count_nonzero((quantities.amounts < quantities.norms_before) & quantities.active))


@pytest.mark.parametrize("kind", [kind for kind in LIMITS if kind != "everybody"])
def test_nothing_but_the_values_tells_who_has_anything_left(kind: str) -> None:
    """Every exchange, and the size of every entry."""
    ours, theirs = life(kind), life("everybody")
    assert public_parts(ours.exchanges) == public_parts(theirs.exchanges)
    assert [status for status, _, _ in ours.exchanges].count(200) > 40
    assert sizes(ours.entries) == sizes(theirs.entries)


@pytest.mark.parametrize("kind", one_of(["nobody", "all but one", "one alone"]))
def test_nothing_but_the_values_tells_it_under_pure(kind: str) -> None:
    """Laplace noise, which counts whole individuals, is no exception."""
    ours, theirs = lived(kind, is_pure=True), lived("everybody", is_pure=True)
    assert public_parts(ours.exchanges) == public_parts(theirs.exchanges)
    assert sizes(ours.entries) == sizes(theirs.entries)
    counted = {"nobody": 0, "all but one": N - 1, "one alone": 1}
    assert [each.entries[0].charged_count for each in (ours, theirs)] == [counted[kind], N]


def test_the_worlds_are_different() -> None:
    """No individual is counted, or a part of each, or all of them."""
    first = {kind: life(kind).entries[0] for kind in LIMITS}
    assert {kind: (entry.charged_count, shortened(entry)) for kind, entry in first.items()} == {
        "everybody": (N, 0),
        "nobody": (0, 0),
        "all but one": (N - 1, 0),
        "one alone": (1, 0),
        "all a little": (N, N),
        "one a little": (N, 1),
    }


def test_an_entry_that_is_smaller_where_nobody_is_shortened_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted leak: one norm suffices where whole vectors are counted."""

    def leaky(blocks: Sequence[Participants], measure: Measure, **more: Any) -> tuple[Piece, ...]:
        if any(
            block.norms_before is None or not np.array_equal(block.norms_before, block.norms_squared)
            for block in blocks
        ):
            return pieces_of(blocks, measure, **more)
        return pieces_of([replace(block, norms_before=None) for block in blocks], Measure.NORMS, **more)

    monkeypatch.setattr("service.writer.shards.shard.pieces_of", leaky)
    assert sizes(lived("all a little").entries) != sizes(lived("everybody").entries)
