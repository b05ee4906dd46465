"""Amendments: after an erasure the individual's place in an entry reads as untouched, and the entry's hash still holds.

An entry binds the digests of its pieces as they were written. An amendment replaces one piece by another of the same
length, and keeps the digests of both. An act of the journal binds the amendments that one erasure makes in a range of
entries. So the chain of hashes still verifies, and every changed byte is accounted for. The entry's numbers of people
and its charged units stay as they were.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from struct import Struct
from typing import Final

from service.ledger.model.pieces import Piece

_TAG: Final = b"sparing amendments 1\0"
_PLACE: Final = Struct("!qq")  # sequence, number


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """The change of piece `number` of the entry `seq` by one erasure, as the digests of its content before and after.

    `erasure` is the number of the erasure's act in the journal.
    """

    erasure: int
    seq: int
    number: int
    old_digest: bytes
    new_digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """An amendment with the `piece` that is to be stored; `salt` is the entry's."""

    amendment: Amendment
    salt: bytes
    piece: Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPart:
    """The piece of the entry `seq` in which a slot stands if the entry touched that slot."""

    seq: int
    salt: bytes
    piece: Piece

    def without(self, slot: int, *, erasure: int) -> Rewritten | None:
        """The amended piece, in which the slot is untouched; None if the slot is untouched already.

        Raises ValueError for a piece that cannot be read.
        """
        amended = self.piece.without(slot, self.salt)
        if amended is None:
            return None
        old, new = self.piece.digest, amended.digest
        amendment = Amendment(erasure=erasure, seq=self.seq, number=self.piece.number, old_digest=old, new_digest=new)
        return Rewritten(amendment=amendment, salt=self.salt, piece=amended)


def amendments_digest(amendments: Iterable[Amendment]) -> bytes:
    """SHA-256 over the amendments of one erasure in a range of entries, in order of sequence and number."""
    sha = hashlib.sha256(_TAG)
    for each in amendments:
        sha.update(_PLACE.pack(each.seq, each.number) + each.old_digest + each.new_digest)
    return sha.digest()
