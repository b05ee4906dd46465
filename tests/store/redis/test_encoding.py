"""Shared values read back unchanged."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.ledger.ports.cache import AccountSlice, CommitNotice, LedgerPosition
from service.store.redis import encoding

NUMBERS = st.integers(0, 2**62)
BLOBS = st.binary(max_size=100)


@given(number=NUMBERS)
def test_a_notice(number: int) -> None:
    """The position, whole."""
    told = CommitNotice(genesis=bytes(32), fence=number, seq=number, data_version=number)
    assert encoding.notice_of(encoding.notice_bytes(told)) == told


COUNTS = st.integers(0, 2**32 - 1)


@given(number=NUMBERS, accounts=st.lists(st.tuples(NUMBERS, NUMBERS, st.booleans(), COUNTS, COUNTS), max_size=30))
def test_a_slice(number: int, accounts: list[tuple[int, int, bool, int, int]]) -> None:
    """Every account in its place."""
    place = LedgerPosition(genesis=bytes(32), fence=number, seq=number, hash=b"h" * 32, data_version=number)
    limits, spent, paused, *counters = np.array(accounts, dtype=np.int64).reshape(-1, 5).T
    charged, left_out = (counts.astype(np.uint32) for counts in counters)
    told = AccountSlice(
        place=place,
        number=number,
        limits=limits,
        spent=spent,
        paused=paused.astype(np.bool_),
        charged=charged,
        left_out=left_out,
    )
    found = encoding.slice_of(encoding.slice_bytes(told))
    assert (found.place, found.number) == (place, number)
    np.testing.assert_array_equal(found.limits, limits)
    np.testing.assert_array_equal(found.spent, spent)
    np.testing.assert_array_equal(found.paused, told.paused)
    np.testing.assert_array_equal(found.charged, charged)
    np.testing.assert_array_equal(found.left_out, left_out)
