"""The check of a ledger's end against its head, and start checks in the background, which close a damaged dataset."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service import background
from service.ledger.model.errors import LedgerDamaged
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.rows import Asked
from service.ledger.model.views import Principal
from service.ledger.ports.store import StoreUnavailable
from service.maintenance import start_check
from service.maintenance.start_check import StartCheck, StartChecks
from service.store.postgres.store import PostgresStore
from service.workflows.replica import Replica, ReplicaOptions
from tests.conftest import PostgresServer
from tests.factories import TWO_PEOPLE, analyst, ask, open_replica, register, upload
from tests.logged import lines_of
from tests.maintenance.verify.histories import history
from tests.memory.store import MemoryStore
from tests.memory.tables import Dataset
from tests.memory.transaction import MemoryTransaction
from tests.waiting import until
from tests.workflows.damages import damage, filled
from tests.workflows.surveys import surveyed

ENTRIES = 6
Change = Callable[[Dataset], Dataset]


@cache
def whole() -> Dataset:
    """A ledger of six entries and a journal of two acts, written by a replica."""
    store = MemoryStore()
    with surveyed(store, TWO_PEOPLE) as replica:
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


STORED = {
    """UPDATE ledger SET "values" = set_byte("values", 7, get_byte("values", 7) # 1) WHERE seq = 2""": (
        "ledger row 2: its contents do not give its hash"
    ),
    "UPDATE ledger SET piece = set_byte(piece, 20, get_byte(piece, 20) # 1) WHERE seq = 1": (
        "ledger row 1: its contents do not give its hash"
    ),
    "UPDATE ledger SET sigma = 'NaN' WHERE seq = 3": "ledger row 3: its contents do not give its hash",
    "UPDATE ledger SET charged_count = charged_count + 1 WHERE seq = 1": (
        "ledger row 1: its contents do not give its hash"
    ),
    "DELETE FROM ledger WHERE seq = 2": "ledger row 2: is missing",
    "DELETE FROM ledger WHERE seq = 3": "heads row 1: says seq 3, the ledger ends at 2",
    "UPDATE heads SET worst_case_units = 0": "heads row 1: says worst_case_units 0, the ledger gives",
    "UPDATE journal SET at_seq = 0 WHERE number = 4": "journal row 4: its contents do not give its hash",
}
"""Damages of stored rows, and what the check says: some that memory cannot hold, and some of each table."""


def test_damages_of_stored_rows_are_named(postgres_server: PostgresServer, migrated_template: str) -> None:
    """With triggers disabled by the owner; every entry of the whole ledger is checked."""

    def found(store: PostgresStore) -> tuple[int, str | None]:
        (record,) = store.datasets()
        check, is_more = StartCheck(record), True
        while is_more:
            with store.transaction(record.id, lock=False) as transaction:
                is_more = check.step(transaction)
        return check.entries, check.finding

    def fill(store: PostgresStore) -> None:
        with open_replica(store) as replica:
            history(replica)

    with filled(postgres_server, migrated_template, fill) as ledger:
        with ledger.opened() as (store, _):
            assert found(store) == (3, None)
        for statement, expected in STORED.items():
            with ledger.opened() as (store, database_url):
                damage(database_url, statement)
                _, finding = found(store)
            assert str(finding).startswith(expected), statement


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


NAMES = ("one", "two")


class FaultyStore(MemoryStore):
    """Raises the errors in its list when a transaction is opened, the last one first."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[Exception] = []
        self.begun = 0

    @contextmanager
    def transaction(self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()) -> Iterator[MemoryTransaction]:
        self.begun += 1
        if self.faults:
            raise self.faults.pop()
        with super().transaction(dataset_id, lock=lock, asked=asked) as transaction:
            yield transaction


@pytest.fixture
def store() -> FaultyStore:
    """Two datasets of one individual, each with two entries; the first ledger is damaged."""
    made = FaultyStore()
    with open_replica(made) as replica:
        for name in NAMES:
            register(replica, name)
            upload(replica, "people", [("ann", "NO", 44, 10)], name)
            who = analyst(replica)
            for key in ("a", "b"):
                ask(replica, who, key, name, reuse=False)
    kept = made.kept[1]
    damaged = replace(kept.entries[0], values=b"\1" * 8)
    made.kept[1] = replace(kept, entries=(damaged, *kept.entries[1:]))
    return made


@pytest.fixture
def replica(store: FaultyStore) -> Iterator[Replica]:
    """A replica of another process."""
    with open_replica(store) as opened:
        yield opened


@pytest.fixture
def checks(replica: Replica, store: FaultyStore, monkeypatch: pytest.MonkeyPatch) -> StartChecks:
    """The checks of that replica, stepped by the test, without delays."""
    monkeypatch.setattr(background, "RETRY_S", 0.0)
    monkeypatch.setattr(start_check, "LOOK_EVERY_S", 0.0)
    checks = StartChecks(store)
    monkeypatch.setattr(replica.registry, "_background", [checks])  # without its thread
    return checks


def opened(replica: Replica, name: str) -> None:
    """Open a dataset's writer and load the dataset."""
    replica.registry.writer(replica.registry.record(name)).catch_up()


def code(replica: Replica, name: str) -> str | None:
    """The code of the reason why a dataset is closed, if it is."""
    return replica.registry.guard(replica.registry.record(name)).code


def test_a_damaged_dataset_is_closed_and_the_other_is_not(
    replica: Replica, checks: StartChecks, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names the row once; readiness, the metric and the guard report it from then on."""
    for name in NAMES:
        opened(replica, name)
    with caplog.at_level(logging.ERROR):
        for _ in NAMES:
            assert checks.step()
    assert [code(replica, name) for name in NAMES] == ["ledger-damaged", None]
    (line,) = lines_of(caplog, "sparing.incidents")
    assert line.startswith("incident start check of dataset 1: ledger row 1: its contents do not give its hash error=")
    assert (replica.fenced(), replica.readiness.report().codes) == (1, [])
    assert replica.readiness.report().counts() == {"ledger-damaged": 1}
    assert replica.readiness.check_witnesses() == ["ledger-damaged"]
    who = analyst(replica)
    ask(replica, who, "c", "two")
    with pytest.raises(LedgerDamaged):
        ask(replica, who, "c", "one")


def everything(replica: Replica, who: Principal) -> None:
    """Check that every request to the first dataset is refused."""
    refused: list[Callable[[], object]] = [
        lambda: ask(replica, who, "new", "one", reuse=False),
        lambda: ask(replica, who, "a", "one"),
        lambda: replica.curators.open_epoch("one"),
        lambda: upload(replica, "people", [("bob", "NO", 4, 1)], "one"),
        lambda: replica.curators.erase_individual("one", "ann"),
        lambda: replica.curators.budgets("one", cursor=None, limit=5),
        lambda: replica.auditors.ledger("one", cursor=None, limit=5),
    ]
    for each in refused:
        with pytest.raises(LedgerDamaged):
            each()


def test_every_operation_on_a_damaged_dataset_is_refused(
    replica: Replica, checks: StartChecks, store: FaultyStore
) -> None:
    """A query is refused even if its head was confirmed recorded, so that it needs no transaction before its commit."""
    who = analyst(replica)
    for key in ("c", "d"):
        ask(replica, who, key, "one", reuse=False)
    before = store.kept[1]
    assert replica.registry.guard(replica.registry.record("one")).is_confirmed(before.head)
    assert checks.step()
    everything(replica, who)
    assert store.kept[1] is before


def test_an_unavailable_store_is_tried_again(
    replica: Replica, checks: StartChecks, store: FaultyStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Other datasets have their turn meanwhile, and a lasting fault is logged once."""
    for name in NAMES:
        opened(replica, name)
    with caplog.at_level(logging.ERROR):
        store.faults = [StoreUnavailable()]
        for _ in range(2):
            assert checks.step()
        assert [code(replica, name) for name in NAMES] == [None, None]
        store.faults = [StoreUnavailable() for _ in range(start_check.SILENT_RETRIES)]
        for _ in range(start_check.SILENT_RETRIES - 2):
            assert checks.step()
        assert lines_of(caplog, "sparing.incidents") == []
        for _ in range(3):
            assert checks.step()
    assert [code(replica, name) for name in NAMES] == ["ledger-damaged", None]
    assert ["cannot be read; retrying" in each for each in lines_of(caplog, "sparing.incidents")] == [True, False]


def test_an_error_affects_that_check_alone(
    replica: Replica, checks: StartChecks, store: FaultyStore, caplog: pytest.LogCaptureFixture
) -> None:
    """It is an incident without the error's text, and closes no dataset."""
    for name in NAMES[::-1]:
        opened(replica, name)
    store.faults = [RuntimeError("ann is forty-four")]
    with caplog.at_level(logging.ERROR):
        for _ in NAMES:
            assert checks.step()
    assert [code(replica, name) for name in NAMES] == ["ledger-damaged", None]
    assert "start check of dataset 2 error=builtins.RuntimeError" in lines_of(caplog, "sparing.incidents")[0]
    assert "forty-four" not in caplog.text


def test_a_check_waits_a_bounded_time_for_the_load(replica: Replica, checks: StartChecks) -> None:
    """Loading for waiting clients comes first; a dataset that is never loaded is checked all the same."""
    record, guard = replica.registry.record("one"), replica.registry.guard(replica.registry.record("one"))
    loading = iter([False, False, True, True])
    checks.ask(record, guard, is_loaded=lambda: next(loading))
    assert checks.step()
    assert (list(loading), guard.code) == ([True], "ledger-damaged")
    never = iter([False] * (start_check.LOOKS + 1))
    checks.ask(record, guard, is_loaded=lambda: next(never))
    assert checks.step()
    assert list(never) == [False]


def test_closing_ends_the_checks(replica: Replica, checks: StartChecks, store: FaultyStore) -> None:
    """Neither queued checks nor one that waits for a load are carried out."""
    record, guard = replica.registry.record("one"), replica.registry.guard(replica.registry.record("one"))

    def close_meanwhile() -> bool:
        checks.close()
        return False

    for _ in range(2):
        checks.ask(record, guard, is_loaded=close_meanwhile)
    begun = store.begun
    assert checks.step()
    assert not checks.step()
    assert (store.begun, guard.code) == (begun, None)


def test_a_replica_checks_opened_datasets_on_its_own_thread(replica: Replica, store: FaultyStore) -> None:
    """With the checks in its background."""
    replica.close()
    with open_replica(store, options=ReplicaOptions(background=(StartChecks(store),))) as checking:
        checking.preload()
        until(lambda: code(checking, "one") == "ledger-damaged")
        assert code(checking, "two") is None
