"""What an earlier version has laid on the shelf."""

import orjson

from service.store.cache import encoding
from service.store.cache.memory import MemoryShelf, Room
from service.store.cache.sealed import SealedCache
from service.store.cache.sealing import Seal
from tests.contracts.caches import GENESIS, KEY, account_slice


def test_accounts_of_a_version_without_pauses_are_as_good_as_none() -> None:
    """They are of the right key, and cannot say who has paused."""
    room = Room()
    cache = SealedCache(MemoryShelf(room), KEY)
    now = encoding.slice_bytes(account_slice(5))
    facts, (*blobs, _) = encoding._unpack(now)
    seal, label = Seal(KEY), orjson.dumps(("accounts", GENESIS.hex(), "0"))
    sealed = seal.close(label, encoding._pack(facts, blobs))
    room.values[f"sparing:cache:{seal.name(label)}"] = sealed
    assert cache.slices(GENESIS, [0]) == []
    cache.share([account_slice(5)], [])
    assert [each.place.seq for each in cache.slices(GENESIS, [0])] == [5]
