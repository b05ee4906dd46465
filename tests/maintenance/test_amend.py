"""Erasures are completed in the ledger: entries no longer hold the individual; accounts and the chain are unchanged."""

from collections.abc import Iterator
from typing import Any

import pytest

from service import background
from service.ledger.model.errors import Unavailable
from service.ledger.model.journal import JournalAct
from service.ledger.model.rows import Head
from service.ledger.ports.store import Store, StoreUnavailable
from service.maintenance import amend as amend_module
from service.maintenance.amend import Amender, NoCheckpoint, amend_erased, stretches_left
from service.workflows.replica import Replica, ReplicaOptions
from service.writer.state import DatasetState
from service.writer.threads import WriterThread
from tests.factories import SeededEntropy, analyst, ask, open_replica, upload
from tests.waiting import until
from tests.workflows.surveys import entries_of, findings, on_both_stores, spent_of, surveyed, writer_of

HEAD = Head(seq=9, hash=b"", epoch=1, fence=1, data_version=0, slots=9, worst_case_units=0, checkpoint_seq=0)
ANN = 0
SUM: dict[str, Any] = {"select": [{"sum": {"column": "spend"}}], "noise": {"sigma": 500.0}, "reuse": False}


@pytest.fixture
def replica(store: Store) -> Iterator[Replica]:
    """A dataset of Ann, Bob and Eve with five queries, and one more after Ann's erasure."""
    with surveyed(store, [("ann", "NO", 44, 123.45), ("bob", "SE", 30, 20.5), ("eve", "NO", 50, 1)]) as opened:
        who = analyst(opened)
        for number in range(5):
            ask(opened, who, f"key-{number}", **SUM)
        opened.curators.erase_individual("survey", "ann")
        ask(opened, who, "later", **SUM)
        yield opened


def is_amended(store: Store, slot: int = ANN) -> bool:
    """Tell whether no entry holds the individual any more."""
    return all(entry.quantities().own(slot, entry.law).outcome == "untouched" for entry in entries_of(store))


@on_both_stores
def test_no_entry_holds_the_erased_and_all_accounts_stay(replica: Replica, store: Store) -> None:
    """No other slot changes, and the ledger verifies before, between and after the amendments."""
    before = spent_of(replica)
    assert findings(store) == []
    assert amend_erased(writer_of(replica)) == 1
    assert spent_of(replica) == before
    assert before[ANN] > 0
    assert is_amended(store)
    assert {entry.quantities().own(1, entry.law).outcome for entry in entries_of(store)} == {"charged"}
    with store.transaction(1, lock=False) as transaction:
        assert transaction.account_of(ANN).spent == before[ANN]
    assert findings(store) == []


def test_a_finished_erasure_leaves_no_work(replica: Replica) -> None:
    """A later erasure of the same slot, after the individual's return, begins anew."""
    writer = writer_of(replica)
    amend_erased(writer)
    assert amend_erased(writer) == 0
    upload(replica, "people", [("ann", "NO", 44, 99.5)])
    ask(replica, analyst(replica, "bea"), "again", **SUM)
    replica.curators.erase_individual("survey", "ann")
    assert amend_erased(writer) == 1


def test_a_start_after_the_amendments_loads_every_charge(replica: Replica, store: Store) -> None:
    """A checkpoint is written before an entry is amended, so that a killed process loses no charge."""
    before = spent_of(replica)
    amend_erased(writer_of(replica))
    with open_replica(store, SeededEntropy(7)) as again:
        assert spent_of(again) == before


def test_a_process_that_ends_between_stretches_loses_no_amendment(
    replica: Replica, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next process goes on where the journal ends."""
    monkeypatch.setattr(amend_module, "STRETCH_ENTRIES", 2)

    def are_two_done() -> bool:
        with store.transaction(1, lock=False) as transaction:
            return len(transaction.acts_of("amend")) == 2

    assert amend_erased(writer_of(replica), is_over=are_two_done) == 2
    assert findings(store) == []
    replica.close()
    with open_replica(store, SeededEntropy(7)) as again:
        assert amend_erased(writer_of(again)) == 1
    assert findings(store) == []


def test_a_range_amended_by_another_process_is_skipped(
    replica: Replica, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two replicas that start together find the same erasure; the second has its turn after the first is done."""
    writer, found = writer_of(replica), amend_module._next(writer_of(replica))
    assert amend_erased(writer) == 1
    looks = iter([found])
    monkeypatch.setattr(
        amend_module, "_next", lambda writer, look=amend_module._next: next(looks, None) or look(writer)
    )
    assert amend_erased(writer) == 0
    assert findings(store) == []
    with store.transaction(1, lock=False) as transaction:
        assert len(transaction.acts_of("amend")) == 1


def test_a_replica_that_is_behind_takes_totals_from_the_pages(replica: Replica, store: Store) -> None:
    """It must not replay amended entries, which no longer hold the erased individual's charges."""
    with open_replica(store, SeededEntropy(8)) as behind:
        behind.preload()
        ask(replica, analyst(replica, "bea"), "ahead", **SUM)
        replica.curators.erase_individual("survey", "bob")
        expected = spent_of(replica)
        amend_erased(writer_of(replica))
        assert spent_of(behind) == expected


def test_the_values_of_an_erased_individual_are_in_no_row(replica: Replica, store: Store) -> None:
    """Neither its squared norms nor its charges are stored; those of the others still are."""
    entries = entries_of(store)
    norms = {int(entry.quantities().amounts[0]) for entry in entries[:5]}
    charges = {int(entry.decode()[1][0]) for entry in entries[:5]}
    amend_erased(writer_of(replica))
    for entry in entries_of(store):
        content = b"".join(piece.content for piece in entry.pieces)
        assert not any(number.to_bytes(8, "big") in content for number in norms | charges)
        assert int(entry.quantities().amounts[0]).to_bytes(8, "big") in content


def test_a_replica_amends_on_a_thread_of_its_own(replica: Replica, store: Store) -> None:
    """Erasures found at the start, and later ones."""
    replica.close()
    with open_replica(store, options=ReplicaOptions(amender=Amender())) as amending:
        amending.preload()
        until(lambda: is_amended(store))
        amending.curators.erase_individual("survey", "bob")
        until(lambda: is_amended(store, slot=1))


@pytest.fixture
def amender(monkeypatch: pytest.MonkeyPatch) -> Amender:
    """An amender that the test steps, without delays."""
    monkeypatch.setattr(background, "RETRY_S", 0.0)
    return Amender()


def test_a_fault_puts_a_dataset_at_the_end_of_the_queue(
    replica: Replica, store: Store, amender: Amender, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A lasting fault is logged once, and the job is retried."""
    monkeypatch.setattr(amend_module, "SILENT_RETRIES", 3)
    faults: list[Exception] = [NoCheckpoint(), StoreUnavailable(), Unavailable(), Unavailable()]

    def failing(writer: WriterThread, is_over: Any) -> int:
        if faults:
            raise faults.pop()
        return amend_erased(writer, is_over=is_over)

    monkeypatch.setattr(amend_module, "amend_erased", failing)
    amender.ask(replica.registry.record("survey"), writer_of(replica))
    for expected in (0, 0, 1, 1):
        assert amender.step()
        assert len([each for each in caplog.messages if "are left to be amended" in each]) == expected
        assert not is_amended(store)
    assert amender.step()
    assert is_amended(store)


def test_an_error_is_an_incident_and_affects_that_dataset_alone(
    replica: Replica, store: Store, amender: Amender, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The next dataset is amended."""
    with monkeypatch.context() as patched:
        patched.setattr(amend_module, "amend_erased", lambda writer, is_over: 1 // 0)
        amender.ask(replica.registry.record("survey"), writer_of(replica))
        assert amender.step()
    assert "erasures of dataset 1 error=builtins.ZeroDivisionError" in caplog.text
    assert not is_amended(store)
    amender.ask(replica.registry.record("survey"), writer_of(replica))
    assert amender.step()
    assert is_amended(store)


def test_a_released_dataset_is_left_to_its_new_owner(replica: Replica, store: Store, amender: Amender) -> None:
    """The job is not queued again."""
    writer = writer_of(replica)
    amender.ask(replica.registry.record("survey"), writer)
    replica.registry.let_go([1])
    assert amender.step()
    assert not is_amended(store)
    amender.close()
    assert not amender.step()


def test_closing_ends_the_wait_for_a_checkpoint(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """A range that has not begun is left for the next start."""
    writer = writer_of(replica)
    looks = iter([False, True])
    monkeypatch.setattr(writer, "checkpoint", lambda: None)
    with pytest.raises(NoCheckpoint):
        amend_erased(writer, is_over=lambda: next(looks))


def test_a_rewritten_entry_is_never_replayed(replica: Replica, store: Store) -> None:
    """It is not replayed even if the head claims no checkpoint: the erased individual would get a new budget."""
    amend_erased(writer_of(replica))
    entry = next(iter(entries_of(store)))
    state = DatasetState(replica.registry.record("survey"))
    state.seq = 0
    for rewritten in (entry, entry.pruned()):
        with pytest.raises(RuntimeError, match="rewritten"):
            state.apply(rewritten)


def test_stretches_follow_from_sequences_alone() -> None:
    """The earliest erasure comes first; pruned entries are not amended."""

    def act(number: int, at_seq: int, kind: str, **detail: int) -> JournalAct:
        return JournalAct(number=number, at_seq=at_seq, act=kind, detail=detail, previous_hash=b"", hash=b"")

    acts = [act(1, 5, "erase", slot=7), act(2, 3000, "erase", slot=8), act(3, 3000, "amend", erasure=2, to=1024)]
    assert [(each.slot, each.after, each.to) for each in stretches_left(HEAD, acts)] == [(7, 0, 5), (8, 1024, 2048)]
    done = [*acts, act(4, 3000, "amend", erasure=1, to=5), act(5, 3000, "amend", erasure=2, to=3000)]
    assert list(stretches_left(HEAD, done)) == []
