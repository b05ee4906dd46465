"""Values that an earlier version has left in the key-value store."""

import orjson
import pytest

from service.store.redis import encoding
from service.store.redis.sealed import Seal, SealedCache
from tests.contracts.caches import GENESIS, KEY, account_slice
from tests.memory.cache import MemoryKeyValueStore, MemoryServer


@pytest.mark.parametrize(("label", "parts"), [("accounts", 4), ("accounts 2", 5)])
def test_accounts_of_an_earlier_version_are_as_good_as_none(label: str, parts: int) -> None:
    """They are of the right key, and have no pauses or no counters."""
    room = MemoryServer()
    cache = SealedCache(MemoryKeyValueStore(room), KEY)
    now = encoding.slice_bytes(account_slice(5))
    facts, blobs = encoding._unpack(now)
    seal, name = Seal(KEY), orjson.dumps((label, GENESIS.hex(), "0"))
    sealed = seal.close(name, encoding._pack(facts, blobs[:parts]))
    room.values[f"sparing:cache:{seal.name(name)}"] = sealed
    assert cache.slices(GENESIS, [0]) == []
    cache.share([account_slice(5)], [])
    assert [each.place.seq for each in cache.slices(GENESIS, [0])] == [5]
