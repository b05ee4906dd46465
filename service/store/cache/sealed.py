"""The cache's port over any shelf: names that tell nothing, values that only holders of the pepper can read or make."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol, TypeVar

import orjson

from service.store.cache import encoding
from service.store.cache.sealing import Seal
from service.workflows.caching import AccountSlice, News, Shared, SharedEntry, SharedReply
from service.workflows.ledger import LedgerEntry
from service.workflows.records import Address

VALUE_BYTES_MAX: Final = 1 << 20
"""A larger value is not shared: it would be read from the database faster."""

_NEWS: Final = b"news"
_POSITION: Final = "{:020d}{:020d}{:020d}"
POSITION_BYTES: Final = 60

Value = TypeVar("Value")
Item = tuple[str, bytes]


class Shelf(Protocol):
    """Where sealed bytes lie. No method raises; whatever comes back may be anything."""

    def get(self, names: Sequence[str]) -> list[object]:
        """What lies under each name, None where nothing does; empty when the shelf is out of reach."""

    def put(self, items: Sequence[Item], forward: Sequence[Item], messages: Sequence[bytes]) -> None:
        """Lay down `items`, those of `forward` unless what lies there has a greater beginning, and tell all."""

    def audience(self) -> int:
        """How many listen."""

    def listen(self, *, within_s: float) -> list[object]:
        """The messages since the last call; waits for the first."""

    def take(self, name: str, *, interval_us: int, burst: int) -> object:
        """After how many microseconds a token is to be had, 0 when one was taken; None when out of reach."""

    def close(self) -> None:
        """Let go of it."""


class SealedCache:
    """The port's Cache."""

    def __init__(self, shelf: Shelf, key: bytes) -> None:
        """`key` is the pepper's for caches."""
        self._shelf, self._seal = shelf, Seal(key)

    def close(self) -> None:
        self._shelf.close()

    def hint(self, genesis: bytes, address: Address) -> int:
        return int(self._seal.name(_reply_label(genesis, address))[:13], 16)

    def share(self, values: Sequence[Shared], news: Sequence[News]) -> None:
        items: list[Item] = []
        forward: list[Item] = []
        for value in values:
            label, data, position = _shelved(value)
            if len(data) > VALUE_BYTES_MAX:
                continue
            name, sealed = self._name(label), self._seal.close(label, data)
            if position is None:
                items.append((name, sealed))
            else:
                forward.append((name, _POSITION.format(*position).encode() + sealed))
        messages = [self._seal.close(_NEWS, encoding.news_bytes(each)) for each in news]
        self._shelf.put(items, forward, messages)

    def reply(self, genesis: bytes, address: Address) -> SharedReply | None:
        label = _reply_label(genesis, address)
        held = self._shelf.get([self._name(label)])
        return next(self._opened([label], held, encoding.reply_of), None)

    def entries(self, genesis: bytes, *, after: int, to: int) -> list[LedgerEntry]:
        labels = [_entry_label(genesis, seq) for seq in range(after + 1, to + 1)]
        return list(self._opened(labels, self._shelf.get([*map(self._name, labels)]), encoding.entry_of))

    def slices(self, genesis: bytes, numbers: Sequence[int]) -> list[AccountSlice]:
        labels = [_slice_label(genesis, number) for number in numbers]
        held = self._shelf.get([*map(self._name, labels)])
        sealed = [each[POSITION_BYTES:] if isinstance(each, bytes) else None for each in held]
        return list(self._opened(labels, sealed, encoding.slice_of))

    def audience(self) -> int:
        return self._shelf.audience()

    def listen(self, *, within_s: float) -> list[News]:
        messages = self._shelf.listen(within_s=within_s)
        return list(self._opened([_NEWS] * len(messages), messages, encoding.news_of))

    def take(self, bucket: str, *, per_s: int, burst: int) -> float | None:
        name = self._name(_label("bucket", bucket))
        wait_us = self._shelf.take(name, interval_us=1_000_000 // per_s, burst=burst)
        if not isinstance(wait_us, int):
            return None
        return min(max(wait_us / 1_000_000, 0.0), burst / per_s)

    def _name(self, label: bytes) -> str:
        return f"sparing:cache:{self._seal.name(label)}"

    def _opened(
        self, labels: Sequence[bytes], held: Sequence[object], read: Callable[[bytes], Value]
    ) -> Iterator[Value]:
        """What is ours among what was held."""
        for label, sealed in zip(labels, held, strict=False):  # a shelf out of reach holds nothing at all
            data = self._seal.open(label, sealed)
            if data is not None:
                yield read(data)


def _shelved(value: Shared) -> tuple[bytes, bytes, tuple[int, int, int] | None]:
    """(label, bytes, position of what moves only forward)."""
    match value:
        case SharedReply():
            address = value.record.principal_id, value.record.key
            return _reply_label(value.genesis, address), encoding.reply_bytes(value), None
        case SharedEntry():
            return _entry_label(value.genesis, value.entry.seq), encoding.entry_bytes(value.entry), None
        case AccountSlice():
            label = _slice_label(value.place.genesis, value.number)
            return label, encoding.slice_bytes(value), value.place.position


def _reply_label(genesis: bytes, address: Address) -> bytes:
    principal_id, key = address
    return _label("reply", genesis.hex(), principal_id.hex, key)


def _entry_label(genesis: bytes, seq: int) -> bytes:
    return _label("entry", genesis.hex(), str(seq))


def _slice_label(genesis: bytes, number: int) -> bytes:
    return _label("accounts", genesis.hex(), str(number))


def _label(*parts: str) -> bytes:
    """Parts that cannot run into each other."""
    return orjson.dumps(parts)
