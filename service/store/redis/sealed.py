"""The cache's port over any key-value store, which is not trusted: opaque names, and values sealed under the pepper."""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeVar

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.ports.cache import AccountSlice, Cache, CommitNotice, Shared, SharedEntry, SharedSummary
from service.store.redis import encoding

STAMP_BYTES: Final = 32
"""The number of random bytes with which a sealed value begins; no two values begin with the same bytes."""
_TAG_BYTES: Final = 16
_NONCE: Final = bytes(12)  # one key, one value
_LENGTH_BYTES: Final = 4
_BYTES_MIN: Final = 512
_FORMAT: Final = b"sparing cache 1\0"


class Seal:
    """Makes values unreadable, unforgeable and bound to their labels, with AES-256-GCM.

    Each value has a key of its own, derived from the cache's key and 32 random bytes, so that no nonce repeats however
    many values there are. A value is padded to a power of two, because its length would tell how many individuals a
    query concerned.
    """

    def __init__(self, key: bytes) -> None:
        """Take the `key`: 32 secret bytes."""
        self._key = key

    def name(self, label: bytes) -> str:
        """The name that stands for a label where others can read it."""
        return hmac.digest(self._key, b"name\0" + label, hashlib.sha256).hex()[:32]

    def close(self, label: bytes, value: bytes) -> bytes:
        """Seal a value, bound to its label."""
        salt = secrets.token_bytes(STAMP_BYTES)
        framed = len(value).to_bytes(_LENGTH_BYTES, "big") + value
        padded = framed.ljust(max(_BYTES_MIN, 1 << (len(framed) - 1).bit_length()), b"\0")
        return salt + self._cipher(salt).encrypt(_NONCE, padded, _FORMAT + label)

    def open(self, label: bytes, sealed: object) -> bytes | None:
        """The value, if `close` has made these bytes for this label; else None."""
        if not isinstance(sealed, bytes) or len(sealed) < STAMP_BYTES + _TAG_BYTES + _BYTES_MIN:
            return None
        salt, rest = sealed[:STAMP_BYTES], sealed[STAMP_BYTES:]
        try:
            padded = self._cipher(salt).decrypt(_NONCE, rest, _FORMAT + label)
        except InvalidTag:
            return None
        return padded[_LENGTH_BYTES : _LENGTH_BYTES + int.from_bytes(padded[:_LENGTH_BYTES], "big")]

    @staticmethod
    def stamp(held: object) -> bytes:
        """The first bytes of a value, which may be anything. They name the value that a caller replaces."""
        return held[:STAMP_BYTES] if isinstance(held, bytes) else b""

    def _cipher(self, salt: bytes) -> AESGCM:
        return AESGCM(hmac.digest(self._key, b"value\0" + salt, hashlib.sha256))


VALUE_BYTES_MAX: Final = 1 << 20
"""The most bytes of a shared value: reading a larger value from the database is faster."""

_NEWS: Final = b"news"
_SEEN_AT_ONCE: Final = 16
"""The slices that are read together before newer ones are stored: half a megabyte."""

Value = TypeVar("Value")
Item = tuple[str, bytes]
"""A name, and the value to store under it."""
Swap = tuple[str, bytes, bytes]
"""A name, the first bytes of the value that is there now (empty for none), and the value to store in its place."""


class KeyValueStore(Protocol):
    """A store of sealed bytes. No method raises, and a returned value may be anything."""

    def get(self, names: Sequence[str]) -> list[object]:
        """The value under each name, None where there is no value; an empty list when the store is out of reach."""

    def put(self, items: Sequence[Item], swaps: Sequence[Swap], messages: Sequence[bytes]) -> None:
        """Store `items`, and each of `swaps` unless another value is there by now; send `messages` to all listeners."""

    def audience(self) -> int:
        """The number of listeners."""

    def listen(self, *, within_s: float) -> list[object]:
        """The messages since the last call; waits at most `within_s` for the first one."""

    def take(self, name: str, *, interval_us: int, burst: int) -> object:
        """The microseconds until there is a token, 0 when one was taken; None when the store is out of reach."""

    def close(self) -> None:
        """Close the connections to the store."""


class SealedCache(Cache):
    """The port's Cache."""

    def __init__(self, values: KeyValueStore, key: bytes) -> None:
        """Take the store, and the `key` that the pepper gives for caches."""
        self._values, self._seal = values, Seal(key)

    def close(self) -> None:
        self._values.close()

    def share(self, values: Sequence[Shared], notice: Sequence[CommitNotice]) -> None:
        items: list[Item] = []
        newest: dict[bytes, AccountSlice] = {}
        for value in values:
            if isinstance(value, AccountSlice):
                label = _slice_label(value.place.genesis, value.number)
                newest[label] = max(newest.get(label, value), value, key=_position)
                continue
            if isinstance(value, SharedEntry):
                label, data = _entry_label(value.genesis, value.entry.seq), encoding.entry_bytes(value.entry)
            else:
                label, data = _summary_label(value.place.genesis), encoding.summary_bytes(value)
            if len(data) <= VALUE_BYTES_MAX:
                items.append((self._name(label), self._seal.close(label, data)))
        messages = [self._seal.close(_NEWS, encoding.notice_bytes(each)) for each in notice]
        self._values.put(items, [*self._swaps(newest)], messages)

    def entries(self, genesis: bytes, *, after: int, to: int) -> list[LedgerEntry]:
        labels = [_entry_label(genesis, seq) for seq in range(after + 1, to + 1)]
        return list(self._opened(labels, self._values.get([*map(self._name, labels)]), encoding.entry_of))

    def slices(self, genesis: bytes, numbers: Sequence[int]) -> list[AccountSlice]:
        labels = [_slice_label(genesis, number) for number in numbers]
        return list(self._opened(labels, self._values.get([*map(self._name, labels)]), encoding.slice_of))

    def summary(self, genesis: bytes) -> SharedSummary | None:
        label = _summary_label(genesis)
        return next(self._opened([label], self._values.get([self._name(label)]), encoding.summary_of), None)

    def audience(self) -> int:
        return self._values.audience()

    def listen(self, *, within_s: float) -> list[CommitNotice]:
        messages = self._values.listen(within_s=within_s)
        return list(self._opened([_NEWS] * len(messages), messages, encoding.notice_of))

    def take(self, bucket: str, *, per_s: int, burst: int) -> float | None:
        name = self._name(_label("bucket", bucket))
        wait_us = self._values.take(name, interval_us=1_000_000 // per_s, burst=burst)
        if not isinstance(wait_us, int):
            return None
        return min(max(wait_us / 1_000_000, 0.0), burst / per_s)

    def _swaps(self, slices: Mapping[bytes, AccountSlice]) -> Iterator[Swap]:
        """Swaps for the slices that are ahead of the stored ones; the store cannot tell which of two is ahead."""
        for first in range(0, len(slices), _SEEN_AT_ONCE):
            labels = list(slices)[first : first + _SEEN_AT_ONCE]
            names = [*map(self._name, labels)]
            for label, name, held in zip(labels, names, self._values.get(names), strict=False):
                before = next(self._opened([label], [held], encoding.slice_of), None)
                if before is None or _position(before) < _position(slices[label]):
                    yield name, Seal.stamp(held), self._seal.close(label, encoding.slice_bytes(slices[label]))

    def _name(self, label: bytes) -> str:
        return f"sparing:cache:{self._seal.name(label)}"

    def _opened(
        self, labels: Sequence[bytes], held: Sequence[object], read: Callable[[bytes], Value]
    ) -> Iterator[Value]:
        """The values among `held` that this service has sealed, as `read` reads them."""
        for label, sealed in zip(labels, held, strict=False):  # a key-value store out of reach holds nothing at all
            data = self._seal.open(label, sealed)
            if data is not None:
                yield read(data)


def _position(value: AccountSlice) -> tuple[int, int, int]:
    return value.place.position


def _entry_label(genesis: bytes, seq: int) -> bytes:
    return _label("entry 2", genesis.hex(), str(seq))  # those of the first kind have no pieces


def _slice_label(genesis: bytes, number: int) -> bytes:
    return _label("accounts 3", genesis.hex(), str(number))  # those of the second kind have no counters


def _summary_label(genesis: bytes) -> bytes:
    return _label("summary 2", genesis.hex())  # those of the first kind have no typical query


def _label(*parts: str) -> bytes:
    """The parts as one label, in which no part can run into the next."""
    return orjson.dumps(parts)
