"""Pieces of a ledger entry: the touched individuals, which of them were active, and the quantity that priced each.

The individuals of an entry of format 2 are divided into stretches of slots, so that one individual's receipt reads one
piece, an erasure rewrites one, and no value grows with the dataset. An entry that says little is one piece over all
slots. A piece holds plain forms only: four bytes for a touched individual or an eighth of a byte for each slot of its
stretch, whichever is less in sum, a bit for whether it took part, and eight bytes for its quantity where the query
admits different ones. Its size grows in steps, up to that of a stretch in which every slot is touched: one individual
more or less changes it rarely, and of a dense query never.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import pairwise
from struct import Struct, error
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import first, kept, uniform
from service.core.charge import charge_units, worst_case_units

__all__ = [
    "CONTENT_BYTES_MAX",
    "STRETCH_SLOTS",
    "WHOLE",
    "Measure",
    "Outcome",
    "Piece",
    "Quantities",
    "joined",
    "number_for",
    "pieces_digest",
    "pieces_of",
]

STRETCH_SLOTS: Final = 2**13
"""A piece has at most 66 KiB: the part of a dense query that a receipt reads."""
WHOLE: Final = -1
"""The number of a piece over all slots."""
WHOLE_BYTES_MAX: Final = 2**13
BYTES_MIN: Final = 2**8
STEPS: Final = 8
"""A size is rounded up to a multiple of this part of the power of two below it, and to BYTES_MIN at least."""
SLOT_BYTES: Final = 4

_LIST, _BITMAP = 0, 1
_HEADER: Final = Struct("!BBII")  # measure, form of the slots, touched slots, bytes of the slots
_NUMBER: Final = Struct("!q")
_PIECE_TAG: Final = b"sparing piece 2\0"
_PIECES_TAG: Final = b"sparing pieces 2\0"

CONTENT_BYTES_MAX: Final = _HEADER.size + 2 * STRETCH_SLOTS // 8 + 8 * STRETCH_SLOTS
"""The longest content of a piece: every slot of its stretch is touched."""

Integers = NDArray[np.int64]
Outcome = Literal["charged", "left_out", "untouched"]
"""The outcome of an entry for one slot."""


class Measure(IntEnum):
    """The kind of amounts in a piece. Numbers from 3 on are for rules that keep a second norm."""

    ONE_NORM = 0
    """One squared norm in grid steps for all: the query gives every individual the same."""
    NORMS = 1
    """A squared norm in grid steps for each."""
    UNITS = 2
    """Units of 2^-40 rho for each, of a burn: nothing was released."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quantities:
    """The slots `touched` (k,), increasing, which of them took part (`active`, (k,)), and `amounts` (k,) of all.

    Under ONE_NORM the amounts are a view of one number.
    """

    measure: Measure
    touched: Integers
    active: NDArray[np.bool_]
    amounts: Integers

    def without(self, slot: int) -> "Quantities | None":
        """Those of all others; None where the slot is not touched."""
        is_other = self.touched != slot
        if bool(is_other.all()):
            return None
        return Quantities(
            measure=self.measure,
            touched=self.touched[is_other],
            active=self.active[is_other],
            amounts=kept(is_other, self.amounts),
        )

    def between(self, start: int, end: int) -> "Quantities":
        """Those at the places from `start` up to `end`."""
        touched, active, amounts = self.touched[start:end], self.active[start:end], self.amounts[start:end]
        return Quantities(measure=self.measure, touched=touched, active=active, amounts=amounts)

    def prices(self, sigma_steps: float) -> Integers:
        """The charge of each touched individual if it is active, (k,) units: public functions of amount and sigma."""
        match self.measure:
            case Measure.UNITS:
                return self.amounts
            case Measure.ONE_NORM:
                return uniform(worst_case_units(first(self.amounts), sigma_steps), self.touched.size)
            case Measure.NORMS:
                return charge_units(self.amounts, sigma_steps)

    def own(self, slot: int, sigma_steps: float) -> tuple[Outcome, int]:
        """(what became of one slot, the units that it was charged)."""
        place = int(np.searchsorted(self.touched, slot))
        if place == self.touched.size or int(self.touched[place]) != slot:
            return "untouched", 0
        if not self.active[place]:
            return "left_out", 0
        return "charged", int(self.between(place, place + 1).prices(sigma_steps)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Stretch `number` of an entry, or WHOLE. `digest` binds the entry's salt, the number and the content.

    Of a piece that was amended, `first_digest` is the digest that it was written with, which its entry binds; of any
    other it is empty.
    """

    number: int
    content: bytes
    digest: bytes
    first_digest: bytes = b""

    @classmethod
    def of(cls, salt: bytes, number: int, content: bytes) -> "Piece":
        """A piece with its digest."""
        digest = hashlib.sha256(_PIECE_TAG + salt + _NUMBER.pack(number) + content).digest()
        return cls(number=number, content=content, digest=digest)

    @property
    def bound_digest(self) -> bytes:
        """The digest that the entry binds."""
        return self.first_digest or self.digest

    def without(self, slot: int, salt: bytes) -> "Piece | None":
        """The amended piece in which a slot is untouched, as long as before; None where it is so in this one.

        Raises ValueError for content that is no piece's.
        """
        others = self.quantities().without(slot)
        if others is None:
            return None
        content = _rewritten(self.content, others, first_slot=max(self.number, 0) * STRETCH_SLOTS)
        return replace(Piece.of(salt, self.number, content), first_digest=self.bound_digest)

    def quantities(self) -> Quantities:
        """The quantities in its content. Raises ValueError for content that is no piece's."""
        try:
            return _decoded(self.content, first_slot=max(self.number, 0) * STRETCH_SLOTS)
        except (error, IndexError) as fault:
            raise ValueError("the content of a piece cannot be read") from fault


def number_for(slot: int) -> int:
    """The number of the stretch that a slot is in."""
    return slot // STRETCH_SLOTS


def pieces_of(quantities: Quantities, *, slots: int, salt: bytes) -> tuple[Piece, ...]:
    """The pieces of an entry, by number, in a dataset that has handed out so many slots. At least one.

    Raises IndexError for a touched slot beyond them.
    """
    touched = quantities.touched
    if touched.size > 0 and int(touched[-1]) >= slots:
        raise IndexError("a touched slot has not been handed out")
    if _size(quantities.touched.size, slots, quantities.measure) <= WHOLE_BYTES_MAX:
        return (Piece.of(salt, WHOLE, _encoded(quantities, first_slot=0, slots=slots)),)
    return tuple(_by_stretch(quantities, slots, salt))


def joined(pieces: Sequence[Piece]) -> Quantities:
    """The quantities of an entry's pieces together. Raises ValueError for none, and for content that is no piece's."""
    parts = [piece.quantities() for piece in pieces]
    if not parts:
        raise ValueError("the pieces of an entry were changed, or sealed under another pepper")
    if len(parts) == 1:
        return parts[0]
    # An amended piece that touches no individual any more has no amount.
    parts = [part for part in parts if part.touched.size > 0] or parts[:1]
    touched = np.concatenate([part.touched for part in parts])
    one = parts[0].measure is Measure.ONE_NORM and touched.size > 0
    return Quantities(
        measure=parts[0].measure,
        touched=touched,
        active=np.concatenate([part.active for part in parts]),
        amounts=uniform(first(parts[0].amounts), touched.size)
        if one
        else np.concatenate([part.amounts for part in parts]),
    )


def pieces_digest(pieces: Iterable[Piece]) -> bytes:
    """SHA-256 over numbers and digests of an entry's pieces as they were written, in order."""
    sha = hashlib.sha256(_PIECES_TAG)
    for piece in pieces:
        sha.update(_NUMBER.pack(piece.number) + piece.bound_digest)
    return sha.digest()


def _by_stretch(quantities: Quantities, slots: int, salt: bytes) -> Iterator[Piece]:
    stretches = np.arange(number_for(slots - 1) + 2)
    bounds = np.searchsorted(quantities.touched, stretches * STRETCH_SLOTS).tolist()
    for number, (start, end) in enumerate(pairwise(bounds)):
        if start < end:
            first_slot = number * STRETCH_SLOTS
            here = min(slots - first_slot, STRETCH_SLOTS)
            content = _encoded(quantities.between(start, end), first_slot=first_slot, slots=here)
            yield Piece.of(salt, number, content)


def _size(count: int, slots: int, measure: Measure) -> int:
    """Of a piece over so many slots that touches `count` of them, before it is padded."""
    amounts = 1 if measure is Measure.ONE_NORM else count
    return _HEADER.size + min(SLOT_BYTES * count, (slots + 7) // 8) + (count + 7) // 8 + 8 * amounts


def _encoded(quantities: Quantities, *, first_slot: int, slots: int) -> bytes:
    """Big-endian, from `first_slot` on: header, slots, flags of activity, amounts, and zeros up to the next size."""
    form = _LIST if SLOT_BYTES * quantities.touched.size <= (slots + 7) // 8 else _BITMAP
    content = _packed(quantities, form, first_slot=first_slot, slots=slots)
    return content.ljust(min(_padded(len(content)), _size(slots, slots, quantities.measure)), b"\0")


def _rewritten(content: bytes, quantities: Quantities, *, first_slot: int) -> bytes:
    """Content of the same form and length for fewer of its slots."""
    _, form, _, listed = _HEADER.unpack_from(content)
    return _packed(quantities, form, first_slot=first_slot, slots=8 * listed).ljust(len(content), b"\0")


def _packed(quantities: Quantities, form: int, *, first_slot: int, slots: int) -> bytes:
    touched, amounts = quantities.touched, quantities.amounts
    if form == _LIST:
        listed = touched.astype(">u4").tobytes()
    else:
        flags = np.zeros(slots, dtype=np.bool_)
        flags[touched - first_slot] = True
        listed = np.packbits(flags).tobytes()
    told = amounts[:1] if quantities.measure is Measure.ONE_NORM else amounts
    if quantities.measure is Measure.ONE_NORM and told.size == 0:
        told = np.zeros(1, dtype=np.int64)
    header = _HEADER.pack(quantities.measure, form, touched.size, len(listed))
    return b"".join([header, listed, np.packbits(quantities.active).tobytes(), told.astype(">i8").tobytes()])


def _padded(size: int) -> int:
    step = max((1 << ((size - 1).bit_length() - 1)) // STEPS, 1)
    return max(-(-size // step) * step, BYTES_MIN)


def _decoded(content: bytes, *, first_slot: int) -> Quantities:
    kind, form, count, listed = _HEADER.unpack_from(content)
    measure, start = Measure(kind), _HEADER.size
    slots = content[start : start + listed]
    if form == _LIST:
        touched = np.frombuffer(slots, dtype=">u4").astype(np.int64)
    else:
        touched = np.flatnonzero(np.unpackbits(np.frombuffer(slots, dtype=np.uint8))).astype(np.int64) + first_slot
    end = start + listed + (count + 7) // 8
    packed = np.frombuffer(content, dtype=np.uint8, offset=start + listed, count=end - start - listed)
    numbers = np.frombuffer(content, dtype=">i8", offset=end, count=1 if measure is Measure.ONE_NORM else count)
    if touched.size != count:
        raise ValueError("the parts of a piece do not go together")
    return Quantities(
        measure=measure,
        touched=touched,
        active=np.unpackbits(packed, count=count).astype(np.bool_),
        amounts=uniform(int(numbers[0]), count) if measure is Measure.ONE_NORM else numbers.astype(np.int64),
    )
