"""Bytes of uploads on disk: counted by principal and in all, and given back."""

import os
import tempfile

import pytest

from service.ledger.model.errors import DiskFull, TooManyBytesSpooled
from service.writer.admission.spools import UNSETTLED_BYTES_MAX, SpoolBounds, Spools


def test_a_principal_has_its_own_bound_and_all_have_one() -> None:
    """The refusal names the limit; what was taken before it is given back at the end."""
    spools = Spools(SpoolBounds(principal_bytes_max=10, bytes_max=15))
    with spools.spool("one") as first, spools.spool("one") as second, spools.spool("other") as other:
        first.take(6)
        second.take(4)
        with pytest.raises(TooManyBytesSpooled, match=r"at most 10 bytes .*SPARING_SPOOL_BYTES_MAX"):
            second.take(1)
        other.take(5)
        with pytest.raises(DiskFull, match=r"at most 15 bytes .*SPARING_SPOOL_BYTES_TOTAL_MAX"):
            other.take(1)
        assert spools.bytes_held == 15
    assert spools.bytes_held == 0
    with spools.spool("one") as again:
        again.take(10)


def test_a_disk_has_all_but_the_last_of_an_upload(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit of the database on the same disk would wait for all of it."""
    on_disk: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: on_disk.append(os.fstat(descriptor).st_size))
    piece = b"x" * (UNSETTLED_BYTES_MAX // 4)
    with Spools().spool("one") as spool, tempfile.TemporaryFile() as file:
        for _ in range(10):
            spool.take(len(piece))
            file.write(piece)
            spool.settle(file)
    assert on_disk == [UNSETTLED_BYTES_MAX, 2 * UNSETTLED_BYTES_MAX]
