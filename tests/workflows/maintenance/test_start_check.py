"""The check of a ledger's end against its head: findings, their wording, and the bounds of the check."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.workflows.maintenance import start_check
from service.workflows.maintenance.start_check import StartCheck
from service.workflows.model.ledger_entry import LedgerEntry
from service.workflows.ports.store import StoreUnavailable
from tests.factories import analyst, ask, open_replica, register, upload
from tests.memory.store import MemoryStore
from tests.memory.tables import Dataset
from tests.memory.transaction import MemoryTransaction

ENTRIES = 6
Change = Callable[[Dataset], Dataset]


@cache
def whole() -> Dataset:
    """A ledger of six entries and a journal of two acts, written by a replica."""
    store = MemoryStore()
    with open_replica(store) as replica:
        register(replica)
        upload(replica, "people", [("ann", "NO", 44, 10), ("bob", "SE", 30, 20.5)])
        who = analyst(replica)
        for number in range(ENTRIES):
            ask(replica, who, f"k{number}", reuse=False)
        replica.curators.open_epoch("survey")
    return store.kept[1]


class SparseTransaction(MemoryTransaction):
    """A snapshot of a ledger with missing rows, as Postgres would read it."""

    def entries(self, *, after: int, limit: int | None = None) -> Iterator[LedgerEntry]:
        yield from [each for each in self._draft.entries if each.seq > after][:limit]

    def hashes(self, seqs: Sequence[int]) -> dict[int, bytes]:
        return {each.seq: each.hash for each in self._draft.entries if each.seq in seqs}


def snapshot(kept: Dataset) -> SparseTransaction:
    """A snapshot of a store with this dataset."""
    store = MemoryStore()
    store.add_dataset(kept.record)
    store.kept[1] = kept
    return SparseTransaction(store, 1, lock=False)


def checked(kept: Dataset, **bounds: int) -> StartCheck:
    """A finished check, each step in a snapshot of its own."""
    check = StartCheck(kept.record, **bounds)
    while check.step(snapshot(kept)):
        pass
    return check


def flipped(value: bytes, bit: int = 0) -> bytes:
    """The value with one bit flipped."""
    place = bit // 8 % len(value)
    return value[:place] + bytes([value[place] ^ (1 << bit % 8)]) + value[place + 1 :]


def entry(seq: int, **changed: Any) -> Change:
    """A change of an entry's fields; a callable is applied to the old value."""

    def change(kept: Dataset) -> Dataset:
        before = kept.entries[seq - 1]
        values = {name: value(getattr(before, name)) if callable(value) else value for name, value in changed.items()}
        return replace(kept, entries=(*kept.entries[: seq - 1], replace(before, **values), *kept.entries[seq:]))

    return change


def without(seq: int) -> Change:
    """A change that removes an entry."""
    return lambda kept: replace(kept, entries=tuple(each for each in kept.entries if each.seq != seq))


def head(**changed: Any) -> Change:
    """A change of the head's fields."""
    return lambda kept: replace(kept, head=replace(kept.head, **changed))


def made_anew(seq: int) -> Change:
    """A change of an entry and its hash; the entries after it stay."""

    def change(kept: Dataset) -> Dataset:
        forged = replace(kept.entries[seq - 1], analyst="bea").sealed()
        return replace(kept, entries=(*kept.entries[: seq - 1], forged, *kept.entries[seq:]))

    return change


def act(**changed: Any) -> Change:
    """A change of the last act."""
    return lambda kept: replace(kept, journal=(*kept.journal[:-1], replace(kept.journal[-1], **changed)))


def without_last_act(kept: Dataset) -> Dataset:
    """Remove the last act."""
    return replace(kept, journal=kept.journal[:-1], acted_at=kept.acted_at[:-1])


@dataclass(frozen=True, slots=True)
class Damage:
    """A change, and the finding that it must cause."""

    name: str
    change: Change
    found: str

    def __str__(self) -> str:
        return self.name


DAMAGES = [
    Damage("values", entry(3, values=flipped), "ledger row 3: its contents do not give its hash"),
    Damage("the last values", entry(6, values=flipped), "ledger row 6: its contents do not give its hash"),
    Damage("a sum of worst cases", entry(2, worst_case_total_units=1), "ledger row 2: its contents do not give its"),
    Damage("a sigma that is none", entry(4, sigma=float("nan")), "ledger row 4: its contents do not give its hash"),
    Damage("a hash", entry(3, hash=flipped), "ledger row 3: its contents do not give its hash"),
    Damage("a previous hash", entry(3, previous_hash=flipped), "ledger row 3: its contents do not give its hash"),
    Damage("an entry made anew", made_anew(3), "ledger row 4: does not continue the row before"),
    Damage("the last entry made anew", made_anew(6), "heads row 1: its hash is not that of the last ledger row"),
    Damage("a missing row", without(3), "ledger row 3: is missing"),
    Damage("a missing first row", without(1), "ledger row 1: is missing"),
    Damage("a missing last row", without(6), "heads row 1: says seq 6, the ledger ends at 5"),
    Damage("the head's sequence", head(seq=5), "heads row 1: says seq 5, the ledger ends at 6"),
    Damage("the head's hash", head(hash=b"x" * 32), "heads row 1: its hash is not that of the last ledger row"),
    Damage("the head's sum", head(worst_case_units=1), "heads row 1: says worst_case_units 1, the ledger gives"),
    Damage("the journal's head", head(journal_hash=b"x" * 32), "heads row 1: its journal_hash is not that of the last"),
    Damage("the count of acts", head(data_version=3), "heads row 1: says data_version 3, the journal ends at 2"),
    Damage("the last act", act(at_seq=1), "journal row 2: its contents do not give its hash"),
    Damage("a missing act", without_last_act, "heads row 1: says data_version 2, the journal ends at 1"),
]


def test_a_whole_ledger_passes() -> None:
    """Every entry is checked."""
    check = checked(whole())
    assert (check.finding, check.entries) == (None, ENTRIES)
    assert check.bytes >= sum(len(each.values) for each in whole().entries)


@pytest.mark.parametrize("piece", [1, 2, 64])
@pytest.mark.parametrize("damage", DAMAGES, ids=str)
def test_every_damage_is_named(monkeypatch: pytest.MonkeyPatch, damage: Damage, piece: int) -> None:
    """The finding names table and row, with any length of pieces."""
    monkeypatch.setattr(start_check, "PIECE_ENTRIES", piece)
    finding = checked(damage.change(whole())).finding
    assert finding is not None
    assert finding.startswith(damage.found)


@given(
    seq=st.integers(1, ENTRIES),
    name=st.sampled_from(["values", "canonical", "hash", "previous_hash"]),
    bit=st.integers(0, 10_000),
    bounds=st.sampled_from([{}, {"entries_max": ENTRIES}, {"bytes_max": 2**20}]),
)
def test_any_bit_that_is_flipped_in_the_window_names_its_row(
    seq: int, name: str, bit: int, bounds: dict[str, int]
) -> None:
    """The finding names the damaged row and no other."""
    damaged = entry(seq, **{name: lambda value: flipped(value, bit)})(whole())
    assert checked(damaged, **bounds).finding == f"ledger row {seq}: its contents do not give its hash"


@pytest.mark.parametrize("changed", [{}, {"hash": b"x" * 32}, {"worst_case_units": 1}, {"seq": 1}])
def test_an_empty_ledger_has_the_genesis_for_its_head(changed: dict[str, Any]) -> None:
    """Its worst case must be zero."""
    store = MemoryStore()
    with open_replica(store) as replica:
        register(replica)
    check = checked(head(**changed)(store.kept[1]))
    assert (check.finding is None, check.entries) == (changed == {}, 0)


def test_the_first_entry_continues_the_genesis() -> None:
    """A whole ledger under another registration is damaged."""
    moved = replace(whole(), record=replace(whole().record, genesis=b"x" * 32), journal=(), acted_at=())
    moved = head(data_version=0, journal_hash=b"x" * 32)(moved)
    assert checked(moved).finding == "ledger row 1: does not continue the row before"


@pytest.mark.parametrize("entries_max", range(1, ENTRIES))
def test_entries_before_the_window_are_not_checked(entries_max: int) -> None:
    """Except for the hash that the first checked entry continues."""
    before = ENTRIES - entries_max
    check = checked(entry(before, values=flipped)(whole()), entries_max=entries_max)
    assert (check.finding, check.entries) == (None, entries_max)
    found = f"ledger row {before + 1}: does not continue the row before"
    assert checked(entry(before, hash=flipped)(whole()), entries_max=entries_max).finding == found


def sizes() -> list[int]:
    """The sizes of the entries, newest first, as the store returns them."""
    return [size for _, size in snapshot(whole()).entry_sizes(before=2**62, limit=ENTRIES)]


def test_the_window_is_bounded_by_bytes() -> None:
    """The window holds as many entries as fit, and the newest one at any size."""
    for fitting in range(1, ENTRIES + 1):
        bytes_max = sum(sizes()[:fitting])
        check = checked(whole(), bytes_max=bytes_max)
        assert (check.finding, check.entries, check.bytes) == (None, fitting, bytes_max)
        assert checked(whole(), bytes_max=bytes_max + 1).entries == fitting
    assert checked(whole(), bytes_max=0).entries == 1
    assert checked(entry(6, values=flipped)(whole()), bytes_max=0).finding is not None
    assert checked(entry(5, values=flipped)(whole()), bytes_max=0).finding is None


class CountingTransaction(SparseTransaction):
    """Records how many entries each read asks for."""

    asked: list[int]

    def entries(self, *, after: int, limit: int | None = None) -> Iterator[LedgerEntry]:
        self.asked.append(limit or 0)
        return super().entries(after=after, limit=limit)


class BrokenTransaction(SparseTransaction):
    """A transaction that fails to read entries."""

    fault: Exception

    def entries(self, *, after: int, limit: int | None = None) -> Iterator[LedgerEntry]:
        raise self.fault


def counting(asked: list[int]) -> CountingTransaction:
    """A snapshot of the whole ledger that counts reads."""
    transaction = CountingTransaction(snapshot(whole())._store, 1, lock=False)
    transaction.asked = asked
    return transaction


def broken(fault: Exception) -> BrokenTransaction:
    """A snapshot of the whole ledger whose reads fail."""
    transaction = BrokenTransaction(snapshot(whole())._store, 1, lock=False)
    transaction.fault = fault
    return transaction


def test_pieces_are_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece exceeds the bound only if it has a single entry."""
    for fitting, expected in ((1, [1] * 6), (2, [2, 2, 2]), (4, [4, 2])):
        monkeypatch.setattr(start_check, "PIECE_BYTES", sum(sizes()[:fitting]))
        asked: list[int] = []
        check = StartCheck(whole().record)
        while check.step(counting(asked)):
            pass
        assert (check.finding, asked) == (None, expected)


def test_unreadable_rows_are_damage_and_an_unavailable_store_is_not() -> None:
    """The text of an exception may quote a row, and is not logged."""
    check = StartCheck(whole().record)
    assert check.step(broken(StoreUnavailable()))
    with pytest.raises(StoreUnavailable):
        check.step(broken(StoreUnavailable()))
    check = StartCheck(whole().record)
    assert check.step(broken(ValueError("ann is forty-four")))
    assert not check.step(broken(ValueError("ann is forty-four")))
    assert check.finding == "ledger row 1: cannot be read"
