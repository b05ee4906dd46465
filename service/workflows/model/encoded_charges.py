"""The charges of a ledger entry of format 1: prices, in the clear, of the active individuals.

No entry of this form is made any more. It is read, replayed and verified as long as a ledger has one.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import first, is_uniform, uniform

__all__ = ["EncodedCharges"]

_LIST, _BITMAP = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedCharges:
    """The charges of one query as they are stored; every part is big-endian, so that SQL can read it too.

    `slots` lists the touched slots (form 0: uint32 each; form 1: a bitmap, most significant bit first). `active` is a
    bitmap over the touched slots; entries of earlier versions have None when all were charged. `charge_units` is the
    one charge of all charged individuals, or None with `charges` holding int64 units for each charged slot in order.
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

    def without(self, slot: int) -> "EncodedCharges | None":
        """The charges of all others, in the same form; None where the slot is not touched."""
        touched = self.touched()
        charged, charges, _ = self.decode()
        is_other = touched != slot
        if bool(is_other.all()):
            return None
        active = np.isin(touched, charged)
        if self.form == _LIST:
            slots = touched[is_other].astype(">u4").tobytes()
        else:
            flags = np.zeros(8 * len(self.slots), dtype=np.bool_)
            flags[touched[is_other]] = True
            slots = np.packbits(flags).tobytes()
        others = charges[charged != slot].astype(">i8").tobytes()
        return replace(
            self,
            slots=slots,
            active=None if self.active is None else np.packbits(active[is_other]).tobytes(),
            charges=None if self.charges is None else others,
        )

    def digest(self) -> str:
        """SHA-256 over all parts, each preceded by its length."""
        sha = hashlib.sha256()
        units = b"" if self.charge_units is None else self.charge_units.to_bytes(8, "big")
        for part in (bytes([self.form]), self.slots, self.active, units, self.charges):
            sha.update(b"-" if part is None else len(part).to_bytes(8, "big") + part)
        return sha.hexdigest()


def _encode_slots(touched: NDArray[np.int64], slots: int) -> tuple[int, bytes]:
    """The shorter of a list of uint32 and a bitmap of all slots, whichever of them is the last that is touched."""
    if touched.size > 0 and int(touched[-1]) >= slots:
        raise IndexError("a touched slot has not been handed out")
    if 4 * touched.size <= (slots + 7) // 8:
        return _LIST, touched.astype(">u4").tobytes()
    flags = np.zeros(slots, dtype=np.bool_)
    flags[touched] = True
    return _BITMAP, np.packbits(flags).tobytes()
