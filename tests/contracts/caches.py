"""Fixtures for the tests of caches: every key-value store by name, and values to put into it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace

import numpy as np

from service.ledger.model.api_keys import Pepper
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.rows import Head
from service.ledger.ports.cache import AccountSlice, CommitNotice, LedgerPosition, SharedSummary
from service.store.redis.client import RedisKeyValueStore
from service.store.redis.sealed import SealedCache
from tests.contracts.stores import entry
from tests.memory.cache import MemoryKeyValueStore, MemoryServer

GENESIS = bytes(31) + b"g"
OTHER = bytes(31) + b"h"
KEY = Pepper(bytes(32)).cache_key()
HEAD = Head(seq=0, hash=GENESIS, epoch=1, fence=1, data_version=1, slots=3, worst_case_units=0, checkpoint_seq=0)
"""The time after which a test gives up waiting; no test asserts how long a wait took."""


@contextmanager
def caches(
    redis_url: str | None = None, *, key: bytes = KEY, timeout_s: float = 5.0
) -> Iterator[Callable[[], SealedCache]]:
    """A factory of caches over the same key-value store: in this process's memory, or on the given server."""
    room = MemoryServer()
    with ExitStack() as opened:

        def make() -> SealedCache:
            values = (
                MemoryKeyValueStore(room) if redis_url is None else RedisKeyValueStore(redis_url, timeout_s=timeout_s)
            )
            return opened.enter_context(closing(SealedCache(values, key)))

        yield make


def chain(count: int, head: Head = HEAD) -> list[LedgerEntry]:
    """`count` entries that continue a head."""
    entries: list[LedgerEntry] = []
    for n in range(count):
        entries.append(entry(head, {0: 5 + n, 2: 9}, left_out=(1,) if n % 2 else ()))
        head = replace(head, seq=entries[-1].seq, hash=entries[-1].hash)
    return entries


def account_slice(seq: int, *, number: int = 0, fence: int = 1, data_version: int = 1) -> AccountSlice:
    """A slice of three accounts at sequence `seq`."""
    place = LedgerPosition(genesis=GENESIS, fence=fence, seq=seq, hash=bytes(32), data_version=data_version)
    limits, spent = np.array([2**62, 7, 0], dtype=np.int64), np.array([seq, 7, 0], dtype=np.int64)
    paused = np.array([False, True, False])
    charged, left_out = np.array([[seq, 2**32 - 1, 0], [0, 1, 2]], dtype=np.uint32)
    return AccountSlice(
        place=place, number=number, limits=limits, spent=spent, paused=paused, charged=charged, left_out=left_out
    )


def shared_summary(body: bytes = b"{}") -> SharedSummary:
    """A summary at sequence 1."""
    return SharedSummary(place=account_slice(1).place, body=body)


def notice(seq: int) -> CommitNotice:
    """A notice of a commit to the dataset."""
    return CommitNotice(genesis=GENESIS, fence=1, seq=seq, data_version=1)
