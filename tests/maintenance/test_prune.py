"""Pruning drops quantities behind a verified sequence: accounts, answers, the chain and verification stay."""

from datetime import timedelta
from typing import Any

import pytest

from service.ledger.model.errors import InvalidRequest, NotFound, Unavailable
from service.ledger.ports.store import Store
from service.maintenance import amend as amend_module
from service.maintenance import prune as prune_module
from service.maintenance.amend import amend_erased
from service.maintenance.prune import Damaged, Pruned, prune
from service.workflows.replica import Replica
from tests.factories import CLOCK, SeededEntropy, analyst, ask, individual_named, open_replica, upload, witness_of
from tests.workflows.surveys import entries_of, findings, on_both_stores, spent_of, surveyed, writer_of

SUM: dict[str, Any] = {"select": [{"sum": {"column": "spend"}}], "noise": {"sigma": 500.0}, "reuse": False}
ENTRIES = 6


@pytest.fixture
def store(store: Store) -> Store:
    """A ledger of three individuals and six entries; its replica is closed."""
    with surveyed(store, [("ann", "NO", 44, 123.45), ("bob", "SE", 30, 20.5), ("eve", "NO", 50, 1)]) as replica:
        who = analyst(replica)
        for number in range(ENTRIES):
            ask(replica, who, f"key-{number}", **SUM)
    return store


def pruned(store: Store, before: Any) -> Pruned:
    """Prune the dataset."""
    return prune(store, witness_of(store), "survey", before=before, entropy=SeededEntropy(3))


def kept(store: Store) -> list[int]:
    """The sequences of entries that still hold quantities."""
    return [entry.seq for entry in entries_of(store) if not entry.is_pruned]


@on_both_stores
def test_pruned_entries_lose_their_quantities_and_all_else_stays(store: Store) -> None:
    """Accounts after a restart, answers and receipts of later entries stay, and the ledger can be appended to."""
    with open_replica(store, SeededEntropy(7)) as replica:
        before = spent_of(replica)
    assert pruned(store, 4) == Pruned(seq=3, seq_before=0)
    assert findings(store) == []
    assert kept(store) == [4, 5, 6]
    with open_replica(store, SeededEntropy(8)) as replica:
        assert spent_of(replica) == before
        bob = individual_named(replica, "bob")
        page = replica.individuals.receipts(bob, cursor=None, limit=10)
        outcomes = [row.outcome for row in page.items]
        assert outcomes == 3 * ["charged"] + 3 * ["no_longer_kept"]
        assert [row.charged_rho is None for row in page.items] == [False] * 3 + [True] * 3
        ask(replica, analyst(replica, "bea"), "later", **SUM)
    assert findings(store) == []


@on_both_stores
def test_a_later_pruning_goes_on_from_the_totals_of_the_earlier_one(store: Store) -> None:
    """Repeating a pruning drops nothing more."""
    pruned(store, 3)
    assert pruned(store, 2) == Pruned(seq=2, seq_before=2)
    assert pruned(store, 6) == Pruned(seq=5, seq_before=2)
    assert findings(store) == []
    assert kept(store) == [6]


def test_a_date_stands_for_the_entries_asked_before_it(store: Store) -> None:
    """All queries have the same time here."""
    with pytest.raises(InvalidRequest):
        pruned(store, CLOCK - timedelta(seconds=1))
    assert pruned(store, CLOCK + timedelta(seconds=1)).seq == ENTRIES
    assert kept(store) == []
    assert findings(store) == []


def test_a_damaged_ledger_is_not_pruned(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data that verification needs must not be dropped."""
    monkeypatch.setattr("service.maintenance.verify.ledger.chain_hash", lambda _: b"")
    with pytest.raises(Damaged) as refusal:
        pruned(store, 4)
    assert refusal.value.report.findings
    assert kept(store) == list(range(1, ENTRIES + 1))


def test_an_unknown_dataset_is_not_found(store: Store) -> None:
    """NotFound is raised."""
    with pytest.raises(NotFound):
        prune(store, witness_of(store), "other", before=2, entropy=SeededEntropy())


def test_an_interrupted_pruning_is_completed_by_the_next(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger counts as pruned before its bytes are dropped."""
    monkeypatch.setattr(prune_module, "STRETCH_ENTRIES", 2)
    drop, ends = prune_module._drop, iter([False, True])

    def ending(guard: Any, **stretch: int) -> None:
        if next(ends):
            raise SystemExit
        drop(guard, **stretch)

    monkeypatch.setattr(prune_module, "_drop", ending)
    with pytest.raises(SystemExit):
        pruned(store, 6)
    assert kept(store) == [6]
    assert findings(store) == []
    monkeypatch.setattr(prune_module, "_drop", drop)
    assert pruned(store, 6) == Pruned(seq=5, seq_before=5)
    assert findings(store) == []


def test_a_concurrent_pruning_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command with the longer verification, of two at once, has to be repeated."""
    verified = prune_module._verified

    def overtaken(*given: Any) -> Any:
        monkeypatch.setattr(prune_module, "_verified", verified)
        totals = verified(*given)
        assert pruned(store, 6).seq == 5
        return totals

    monkeypatch.setattr(prune_module, "_verified", overtaken)
    with pytest.raises(Unavailable):
        pruned(store, 4)
    assert kept(store) == [6]
    assert findings(store) == []


def test_a_running_replica_goes_on_after_a_pruning(store: Store) -> None:
    """A replica answers on, also if its memory is at an earlier entry."""
    with open_replica(store, SeededEntropy(7)) as behind:
        behind.preload()
        with open_replica(store, SeededEntropy(8)) as ahead:
            ask(ahead, analyst(ahead, "bea"), "ahead", **SUM)
            expected = spent_of(ahead)
        pruned(store, 8)
        assert spent_of(behind) == expected
        ask(behind, analyst(behind, "cid"), "behind", **SUM)
    assert findings(store) == []


@pytest.mark.parametrize("first", ["erase", "prune"])
def test_erasure_and_pruning_go_together(store: Store, first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both work in either order, repeatedly, with amendments before and after the pruned sequence."""
    monkeypatch.setattr(amend_module, "STRETCH_ENTRIES", 4)

    def erase(replica: Replica, key: str) -> None:
        replica.curators.erase_individual("survey", key)
        amend_erased(writer_of(replica))

    with open_replica(store, SeededEntropy(7)) as replica:
        if first == "erase":
            erase(replica, "ann")
        before = spent_of(replica)
    pruned(store, 4)
    assert findings(store) == []
    with open_replica(store, SeededEntropy(8)) as replica:
        erase(replica, "bob")
        assert spent_of(replica) == before
        upload(replica, "people", [("ann" if first == "erase" else "bob", "NO", 44, 99.5)])
        ask(replica, analyst(replica, "bea"), "again", **SUM)
        again = spent_of(replica)
    assert findings(store) == []
    assert pruned(store, 6) == Pruned(seq=5, seq_before=3)
    assert findings(store) == []
    with open_replica(store, SeededEntropy(9)) as replica:
        assert spent_of(replica) == again
        erase(replica, "eve")
    assert findings(store) == []
