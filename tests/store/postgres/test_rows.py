"""Sealed pieces: only the key opens them, and only in their place; large ones go in several statements."""

from typing import Any

import numpy as np
import psycopg
import pytest

from service.ledger.model.pieces import Piece
from service.ledger.ports.store import CommitRejected
from service.query.keys import Key
from service.store.postgres.append import LedgerAppend
from service.store.postgres.rows import LedgerSeal, Unreadable
from service.store.postgres.sessions import Session
from tests.contracts.stores import answer, dataset, open_store, priced_entry
from tests.keys import LEDGER_KEY

SALT = bytes(range(32))
PIECE = Piece.of(SALT, 5, b"norms" * 100)


def test_what_is_sealed_is_opened() -> None:
    """With its number and its digest, and in any revision."""
    seal = LedgerSeal(LEDGER_KEY)
    for revision in (0, 7):
        assert seal.open(SALT, 5, seal.close(SALT, PIECE, revision=revision)) == PIECE


def test_it_is_opened_in_its_place_alone() -> None:
    """Not under another key, for another entry or another stretch, or with a byte changed."""
    seal = LedgerSeal(LEDGER_KEY)
    sealed = seal.close(SALT, PIECE)
    assert PIECE.content not in sealed
    changed = [sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :] for place in (0, 4, len(sealed) - 1)]
    attempts = [(LedgerSeal(bytes(32)), SALT, 5, sealed), (seal, bytes(32), 5, sealed), (seal, SALT, 6, sealed)]
    for opener, salt, number, value in [*attempts, *((seal, SALT, 5, value) for value in changed)]:
        with pytest.raises(Unreadable, match="another pepper"):
            opener.open(salt, number, value)


def test_each_revision_and_number_has_its_own_keystream() -> None:
    """Equal contents give other bytes."""
    seal = LedgerSeal(LEDGER_KEY)
    pieces = [Piece.of(SALT, number, PIECE.content) for number in (-1, 0, 1)]
    sealed = {seal.close(SALT, piece, revision=revision)[4:] for piece in pieces for revision in (0, 1)}
    assert len(sealed) == 6


@pytest.mark.parametrize("proposed", [False, True])
def test_pieces_beyond_one_parameter_follow_in_the_same_transaction(
    database_url: str, monkeypatch: pytest.MonkeyPatch, *, proposed: bool
) -> None:
    """All of them or none; and no norm stands in the database in the clear."""
    pieces = LedgerAppend.pieces
    more: list[object] = []

    def noted(self: Session, *given: Any) -> None:
        more.append(given)
        change(self, *given)

    monkeypatch.setattr(LedgerAppend, "pieces", lambda self, types: pieces(self, types, bytes_max=100_000))
    change = Session.change
    monkeypatch.setattr(Session, "change", noted)
    with open_store("postgres", database_url) as store:
        record = store.add_dataset(dataset())
        people = {slot: 10**12 + slot for slot in range(80_000)}
        with store.transaction(record.id, lock=True) as transaction:
            transaction.add_individuals(np.arange(80_000), [Key(f"p{n}") for n in people], np.full(80_000, 2**60))
            transaction.journal("rows", {}, slots=80_000)
            transaction.commit()
        made = priced_entry(store.head(record.id), people, slots=80_000)
        opened = (
            store.conditional_append(record.id, store.head(record.id), asked=[])
            if proposed
            else store.transaction(record.id, lock=True)
        )
        with opened as appending:
            appending.append([made], [answer(made, "key-1")], {})
            appending.commit()
        with store.transaction(record.id, lock=False) as transaction:
            assert list(transaction.entries(after=0)) == [made]
        stale = priced_entry(transaction.head, people, slots=80_000)
        with store.transaction(record.id, lock=True) as transaction:
            transaction.append([stale], [answer(made, "key-1")], {})  # a key that is taken
            with pytest.raises(CommitRejected):
                transaction.commit()
    assert len(more) == 2  # the first goes with the entry, twice one follow; of the second try none
    with psycopg.connect(database_url) as connection:
        rows = connection.execute("SELECT seq, sealed FROM pieces").fetchall()
    assert [seq for seq, _ in rows] == [1] * 3
    clear = (10**12 + 17).to_bytes(8, "big")
    assert any(clear in piece.content for piece in made.pieces)
    assert not any(clear in bytes(sealed) for _, sealed in rows)
