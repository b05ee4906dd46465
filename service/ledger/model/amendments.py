"""Amendments: after an erasure the individual's place in an entry reads as untouched, and the entry's hash still holds.

An entry binds the digests of its pieces as they were written. An amendment puts a piece of the same length in the place
of another, and keeps the digests of both; an act of the journal binds those of one erasure in a range of entries. The
chain of hashes verifies as before, and every byte that is not what was written is accounted for. Numbers of people and
charged units of an entry stay as they were.
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
    """A replacement of content of `old_digest` by that of `new_digest`, for act `erasure` of the journal.

    `number` is the piece's in the entry `seq`.
    """

    erasure: int
    seq: int
    number: int
    old_digest: bytes
    new_digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """An amendment with what is to be stored: a piece of an entry with this `salt`."""

    amendment: Amendment
    salt: bytes
    piece: Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPart:
    """The piece of the entry `seq` that would hold a slot, if the entry touched it."""

    seq: int
    salt: bytes
    piece: Piece

    def without(self, slot: int, *, erasure: int) -> Rewritten | None:
        """The part with the slot untouched; None where it is so already.

        Raises ValueError for a part that cannot be read.
        """
        amended = self.piece.without(slot, self.salt)
        if amended is None:
            return None
        old, new = self.piece.digest, amended.digest
        amendment = Amendment(erasure=erasure, seq=self.seq, number=self.piece.number, old_digest=old, new_digest=new)
        return Rewritten(amendment=amendment, salt=self.salt, piece=amended)


def amendments_digest(amendments: Iterable[Amendment]) -> bytes:
    """SHA-256 over the amendments of one erasure in a stretch of entries, in order of sequence and number."""
    sha = hashlib.sha256(_TAG)
    for each in amendments:
        sha.update(_PLACE.pack(each.seq, each.number) + each.old_digest + each.new_digest)
    return sha.digest()
