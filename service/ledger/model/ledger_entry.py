"""The ledger: one entry per charged query or burn, chained by SHA-256, with the price of every individual inside.

An entry (format 2, docs/decisions/0027) has a public part, which an auditor is shown, and a private part, of which an
auditor is shown a salted digest. Its `hash` binds both parts and the hash of the entry before. With the public parts
and the private digests an auditor can check the chain, but learns nothing of how many people a query concerned.
Replaying the entries from the genesis gives every spent total again.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from math import ldexp
from typing import Any, Final, Literal, Self
from uuid import UUID

import numpy as np

from service.accounting.laws import law_of, tick_of
from service.arrays import Integers
from service.core.laws import Law
from service.core.release import Participants
from service.ledger.model.pieces import Piece, Quantities, joined, pieces_digest, prices_of
from service.ledger.model.priced import Priced
from service.query.canonical import canonical_json
from service.query.stated_noise import unpacked

Kind = Literal["query", "burn"]

FORMAT: Final = 2
"""The number of the format in the bytes of every entry; 1 is never given again."""
SALT_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicEntry:
    """The part of an entry that analysts' requests may read: no value and no size here depends on charges.

    `worst_case_total_units` sums the public worst cases up to and with this entry, at most CHARGE_UNITS_MAX. It settles
    for ever whether coverage was certified at this entry. `values` are int64 grid steps, big-endian, and
    `values_digest` is their SHA-256, so that a listing need not read them. `asked_at` is a whole second, in UTC.
    `mechanism` names what drew the noise, and so the quantity that is priced (gaussian: the squared norm in grid
    steps).

    Where the select items have grids of different steps, `sigmas` has the sigma of each item in query units, as
    big-endian doubles. `sigma` then counts steps, the same number for every item, and the grid is 1.
    """

    seq: int
    query_id: UUID
    epoch: int
    canonical: bytes
    query_hash: str
    sigma: float
    grid_log2: int
    dimension: int
    worst_case_units: int
    worst_case_total_units: int
    values: bytes
    asked_at: datetime
    kind: Kind = "query"
    format: int = FORMAT
    mechanism: str = "gaussian"
    values_digest: bytes = b""
    sigmas: bytes = b""

    def steps(self) -> Integers:
        """The released integers, in grid steps; shape (dimension,)."""
        return np.frombuffer(self.values, dtype=">i8").astype(np.int64)

    @property
    def item_sigmas(self) -> tuple[float, ...]:
        """The sigma of each select item in query units; empty where all items share one grid."""
        return unpacked(self.sigmas) if self.sigmas else ()

    @property
    def grid(self) -> float:
        """The grid in query units, a power of two; 1 where each item has steps of its own."""
        return 2.0**self.grid_log2

    @property
    def tick(self) -> int:
        """The number of the monitor's tick, from 1, if this entry is a tick; else 0."""
        return tick_of(self.mechanism)

    @property
    def is_counted(self) -> bool:
        """True for an entry that the counters count: neither a burn nor a tick, which is paid from the reserve."""
        return self.kind == "query" and not self.tick

    @property
    def law(self) -> Law:
        """The exact law of the entry's noise, in grid steps."""
        return law_of(self.mechanism, ldexp(self.sigma, -self.grid_log2))

    @property
    def size(self) -> float:
        """The size of the entry's noise in query units; in steps, where each item has steps of its own."""
        return self.sigma


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRecord(PublicEntry):
    """An entry as curators and auditors list it, with numbers of people but without charges and values."""

    values: bytes = b""
    analyst_id: UUID
    analyst: str
    charged_count: int
    left_out_count: int
    previous_hash: bytes
    hash: bytes
    private_digest: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry(EntryRecord):
    """One charged query, or a burn: charges without an answer, for answers that a restored database has forgotten.

    The private part binds the `pieces`, the `salt` of their digests, and the following. `answer_digest` identifies the
    principal and the key of the first answer. `acts` and `acts_hash` are the head of the journal. `settled`, of a burn
    alone, is the position that the burn settles, as JSON. `pieces_digest` and `private_digest` are stored too, although
    they could be worked out.

    After an erasure, amended pieces say less than before, but keep the digests with which they were first written. An
    entry that `is_pruned` has no pieces.
    """

    values: bytes
    charged_units: int
    salt: bytes = b""
    pieces: tuple[Piece, ...] = ()
    pieces_digest: bytes = b""
    answer_digest: bytes = b""
    acts: int = 0
    acts_hash: bytes = b""
    settled: bytes = b""
    is_pruned: bool = False

    def sealed(self) -> Self:
        """Set the digests and the hash of this entry, and return the entry. The maker of an entry calls this."""
        object.__setattr__(self, "values_digest", hashlib.sha256(self.values).digest())
        object.__setattr__(self, "pieces_digest", pieces_digest(self.pieces))
        object.__setattr__(self, "private_digest", private_digest(self))
        object.__setattr__(self, "hash", _hash(self, self.private_digest))
        return self

    @property
    def is_itself(self) -> bool:
        """Tell whether hash and digests are those of the contents. Pieces are not checked where the entry is pruned."""
        if not self.is_pruned and pieces_digest(self.pieces) != self.pieces_digest:
            return False
        if hashlib.sha256(self.values).digest() != self.values_digest:
            return False
        return chain_hash(self) == self.hash

    def pruned(self) -> Self:
        """A copy of the entry without its pieces; their digest stays."""
        return replace(self, pieces=(), is_pruned=True)

    @property
    def is_rewritten(self) -> bool:
        """Tell whether the entry was pruned or amended, so that its pieces no longer show all that it charged."""
        return self.is_pruned or any(piece.first_digest for piece in self.pieces)

    def quantities(self) -> Quantities:
        """The quantities of all pieces. Raises ValueError for pieces that cannot be read."""
        return joined(self.pieces)

    def priced(self, law: Law | None = None) -> Priced:
        """The charges of the entry, by `law` if one is given. Raises ValueError for pieces that cannot be read."""
        return Priced.of(self.quantities(), law or self.law)

    def decode(self) -> tuple[Integers, Integers, Integers]:
        """(charged slots, their charges in units, left-out slots); slots increase. Raises as `priced` does."""
        priced = self.priced()
        return priced.charged, priced.charges, priced.left_out

    def blocks(self) -> Iterator[tuple[Participants, Integers]]:
        """The blocks of the pieces, with charges by place (p,), in units, for active places.

        Raises as `priced` does.
        """
        for piece in self.pieces:
            measure, block = piece.block()
            amounts = block.norms_squared.astype(np.int64, copy=False)
            yield block, prices_of(measure, amounts, self.law)


def genesis(dataset: str, registration: bytes) -> bytes:
    """The head of an empty ledger: it binds the dataset's name and its canonical registration."""
    return hashlib.sha256(b"sparing genesis 1\0" + dataset.encode() + b"\0" + registration).digest()


def answer_digest(salt: bytes, principal_id: UUID, key: str) -> bytes:
    """The digest that identifies the first answer of an entry, even after that answer is deleted."""
    return hashlib.sha256(b"sparing answer 2\0" + salt + principal_id.bytes + key.encode()).digest()


def public_facts(entry: EntryRecord) -> dict[str, Any]:
    """The public part of an entry, under the names that an auditor is shown.

    `sigmas` is there only where each item has its own.
    """
    return {
        "format": entry.format,
        "kind": entry.kind,
        "sequence": entry.seq,
        "query_id": str(entry.query_id),
        "epoch": entry.epoch,
        "mechanism": entry.mechanism,
        "query_sha256": hashlib.sha256(entry.canonical).hexdigest(),
        "query_hash": entry.query_hash,
        "sigma": entry.sigma,
        "grid_log2": entry.grid_log2,
        "dimension": entry.dimension,
        "worst_case_units": str(entry.worst_case_units),
        "worst_case_total_units": str(entry.worst_case_total_units),
        "values_sha256": entry.values_digest.hex(),
        "analyst_id": str(entry.analyst_id),
        "analyst": entry.analyst,
        "asked_at": entry.asked_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    } | ({"sigmas": entry.item_sigmas} if entry.sigmas else {})


def private_digest(entry: LedgerEntry) -> bytes:
    """SHA-256 over the salt and the private part: numbers of people and acts, and the digests of pieces and answer.

    The salt has 256 random bits, so that the digest reveals none of these.
    """
    facts = {
        "pieces": entry.pieces_digest.hex(),
        "charged": entry.charged_count,
        "left_out": entry.left_out_count,
        "charged_units": str(entry.charged_units),
        "answer": entry.answer_digest.hex(),
        "acts": entry.acts,
        "acts_hash": entry.acts_hash.hex(),
        "settled": entry.settled.decode(),
    }
    return hashlib.sha256(b"sparing private 2\0" + entry.salt + canonical_json(facts)).digest()


def chain_hash(entry: LedgerEntry) -> bytes:
    """The value that `entry.hash` must have. Pieces and values enter by their stored digests."""
    return _hash(entry, private_digest(entry))


def _hash(entry: LedgerEntry, private: bytes) -> bytes:
    """The hash over the previous entry's hash, the public part and the digest of the private part."""
    public = hashlib.sha256(canonical_json(public_facts(entry))).digest()
    return hashlib.sha256(b"sparing ledger 2\0" + entry.previous_hash + public + private).digest()
