"""Pieces of a ledger entry: the touched individuals, which of them were active, and the quantity that priced each.

The individuals of an entry are divided into stretches of slots, one piece for each stretch. So one individual's receipt
reads one piece, an erasure rewrites one, and no piece grows with the dataset. A short entry is one piece over all
slots.

A piece marks its slots in the shorter of two forms: four bytes and a bit for each touched individual, or two bits for
each slot of the stretch. Where the query admits different quantities, the piece also has each individual's quantity, in
as many bytes as the largest possible one needs. The size of a piece is rounded up, to at most the size that it has with
every slot touched. So one individual more or less rarely changes the size, and never that of a dense query. The bytes
do not depend on the form or the size of the blocks in which individuals were evaluated.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import groupby
from struct import Struct, error
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.arrays import Integers, Mask, compress, first, kept, narrowest, uniform
from service.core.laws import Law
from service.core.release import Participants
from service.core.renyi_filter import Touched

STRETCH_SLOTS: Final = 2**15
"""The slots of a stretch. In a dense query a piece, which a receipt reads, has 8 KiB of flags and the amounts."""
WHOLE: Final = -1
"""The number of a piece over all slots."""
WHOLE_BYTES_MAX: Final = 2**13
BYTES_MIN: Final = 2**8
STEPS: Final = 8
"""A size is rounded up to a multiple of 1/STEPS of the power of two below it, and to at least BYTES_MIN."""
SLOT_BYTES: Final = 4

_LIST, _BITMAP = 0, 1
_HEADER: Final = Struct("!BBBII")  # measure, form of the slots, bytes of an amount, touched slots, bytes of the slots
_WIDEST: Final = 8
_NUMBER: Final = Struct("!q")
_PIECE_TAG: Final = b"sparing piece 2\0"
_PIECES_TAG: Final = b"sparing pieces 2\0"

CONTENT_BYTES_MAX: Final = _HEADER.size + 2 * STRETCH_SLOTS // 8 + _WIDEST * STRETCH_SLOTS
"""The longest content of a piece, in which every slot of the stretch is touched."""
TWO_NORMS_BYTES_MAX: Final = CONTENT_BYTES_MAX + _WIDEST * STRETCH_SLOTS
"""The longest content under the clip rule."""

Outcome = Literal["charged", "shortened", "counted", "left_out", "untouched"]
"""The outcome of an entry for one slot.

A `shortened` individual is charged too, but for less than its whole vector. A `counted` one took part in a tick, which
the monitor's reserve has paid.
"""


class OwnOutcome(NamedTuple):
    """The outcome of an entry for one slot, the units charged to it, and the units that its whole vector costs."""

    outcome: Outcome
    units: int
    asked_units: int


class Measure(IntEnum):
    """The kind of amounts in a piece."""

    ONE_NORM = 0
    """One squared norm in grid steps, which every individual has in this query."""
    NORMS = 1
    """A squared norm in grid steps for each individual."""
    UNITS = 2
    """Units of 2^-40 rho for each individual, in a burn, which releases nothing."""
    TWO_NORMS = 3
    """Under the clip rule, two squared norms for each: of the whole vector, and of the counted one (0 if left out)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quantities:
    """The slots `touched` (k,), increasing; whether each was `active` (k,); and its amount in `amounts` (k,).

    Under ONE_NORM `amounts` is a view of one number. Under TWO_NORMS `amounts` are of the counted vectors and
    `norms_before` (k,) of the whole vectors. Under any other measure `norms_before` is None.
    """

    measure: Measure
    touched: Integers
    active: Mask
    amounts: Integers
    norms_before: Integers | None = None

    def blocks(self) -> tuple[Participants, ...]:
        """The quantities as one block, for `pieces_of`."""
        block = Participants(
            touched=Touched(self.touched),
            active=self.active,
            norms_squared=self.amounts,
            count=self.touched.size,
            norms_before=self.norms_before,
        )
        return (block,)

    def without(self, slot: int) -> "Quantities | None":
        """The quantities of all slots but this one; None if this slot is not touched."""
        is_other = self.touched != slot
        if bool(is_other.all()):
            return None
        return replace(
            self,
            touched=self.touched[is_other],
            active=self.active[is_other],
            amounts=kept(is_other, self.amounts),
            norms_before=None if self.norms_before is None else self.norms_before[is_other],
        )

    @property
    def whole(self) -> Integers:
        """The amounts of the whole vectors, (k,)."""
        return self.amounts if self.norms_before is None else self.norms_before

    def prices(self, law: Law) -> Integers:
        """The charge of each touched individual if it is active, (k,) units."""
        return prices_of(self.measure, self.amounts, law)

    def asked_prices(self, law: Law) -> Integers:
        """The charge that each touched individual's whole vector would have, (k,) units."""
        return prices_of(self.measure, self.whole, law)

    def own(self, slot: int, law: Law) -> OwnOutcome:
        """The outcome for one slot."""
        place = int(np.searchsorted(self.touched, slot))
        if place == self.touched.size or int(self.touched[place]) != slot:
            return OwnOutcome("untouched", 0, 0)
        amount, whole = self.amounts[place : place + 1], self.whole[place : place + 1]
        units, asked_units = (int(prices_of(self.measure, each, law)[0]) for each in (amount, whole))
        if not self.active[place]:
            return OwnOutcome("left_out", 0, asked_units)
        if law.is_free:
            return OwnOutcome("counted", 0, 0)
        return OwnOutcome("charged" if amount[0] == whole[0] else "shortened", units, asked_units)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The piece for the stretch `number` of an entry, or for all slots if `number` is WHOLE.

    `digest` binds the entry's salt, the number and the content. An amended piece has in `first_digest` the digest with
    which it was written, which its entry binds. In other pieces `first_digest` is empty.
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
        """The digest of this piece that the entry binds."""
        return self.first_digest or self.digest

    def without(self, slot: int, salt: bytes) -> "Piece | None":
        """The amended piece of the same length, in which the slot is untouched; None if the slot is untouched already.

        Raises ValueError for content that cannot be read.
        """
        others = self.quantities().without(slot)
        if others is None:
            return None
        content = _rewritten(self.content, others, first_slot=max(self.number, 0) * STRETCH_SLOTS)
        return replace(Piece.of(salt, self.number, content), first_digest=self.bound_digest)

    def quantities(self) -> Quantities:
        """The quantities in the content. Raises ValueError for content that cannot be read."""
        measure, block = self.block()
        marks = np.ones(block.touched.size, dtype=np.bool_) if block.touched.marks is None else block.touched.marks
        touched, active = block.touched.slots(), compress(block.active, marks)
        amounts = kept(marks, block.norms_squared.astype(np.int64, copy=False))
        norms_before = (
            None if block.norms_before is None else compress(block.norms_before.astype(np.int64, copy=False), marks)
        )
        return Quantities(measure=measure, touched=touched, active=active, amounts=amounts, norms_before=norms_before)

    def block(self) -> tuple[Measure, Participants]:
        """The measure and the block in the content. Raises ValueError for content that cannot be read."""
        try:
            return _decoded(self.content, first_slot=max(self.number, 0) * STRETCH_SLOTS)
        except (error, IndexError, TypeError) as fault:
            raise ValueError("the content of a piece cannot be read") from fault


def prices_of(measure: Measure, amounts: Integers, law: Law) -> Integers:
    """The charge (k,), in units, for each amount (k,).

    It depends on amount and law alone, and the function is public.
    """
    match measure:
        case Measure.UNITS:
            return amounts
        case Measure.ONE_NORM:
            return uniform(law.charge(first(amounts)), amounts.size)
        case Measure.NORMS | Measure.TWO_NORMS:
            return law.charges(amounts)


def number_for(slot: int) -> int:
    """The number of the stretch that has the slot."""
    return slot // STRETCH_SLOTS


def pieces_of(
    blocks: Sequence[Participants], measure: Measure, *, amount_max: int, slots: int, salt: bytes
) -> tuple[Piece, ...]:
    """The pieces of an entry, at least one, by number, in a dataset that has handed out `slots` slots.

    The blocks come in the order of their slots, and no amount is above `amount_max`. Raises IndexError where a touched
    slot has not been handed out.
    """
    count, width = sum(block.count for block in blocks), narrowest(amount_max).itemsize
    if _size(count, slots, measure, width) > WHOLE_BYTES_MAX:
        return stretches_of(blocks, measure, amount_max=amount_max, slots=slots, salt=salt)
    here = blocks if all(block.touched.end <= slots for block in blocks) else _handed_out(blocks, slots)
    return (Piece.of(salt, WHOLE, _encoded(here, measure, width, first_slot=0, slots=slots)),)


def may_be_whole(count: int, measure: Measure, *, amount_max: int, slots: int) -> bool:
    """Tell whether an entry that touches `count` individuals or more may be one piece over all slots."""
    return _size(count, slots, measure, narrowest(amount_max).itemsize) <= WHOLE_BYTES_MAX


def stretches_of(
    blocks: Sequence[Participants], measure: Measure, *, amount_max: int, slots: int, salt: bytes
) -> tuple[Piece, ...]:
    """The pieces of an entry by stretches; blocks of some stretches give the pieces of these.

    Raises as `pieces_of` does.
    """
    pieces, width = [], narrowest(amount_max).itemsize
    for number, parts in groupby(_cut(_handed_out(blocks, slots)), key=lambda part: number_for(part.touched.begin)):
        first_slot = number * STRETCH_SLOTS
        left = min(slots - first_slot, STRETCH_SLOTS)
        content = _encoded(list(parts), measure, width, first_slot=first_slot, slots=left)
        pieces.append(Piece.of(salt, number, content))
    return tuple(pieces)


def _handed_out(blocks: Sequence[Participants], slots: int) -> list[Participants]:
    """The blocks without the places of slots not handed out. Raises IndexError where such a slot is touched."""
    here = [block if block.touched.end <= slots else within(block, 0, slots) for block in blocks]
    if sum(block.count for block in here) < sum(block.count for block in blocks):
        raise IndexError("a touched slot has not been handed out")
    return here


def within(block: Participants, begin: int, end: int) -> Participants:
    """The part of a block with the slots from `begin` to before `end`."""
    touched = block.touched
    if begin <= touched.begin and touched.end <= end:
        return block
    if isinstance(touched.index, slice):
        first_slot, last_slot = max(begin, touched.begin), max(min(end, touched.end), touched.begin)
        places = slice(first_slot - touched.begin, max(last_slot - touched.begin, first_slot - touched.begin))
        index: Integers | slice = slice(touched.begin + places.start, touched.begin + places.stop)
    else:
        places = slice(*touched.index.searchsorted((begin, end)).tolist())
        index = touched.index[places]
    part = Touched(index, None if touched.marks is None else touched.marks[places])
    return Participants(
        touched=part,
        active=block.active[places],
        norms_squared=block.norms_squared[places],
        count=part.count,
        norms_before=None if block.norms_before is None else block.norms_before[places],
    )


def _cut(blocks: Iterable[Participants]) -> Iterator[Participants]:
    """The blocks, cut where stretches end; parts without touched slots are left out."""
    for block in blocks:
        for number in range(number_for(block.touched.begin), number_for(max(block.touched.end - 1, 0)) + 1):
            part = within(block, number * STRETCH_SLOTS, (number + 1) * STRETCH_SLOTS)
            if part.count > 0:
                yield part


def joined(pieces: Sequence[Piece]) -> Quantities:
    """The quantities of all pieces of an entry.

    Raises ValueError without pieces, and for content that cannot be read.
    """
    parts = [piece.quantities() for piece in pieces]
    if not parts:
        raise ValueError("the pieces of an entry were changed, or sealed under another pepper")
    if len(parts) == 1:
        return parts[0]
    # An amended piece that touches no individual any more has no amount.
    parts = [part for part in parts if part.touched.size > 0] or parts[:1]
    touched = np.concatenate([part.touched for part in parts])
    one = parts[0].measure is Measure.ONE_NORM and touched.size > 0
    norms_before = [part.norms_before for part in parts if part.norms_before is not None]
    return Quantities(
        measure=parts[0].measure,
        touched=touched,
        active=np.concatenate([part.active for part in parts]),
        amounts=uniform(first(parts[0].amounts), touched.size)
        if one
        else np.concatenate([part.amounts for part in parts]),
        norms_before=np.concatenate(norms_before) if norms_before else None,
    )


def pieces_digest(pieces: Iterable[Piece]) -> bytes:
    """SHA-256 over the numbers of an entry's pieces and their digests as first written, in order."""
    sha = hashlib.sha256(_PIECES_TAG)
    for piece in pieces:
        sha.update(_NUMBER.pack(piece.number) + piece.bound_digest)
    return sha.digest()


def _size(count: int, slots: int, measure: Measure, width: int) -> int:
    """The bytes of a piece over `slots` slots of which `count` are touched, before padding."""
    amounts = _WIDEST if measure is Measure.ONE_NORM else width * count * _numbers(measure)
    return _HEADER.size + min(SLOT_BYTES * count + -(-count // 8), 2 * -(-slots // 8)) + amounts


def _numbers(measure: Measure) -> int:
    """How many numbers each touched individual has, unless all share one."""
    return 2 if measure is Measure.TWO_NORMS else 1


def _encoded(parts: Sequence[Participants], measure: Measure, width: int, *, first_slot: int, slots: int) -> bytes:
    """The content, big-endian, for `slots` slots from `first_slot` on, padded with zeros to the next size.

    It has the header, the slots, the flags of activity and the amounts.
    """
    count = sum(part.count for part in parts)
    form = _LIST if SLOT_BYTES * count + -(-count // 8) <= 2 * -(-slots // 8) else _BITMAP
    content = _packed(parts, measure, width, form, first_slot=first_slot, slots=slots)
    step = max((1 << ((len(content) - 1).bit_length() - 1)) // STEPS, 1)
    padded = max(-(-len(content) // step) * step, BYTES_MIN)
    return content.ljust(min(padded, _size(slots, slots, measure, width)), b"\0")


def _rewritten(content: bytes, quantities: Quantities, *, first_slot: int) -> bytes:
    """The content for fewer touched slots, of the same form and length."""
    measure, form, width, _, listed = _HEADER.unpack_from(content)
    packed = _packed(quantities.blocks(), Measure(measure), width, form, first_slot=first_slot, slots=8 * listed)
    return packed.ljust(len(content), b"\0")


def _packed(
    parts: Sequence[Participants], measure: Measure, width: int, form: int, *, first_slot: int, slots: int
) -> bytes:
    count = sum(part.count for part in parts)
    touched, active = (_listed if form == _LIST else _flagged)(parts, first_slot, slots)
    if measure is Measure.ONE_NORM:
        norms = [int(part.norms_squared[0]) for part in parts if part.count > 0]
        norm = norms[0] if norms else 0
        amounts, width = norm.to_bytes(_WIDEST, "big"), _WIDEST
    else:
        columns = [_amounts(part, part.norms_before) for part in parts if part.norms_before is not None]
        columns += [_amounts(part, part.norms_squared) for part in parts]
        amounts = b"".join(column.astype(f">u{width}").tobytes() for column in columns)
    header = _HEADER.pack(measure, form, width, count, len(touched))
    return b"".join([header, touched, active, amounts])


def _listed(parts: Sequence[Participants], _first_slot: int, _slots: int) -> tuple[bytes, bytes]:
    """The touched slots, and a flag of activity for each of them."""
    slots = b"".join(part.touched.slots().astype(">u4").tobytes() for part in parts)
    flags = [np.empty(0, dtype=np.bool_)]
    flags += [
        part.active if part.touched.marks is None else compress(part.active, part.touched.marks) for part in parts
    ]
    return slots, np.packbits(np.concatenate(flags)).tobytes()


def _flagged(parts: Sequence[Participants], first_slot: int, slots: int) -> tuple[bytes, bytes]:
    """Two bitmaps of the slots from `first_slot` on: which are touched, and which are active."""
    whole = slice(first_slot, first_slot + slots)
    if len(parts) == 1 and isinstance(parts[0].touched.index, slice) and parts[0].touched.index == whole:
        return np.packbits(np.asarray(parts[0].touched.marks)).tobytes(), np.packbits(parts[0].active).tobytes()
    touched, active = np.zeros((2, slots), dtype=np.bool_)
    for part in parts:
        if isinstance(part.touched.index, slice):
            here = slice(part.touched.begin - first_slot, part.touched.end - first_slot)
            touched[here], active[here] = part.touched.marks, part.active
        else:
            touched[part.touched.slots() - first_slot] = True
            active[part.touched.slots(part.active) - first_slot] = True
    return np.packbits(touched).tobytes(), np.packbits(active).tobytes()


def _amounts(part: Participants, column: NDArray[np.integer[Any]]) -> NDArray[np.integer[Any]]:
    return column if part.touched.marks is None else compress(column, part.touched.marks)


def _decoded(content: bytes, *, first_slot: int) -> tuple[Measure, Participants]:
    kind, form, width, count, listed = _HEADER.unpack_from(content)
    measure, start = Measure(kind), _HEADER.size
    end = start + listed + (-(-count // 8) if form == _LIST else listed)
    flags = np.unpackbits(np.frombuffer(content[start + listed : end], dtype=np.uint8)).view(np.bool_)
    if form == _LIST:
        slots = np.frombuffer(content, dtype=">u4", offset=start, count=listed // SLOT_BYTES)
        touched, active = Touched(slots.astype(np.int64)), flags[: slots.size]
    else:
        marks = np.unpackbits(np.frombuffer(content[start : start + listed], dtype=np.uint8)).view(np.bool_)
        touched, active = Touched(slice(first_slot, first_slot + marks.size), marks), flags
    told = 1 if measure is Measure.ONE_NORM else count * _numbers(measure)
    numbers = np.frombuffer(content, dtype=f">u{width}", offset=end, count=told)
    if touched.count != count:
        raise ValueError("the parts of a piece do not go together")
    norms_before = None
    if measure is Measure.ONE_NORM:
        amounts = uniform(int(numbers[0]), touched.size)
    elif measure is Measure.TWO_NORMS:
        norms_before, amounts = _by_place(numbers[:count], touched), _by_place(numbers[count:], touched)
    else:
        amounts = _by_place(numbers, touched)
    return measure, Participants(
        touched=touched, active=active, norms_squared=amounts, count=count, norms_before=norms_before
    )


def _by_place(numbers: NDArray[np.integer[Any]], touched: Touched) -> Integers:
    """The numbers of the touched individuals (k,), each at its place (p,)."""
    if touched.marks is None:
        return numbers.astype(np.int64)
    placed = np.zeros(touched.size, dtype=np.int64)
    placed[touched.marks] = numbers
    return placed
