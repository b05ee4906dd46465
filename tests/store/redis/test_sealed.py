"""The seal: what was not closed under this label with this key does not open, and a length tells little."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


SEAL = Seal(b"k" * 32)


@given(label=st.binary(max_size=50), value=st.binary(max_size=2000))
def test_what_was_closed_opens(label: bytes, value: bytes) -> None:
    """Under its label, with its key."""
    sealed = SEAL.close(label, value)
    assert SEAL.open(label, sealed) == value
    assert SEAL.open(label + b"x", sealed) is None
    assert Seal(b"l" * 32).open(label, sealed) is None


@given(value=st.binary(max_size=600), data=st.data())
def test_any_change_is_noticed(value: bytes, data: st.DataObject) -> None:
    """One bit anywhere, the end cut off, or something added."""
    sealed = SEAL.close(b"label", value)
    place = data.draw(st.integers(0, 8 * len(sealed) - 1))
    flipped = bytearray(sealed)
    flipped[place // 8] ^= 1 << place % 8
    for forged in (bytes(flipped), sealed[: data.draw(st.integers(0, len(sealed) - 1))], sealed + b"\0"):
        assert SEAL.open(b"label", forged) is None


@pytest.mark.parametrize("held", [None, b"", 5, "text", [b"x"], b"\xff" * 10_000])
def test_anything_else_is_nothing(held: object) -> None:
    """It may be of any type: a hostile server may answer anything."""
    assert SEAL.open(b"label", held) is None


def test_the_same_value_never_looks_the_same() -> None:
    """Nor does a name tell its label."""
    assert len({SEAL.close(b"label", b"value") for _ in range(100)}) == 100
    assert SEAL.name(b"label") == SEAL.name(b"label") != SEAL.name(b"lapel")
    assert Seal(b"l" * 32).name(b"label") != SEAL.name(b"label")


@given(size=st.integers(0, 5000))
def test_a_length_is_a_power_of_two(size: int) -> None:
    """So that it tells the number of people of a query to within a factor of two at best."""
    body = len(SEAL.close(b"", bytes(size))) - 48
    assert body >= max(512, size)
    assert body & (body - 1) == 0
