"""The ledger: one entry per charged query or burn, chained by SHA-256, with every individual's charge inside.

An entry holds who was charged what and who was left out, in a few plain forms: four bytes for a touched individual or
an eighth of a byte for each slot, whichever is less in sum, a bit for whether it was charged, and eight bytes for its
charge where the query admits different ones. So one individual more or less, charged, left out or charged something
else, changes an entry's size by 13 bytes at most. Replaying the entries from the genesis gives every spent total again;
`hash` binds each entry to all that came before.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final, Literal, Self
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.core.uniform import first, is_uniform, uniform
from service.query.jcs import canonical_json

__all__ = ["GENESIS", "EncodedCharges", "Kind", "LedgerEntry", "PublicEntry", "chain_hash", "genesis"]

Kind = Literal["query", "burn"]

GENESIS: Final = bytes(32)
_LIST, _BITMAP = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedCharges:
    """The charges of one query as they are stored; every part is big-endian, so that SQL can read it too.

    `slots` lists the touched slots (form 0: uint32 each; form 1: a bitmap, most significant bit first). `active` is a
    bitmap over the touched slots; entries of earlier versions have None when all were charged. `charge_units` is the
    one charge of all who were charged, or None with `charges` holding int64 units for each charged slot in order.
    """

    form: int
    slots: bytes
    active: bytes | None
    charge_units: int | None
    charges: bytes | None

    @classmethod
    def of(
        cls,
        *,
        touched: NDArray[np.int64],
        active: NDArray[np.bool_],
        charges: NDArray[np.int64],
        slots: int,
        one_charge: bool,
    ) -> Self:
        """Encode increasing slots `touched` (k,), which of them are `active` (k,), and what these pay, (a,) units.

        So many `slots` have been handed out. Under `one_charge`, a fact of the query, `charges` is a view of one
        number; charges that are equal without it are so by chance, and are written out. Raises ValueError for charges
        under it that are no such view, IndexError for a touched slot beyond `slots`.
        """
        if one_charge and not is_uniform(charges):
            raise ValueError("charges that are one by the query must be a view of one number")
        form, encoded_slots = _encode_slots(touched, slots)
        return cls(
            form=form,
            slots=encoded_slots,
            active=np.packbits(active).tobytes(),
            charge_units=first(charges) if one_charge else None,
            charges=None if one_charge else charges.astype(">i8").tobytes(),
        )

    def touched(self) -> NDArray[np.int64]:
        """The slots that the query touched, increasing."""
        if self.form == _LIST:
            return np.frombuffer(self.slots, dtype=">u4").astype(np.int64)
        return np.flatnonzero(np.unpackbits(np.frombuffer(self.slots, dtype=np.uint8))).astype(np.int64)

    def decode(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """(charged slots, their charges in units, left-out slots), each increasing by slot."""
        touched = self.touched()
        if self.active is None:
            charged, left_out = touched, touched[:0]
        else:
            flags = np.unpackbits(np.frombuffer(self.active, dtype=np.uint8), count=touched.size).astype(np.bool_)
            charged, left_out = touched[flags], touched[~flags]
        if self.charges is None:
            return charged, uniform(self.charge_units or 0, charged.size), left_out
        return charged, np.frombuffer(self.charges, dtype=">i8").astype(np.int64), left_out

    def digest(self) -> str:
        """SHA-256 over all parts, each preceded by its length."""
        sha = hashlib.sha256()
        units = b"" if self.charge_units is None else self.charge_units.to_bytes(8, "big")
        for part in (bytes([self.form]), self.slots, self.active, units, self.charges):
            sha.update(b"-" if part is None else len(part).to_bytes(8, "big") + part)
        return sha.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicEntry:
    """The part of an entry that analysts' requests may read: no value and no size here depends on who was charged.

    `worst_case_total_units` sums the public worst cases up to and with this entry, saturated at CHARGE_UNITS_MAX: it
    says for ever whether coverage was certain here. `values` are int64 grid steps, big-endian; `asked_at` is a whole
    second, in UTC.
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

    def steps(self) -> NDArray[np.int64]:
        """The released integers, in grid steps; shape (dimension,)."""
        return np.frombuffer(self.values, dtype=">i8").astype(np.int64)

    @property
    def grid(self) -> float:
        """The grid in query units: a power of two."""
        return 2.0**self.grid_log2


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry(PublicEntry):
    """One charged query, or a burn: charges without an answer, for answers that a restored database has forgotten.

    The chain binds the charges without a salt, so that its hashes are no more public than these.
    """

    analyst_id: UUID
    analyst: str
    charges: EncodedCharges
    charged_count: int
    left_out_count: int
    charged_units: int
    previous_hash: bytes
    hash: bytes

    def sealed(self) -> Self:
        """This very entry, with its hash: for whoever has just made it, before anybody else sees it."""
        object.__setattr__(self, "hash", chain_hash(self))
        return self

    def public(self) -> PublicEntry:
        """A copy of the public part alone."""
        return PublicEntry(**{each.name: getattr(self, each.name) for each in fields(PublicEntry)})


def genesis(dataset: str, registration: bytes) -> bytes:
    """The head of an empty ledger: it binds the dataset's name and its canonical registration."""
    return hashlib.sha256(b"sparing genesis 1\0" + dataset.encode() + b"\0" + registration).digest()


def chain_hash(entry: LedgerEntry) -> bytes:
    """SHA-256 over the previous hash and the canonical form of all of the entry; `entry.hash` itself is not read."""
    facts: dict[str, str | int | float] = {
        "seq": entry.seq,
        "query_id": str(entry.query_id),
        "analyst_id": str(entry.analyst_id),
        "analyst": entry.analyst,
        "epoch": entry.epoch,
        "query_hash": hashlib.sha256(entry.canonical).hexdigest() + ":" + entry.query_hash,
        "sigma": entry.sigma,
        "grid_log2": entry.grid_log2,
        "dimension": entry.dimension,
        "worst_case_units": str(entry.worst_case_units),
        "worst_case_total_units": str(entry.worst_case_total_units),
        "charges": entry.charges.digest(),
        "charged_count": entry.charged_count,
        "left_out_count": entry.left_out_count,
        "charged_units": str(entry.charged_units),
        "values": hashlib.sha256(entry.values).hexdigest(),
        "asked_at": entry.asked_at.isoformat(),
    }
    if entry.kind != "query":  # ledgers from before there were burns keep their hashes
        facts["kind"] = entry.kind
    return hashlib.sha256(b"sparing ledger 1\0" + entry.previous_hash + canonical_json(facts)).digest()


def replay(entries: Iterable[LedgerEntry], spent: NDArray[np.int64]) -> None:
    """Add every entry's charges to `spent` (units per slot, grown by the caller to hold every slot)."""
    for entry in entries:
        charged, charges, _ = entry.charges.decode()
        spent[charged] += charges


def _encode_slots(touched: NDArray[np.int64], slots: int) -> tuple[int, bytes]:
    """The shorter of a list of uint32 and a bitmap of all slots, whichever of them is the last that is touched."""
    if touched.size > 0 and int(touched[-1]) >= slots:
        raise IndexError("a touched slot has not been handed out")
    if 4 * touched.size <= (slots + 7) // 8:
        return _LIST, touched.astype(">u4").tobytes()
    flags = np.zeros(slots, dtype=np.bool_)
    flags[touched] = True
    return _BITMAP, np.packbits(flags).tobytes()
