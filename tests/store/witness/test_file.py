"""The file witness on a bad disk: torn, damaged, full, locked, replaced, thinned out."""

import errno
import fcntl
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from service.ledger.model.rows import WitnessRecord
from service.ledger.ports.witness import WitnessUnavailable
from service.store.witness.combined import RECORD_BYTES, decode, encode
from service.store.witness.file import FileWitness

DATASET = "survey-" + "0f" * 32


def at(seq: int, fence: int = 1) -> WitnessRecord:
    """A record."""
    return WitnessRecord(
        fence=fence, seq=seq, acts=seq, slots=3, worst_case_total_units=seq * 10, hash=seq.to_bytes(32, "big")
    )


@pytest.fixture
def witness(tmp_path: Path) -> FileWitness:
    """A witness in a folder that is not there yet."""
    return FileWitness(tmp_path / "home" / "witness")


def written(witness: FileWitness, count: int) -> Path:
    """The file of a dataset at sequence `count`."""
    for seq in range(1, count + 1):
        witness.write(DATASET, at(seq))
    return witness.path(DATASET)


def reopened(witness: FileWitness) -> FileWitness:
    """The folder, seen by another process."""
    return FileWitness(witness.path(DATASET).parent)


def test_only_its_owner_may_read_it(witness: FileWitness) -> None:
    """Numbers of people and queries are readable by its owner alone."""
    path = written(witness, 1)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_torn_at_every_byte_it_holds_what_was_whole(witness: FileWitness) -> None:
    """After a crash at any length, whole records count, the torn one does not, and writing goes on."""
    path = written(witness, 4)
    whole = path.read_bytes()
    for length in range(4 * RECORD_BYTES + 2):
        path.write_bytes(whole[:length])
        kept = min(length // RECORD_BYTES, 4)
        assert witness.history(DATASET) == [at(seq) for seq in range(1, kept + 1)]
        if RECORD_BYTES < length < 4 * RECORD_BYTES and length % RECORD_BYTES not in {0, 1, RECORD_BYTES - 1}:
            continue  # each write waits for the disk
        for process in (witness, reopened(witness)):
            before = process.write(DATASET, at(9))
            assert before == (at(9) if process is not witness else at(kept) if kept else None)
        assert witness.history(DATASET) == [*(at(seq) for seq in range(1, kept + 1)), at(9)]


def test_a_write_that_tears_at_any_byte_leaves_the_record_before(witness: FileWitness) -> None:
    """A power cut in the middle of an append, the rest of the block being zeros or what was there."""
    path = written(witness, 3)
    data = bytearray(path.read_bytes())
    torn = encode(DATASET, at(4))
    for length in range(RECORD_BYTES):
        start = 3 * RECORD_BYTES
        data[start : start + RECORD_BYTES] = torn[:length].ljust(RECORD_BYTES, b"\0")
        path.write_bytes(data)
        assert witness.history(DATASET)[-1] == at(3)
        assert reopened(witness).write(DATASET, at(5)) == at(3)
        assert witness.history(DATASET)[-1] == at(5)


def test_the_checksum_covers_every_bit_of_a_record_and_the_name_of_the_dataset() -> None:
    """One wrong bit anywhere, and there is no record."""
    whole = encode(DATASET, at(1))
    assert decode(DATASET, whole) == at(1)
    for bit in range(RECORD_BYTES * 8):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        assert decode(DATASET, bytes(damaged)) is None
    assert decode("survey-" + "1e" * 32, whole) is None


def test_behind_damage_it_goes_on(witness: FileWitness) -> None:
    """The other records stay; one that cannot be read is not written over: its content is unknown."""
    path = written(witness, 3)
    damaged = bytearray(path.read_bytes())
    damaged[RECORD_BYTES] ^= 1
    path.write_bytes(damaged)
    assert witness.history(DATASET) == [at(1), at(3)]
    damaged[RECORD_BYTES] ^= 1
    damaged[2 * RECORD_BYTES] ^= 1
    path.write_bytes(damaged)
    assert reopened(witness).write(DATASET, at(4)) == at(2)
    assert path.read_bytes()[: 3 * RECORD_BYTES] == bytes(damaged[: 3 * RECORD_BYTES])
    assert witness.history(DATASET) == [at(1), at(2), at(4)]


def test_an_older_copy_put_back_under_it_is_noticed(witness: FileWitness) -> None:
    """A process remembers the size of that file only."""
    path = written(witness, 2)
    older = path.read_bytes()
    written(witness, 6)
    path.write_bytes(older)
    assert witness.write(DATASET, at(7)) == at(2)
    assert witness.history(DATASET) == [at(1), at(2), at(7)]


def test_two_processes_append_to_one_file(witness: FileWitness) -> None:
    """Each sees what the other has written."""
    other = reopened(witness)
    before = None
    for seq in range(1, 30):
        assert (witness, other)[seq % 2].write(DATASET, at(seq)) == before
        before = at(seq)
    assert witness.history(DATASET) == [at(seq) for seq in range(1, 30)]


def test_a_long_history_is_thinned_and_its_newest_part_kept(tmp_path: Path) -> None:
    """It stays bounded, never loses the farthest, and of what is older keeps ever fewer, never none."""
    witness = FileWitness(tmp_path, records_max=3000)
    other = FileWitness(tmp_path, records_max=3000)
    path = written(witness, 1)
    path.write_bytes(b"".join(encode(DATASET, at(seq)) for seq in range(1, 3000)))
    for seq in range(3000, 3010):
        assert (witness, other)[seq % 2].write(DATASET, at(seq)) == at(seq - 1)
    sequences = [record.seq for record in witness.history(DATASET)]
    assert sequences[-2048:] == list(range(3010 - 2048, 3010))
    older = sequences[:-2048]
    assert older[0] == 1
    assert 400 < len(older) < 600
    assert sequences == sorted(sequences)
    assert not list(tmp_path.glob("*.fresh"))


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """A disk that is full: nothing may be written past `size` bytes of a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 1, RECORD_BYTES - 1])
def test_a_full_disk_is_told_and_nothing_is_lost(witness: FileWitness, room: int) -> None:
    """A record without room is not witnessed; with room again, it is."""
    path = written(witness, 3)
    os.truncate(path, 3 * RECORD_BYTES)
    with no_file_beyond(3 * RECORD_BYTES + room), pytest.raises(WitnessUnavailable, match=r"EFBIG|ENOSPC"):
        witness.write(DATASET, at(4))
    assert witness.history(DATASET)[-1] == at(3)
    assert witness.write(DATASET, at(4)) == at(3)
    assert reopened(witness).history(DATASET)[-1] == at(4)


def test_what_could_not_be_synced_is_written_anew(witness: FileWitness, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failed sync a record may stand in the file and never reach the disk: the next write makes a new file."""
    path = written(witness, 3)
    before = path.stat().st_ino
    with monkeypatch.context() as broken:
        broken.setattr("service.store.witness.file.os.fdatasync", _broken_disk)
        with pytest.raises(WitnessUnavailable, match="EIO"):
            witness.write(DATASET, at(4))
    assert witness.history(DATASET)[-1] == at(4)
    assert witness.write(DATASET, at(4)) == at(4)
    assert path.stat().st_ino != before
    assert witness.history(DATASET) == [at(seq) for seq in range(1, 5)]


def _broken_disk(_descriptor: int) -> None:
    raise OSError(errno.EIO, "input/output error")


def test_a_folder_that_cannot_be_made_or_read_is_told(tmp_path: Path) -> None:
    """Unreadable is not unknown: it must not be taken for a fresh start."""
    (tmp_path / "file").touch()
    blocked = FileWitness(tmp_path / "file" / "witness")
    with pytest.raises(WitnessUnavailable):
        blocked.write(DATASET, at(1))
    with pytest.raises(WitnessUnavailable):
        blocked.history(DATASET)
    witness = FileWitness(tmp_path)
    witness.path(DATASET).mkdir()
    with pytest.raises(WitnessUnavailable, match="EISDIR"):
        witness.history(DATASET)


def test_a_disk_that_is_gone_is_told_and_nothing_is_begun_in_its_place(tmp_path: Path) -> None:
    """Also where another disk is in its place; with the first it goes on."""
    folder, away = tmp_path / "witness", tmp_path / "away"
    witness, reader = FileWitness(folder), FileWitness(folder)
    for dataset in (DATASET, "other"):
        witness.write(dataset, at(1))
        assert reader.history(dataset) == [at(1)]
    folder.rename(away)
    for _ in ("no folder", "an empty one"):
        for gone in (witness, reader):
            with pytest.raises(WitnessUnavailable, match="ENOENT"):
                gone.check()
            with pytest.raises(WitnessUnavailable, match="ENOENT"):
                gone.write(DATASET, at(2))
        folder.mkdir(exist_ok=True)
    assert list(folder.iterdir()) == []
    folder.rmdir()
    away.rename(folder)
    witness.check()
    witness.write(DATASET, at(2))
    witness.path("other").unlink()
    witness.check()  # the file of one dataset is its own affair


def test_a_stopped_process_that_holds_the_file_is_not_waited_for_long(
    witness: FileWitness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then nothing leaves, which is better than leaving unwitnessed."""
    monkeypatch.setattr("service.store.witness.file._LOCK_WAIT_S", 0.02)
    path = written(witness, 1)
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(WitnessUnavailable, match="EAGAIN"):
            witness.write(DATASET, at(2))
    assert replace(at(2)) not in witness.history(DATASET)
    assert witness.write(DATASET, at(2)) == at(1)
