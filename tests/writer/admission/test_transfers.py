"""The memory of uploads and exports: bounded together, and fair between principals."""

from contextlib import ExitStack

import pytest

from service.writer.admission.admission import MemoryFull
from service.writer.admission.transfers import EXPORT_BYTES, RECEIVING_BYTES, Transfers

MIB = 2**20


def test_text_takes_memory_by_its_length_and_other_bodies_all_that_one_upload_may() -> None:
    """A small body of Parquet may stand for any number of rows."""
    transfers = Transfers(2048 * MIB)
    assert transfers.reading_bytes(body_bytes=10, is_text=False) == 576 * MIB
    assert transfers.reading_bytes(body_bytes=MIB, is_text=True) == 168 * MIB
    assert transfers.reading_bytes(body_bytes=2**30, is_text=True) == 576 * MIB


def test_all_together_keep_within_the_bound() -> None:
    """For all principals together; a transfer that has ended leaves its room."""
    transfers = Transfers(2048 * MIB)
    with ExitStack() as stack:
        for number in range(100):
            try:
                stack.enter_context(transfers.holding(f"curator {number // 10}", 200 * MIB))
            except MemoryFull:
                continue
        assert 1400 * MIB < transfers.kept_bytes <= 2048 * MIB
    assert transfers.kept_bytes == 0


def test_a_principal_has_room_for_small_uploads_and_exports_beside_its_largest() -> None:
    """But not for a second one of that size, for which another principal has room."""
    transfers = Transfers(2048 * MIB)
    largest = transfers.reading_bytes(body_bytes=1, is_text=False)
    small = transfers.reading_bytes(body_bytes=10_000, is_text=True)
    with transfers.holding("ann", RECEIVING_BYTES), transfers.holding("ann", largest):
        with pytest.raises(MemoryFull), transfers.holding("ann", largest):
            pass
        for held_bytes in (small, EXPORT_BYTES):
            with transfers.holding("ann", held_bytes), transfers.holding("bob", largest):
                pass
