"""Pieces of a ledger entry: the touched individuals, which of them were active, and the quantity that priced each.

The individuals of an entry are divided into stretches of slots, so that one individual's receipt reads one
piece, an erasure rewrites one, and no value grows with the dataset. An entry that says little is one piece over all
slots. A piece holds plain forms only: four bytes and a bit for each touched individual or two bits for each slot of its
stretch, whichever is less in sum, and its quantity where the query admits different ones, in as many bytes as the
largest needs that the query admits. Its size grows in steps, up to that of a stretch in which every slot is touched:
one individual more or less changes it rarely, and of a dense query never. The bytes do not depend on the form or the
size of the blocks in which individuals were evaluated.
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

from service.arrays import Integers, compress, first, kept, narrowest, uniform
from service.core.laws import Law
from service.core.release import Participants
from service.core.renyi_filter import Touched

STRETCH_SLOTS: Final = 2**15
"""A piece has 8 KiB, and the amounts: the part of a dense query that a receipt reads."""
WHOLE: Final = -1
"""The number of a piece over all slots."""
WHOLE_BYTES_MAX: Final = 2**13
BYTES_MIN: Final = 2**8
STEPS: Final = 8
"""A size is rounded up to a multiple of this part of the power of two below it, and to BYTES_MIN at least."""
SLOT_BYTES: Final = 4

_LIST, _BITMAP = 0, 1
_HEADER: Final = Struct("!BBBII")  # measure, form of the slots, bytes of an amount, touched slots, bytes of the slots
_WIDEST: Final = 8
_NUMBER: Final = Struct("!q")
_PIECE_TAG: Final = b"sparing piece 2\0"
_PIECES_TAG: Final = b"sparing pieces 2\0"

CONTENT_BYTES_MAX: Final = _HEADER.size + 2 * STRETCH_SLOTS // 8 + _WIDEST * STRETCH_SLOTS
"""The longest content of a piece: every slot of its stretch is touched."""
TWO_NORMS_BYTES_MAX: Final = CONTENT_BYTES_MAX + _WIDEST * STRETCH_SLOTS
"""The longest content under the clip rule."""

Outcome = Literal["charged", "shortened", "counted", "left_out", "untouched"]
"""The outcome of an entry for one slot.

`shortened` is charged too, for less than its whole vector; `counted` by a tick, which the monitor's reserve has paid.
"""


class OwnOutcome(NamedTuple):
    """The outcome of an entry for one slot, the units that it was charged, and those that its whole vector costs."""

    outcome: Outcome
    units: int
    asked_units: int


class Measure(IntEnum):
    """The kind of amounts in a piece."""

    ONE_NORM = 0
    """One squared norm in grid steps for all: the query gives every individual the same."""
    NORMS = 1
    """A squared norm in grid steps for each."""
    UNITS = 2
    """Units of 2^-40 rho for each, of a burn: nothing was released."""
    TWO_NORMS = 3
    """Under the clip rule, a squared norm of the whole vector for each, and one of what was counted: 0 if left out."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quantities:
    """The slots `touched` (k,), increasing, which of them took part (`active`, (k,)), and `amounts` (k,) of all.

    Under ONE_NORM the amounts are a view of one number. Under TWO_NORMS they are of what was counted, and
    `norms_before` (k,) of the whole vectors; it is None under all others.
    """

    measure: Measure
    touched: Integers
    active: NDArray[np.bool_]
    amounts: Integers
    norms_before: Integers | None = None

    def blocks(self) -> tuple[Participants, ...]:
        """The outcomes in blocks, as `pieces_of` takes them."""
        block = Participants(
            touched=Touched(self.touched),
            active=self.active,
            norms_squared=self.amounts,
            count=self.touched.size,
            norms_before=self.norms_before,
        )
        return (block,)

    def without(self, slot: int) -> "Quantities | None":
        """Those of all others; None where the slot is not touched."""
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
        """The charge that the whole vector of each touched individual has, (k,) units."""
        return prices_of(self.measure, self.whole, law)

    def own(self, slot: int, law: Law) -> OwnOutcome:
        """The part of one slot."""
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
    """Stretch `number` of an entry, or WHOLE. `digest` binds the entry's salt, the number and the content.

    In an amended piece `first_digest` is the digest that it was written with, which its entry binds; of any
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
        measure, block = self.block()
        marks = np.ones(block.touched.size, dtype=np.bool_) if block.touched.marks is None else block.touched.marks
        touched, active = block.touched.slots(), compress(block.active, marks)
        amounts = kept(marks, block.norms_squared.astype(np.int64, copy=False))
        norms_before = (
            None if block.norms_before is None else compress(block.norms_before.astype(np.int64, copy=False), marks)
        )
        return Quantities(measure=measure, touched=touched, active=active, amounts=amounts, norms_before=norms_before)

    def block(self) -> tuple[Measure, Participants]:
        """The content in the form in which it is written. Raises ValueError for content that is no piece's."""
        try:
            return _decoded(self.content, first_slot=max(self.number, 0) * STRETCH_SLOTS)
        except (error, IndexError, TypeError) as fault:
            raise ValueError("the content of a piece cannot be read") from fault


def prices_of(measure: Measure, amounts: Integers, law: Law) -> Integers:
    """The charge for each amount (k,), (k,) units: a public function of amount and law."""
    match measure:
        case Measure.UNITS:
            return amounts
        case Measure.ONE_NORM:
            return uniform(law.charge(first(amounts)), amounts.size)
        case Measure.NORMS | Measure.TWO_NORMS:
            return law.charges(amounts)


def number_for(slot: int) -> int:
    """The number of the stretch that a slot is in."""
    return slot // STRETCH_SLOTS


def pieces_of(
    blocks: Sequence[Participants], measure: Measure, *, amount_max: int, slots: int, salt: bytes
) -> tuple[Piece, ...]:
    """The pieces of an entry, by number, in a dataset that has handed out so many slots. At least one.

    The blocks come in increasing slots, and no amount is above `amount_max`. Raises IndexError for a touched slot
    beyond the slots.
    """
    count, width = sum(block.count for block in blocks), narrowest(amount_max).itemsize
    if _size(count, slots, measure, width) > WHOLE_BYTES_MAX:
        return stretches_of(blocks, measure, amount_max=amount_max, slots=slots, salt=salt)
    here = blocks if all(block.touched.end <= slots for block in blocks) else _handed_out(blocks, slots)
    return (Piece.of(salt, WHOLE, _encoded(here, measure, width, first_slot=0, slots=slots)),)


def may_be_whole(count: int, measure: Measure, *, amount_max: int, slots: int) -> bool:
    """Tell whether an entry that touches so many individuals at least may be one piece over all slots."""
    return _size(count, slots, measure, narrowest(amount_max).itemsize) <= WHOLE_BYTES_MAX


def stretches_of(
    blocks: Sequence[Participants], measure: Measure, *, amount_max: int, slots: int, salt: bytes
) -> tuple[Piece, ...]:
    """The pieces of an entry that is not one piece, or those of some of its stretches. Raises as `pieces_of`."""
    pieces, width = [], narrowest(amount_max).itemsize
    for number, parts in groupby(_cut(_handed_out(blocks, slots)), key=lambda part: number_for(part.touched.begin)):
        first_slot = number * STRETCH_SLOTS
        left = min(slots - first_slot, STRETCH_SLOTS)
        content = _encoded(list(parts), measure, width, first_slot=first_slot, slots=left)
        pieces.append(Piece.of(salt, number, content))
    return tuple(pieces)


def _handed_out(blocks: Sequence[Participants], slots: int) -> list[Participants]:
    """The blocks without places beyond the slots. Raises IndexError where one of these is touched."""
    here = [block if block.touched.end <= slots else within(block, 0, slots) for block in blocks]
    if sum(block.count for block in here) < sum(block.count for block in blocks):
        raise IndexError("a touched slot has not been handed out")
    return here


def within(block: Participants, begin: int, end: int) -> Participants:
    """Those of a block with slots from `begin` up to `end`."""
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
    """The blocks cut where stretches end; parts that touch nobody are left out."""
    for block in blocks:
        for number in range(number_for(block.touched.begin), number_for(max(block.touched.end - 1, 0)) + 1):
            part = within(block, number * STRETCH_SLOTS, (number + 1) * STRETCH_SLOTS)
            if part.count > 0:
                yield part


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
    """SHA-256 over numbers and digests of an entry's pieces as they were written, in order."""
    sha = hashlib.sha256(_PIECES_TAG)
    for piece in pieces:
        sha.update(_NUMBER.pack(piece.number) + piece.bound_digest)
    return sha.digest()


def _size(count: int, slots: int, measure: Measure, width: int) -> int:
    """The bytes of a piece over these slots that touches `count` of them, before it is padded."""
    amounts = _WIDEST if measure is Measure.ONE_NORM else width * count * _numbers(measure)
    return _HEADER.size + min(SLOT_BYTES * count + -(-count // 8), 2 * -(-slots // 8)) + amounts


def _numbers(measure: Measure) -> int:
    """The numbers of each touched individual, where there is not one for all."""
    return 2 if measure is Measure.TWO_NORMS else 1


def _encoded(parts: Sequence[Participants], measure: Measure, width: int, *, first_slot: int, slots: int) -> bytes:
    """Big-endian, from `first_slot` on: header, slots, flags of activity, amounts, and zeros up to the next size."""
    count = sum(part.count for part in parts)
    form = _LIST if SLOT_BYTES * count + -(-count // 8) <= 2 * -(-slots // 8) else _BITMAP
    content = _packed(parts, measure, width, form, first_slot=first_slot, slots=slots)
    step = max((1 << ((len(content) - 1).bit_length() - 1)) // STEPS, 1)
    padded = max(-(-len(content) // step) * step, BYTES_MIN)
    return content.ljust(min(padded, _size(slots, slots, measure, width)), b"\0")


def _rewritten(content: bytes, quantities: Quantities, *, first_slot: int) -> bytes:
    """Content of the same form and length for fewer of its slots."""
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
    """Two flags for each slot from `first_slot` on: whether it is touched, and whether it is active."""
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
    """Numbers of the touched (k,) by place (p,)."""
    if touched.marks is None:
        return numbers.astype(np.int64)
    placed = np.zeros(touched.size, dtype=np.int64)
    placed[touched.marks] = numbers
    return placed
