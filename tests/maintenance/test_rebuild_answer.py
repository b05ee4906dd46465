"""A deleted answer is restored from its ledger entry under its own key, byte for byte and without a charge."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from service.ledger.model.errors import InvalidRequest, KeyConflict, LedgerDamaged, NotFound, Unavailable
from service.ledger.model.rows import AnswerRecord
from service.ledger.model.views import Principal
from service.ledger.ports.store import CommitUnclear
from service.maintenance.rebuild_answer import rebuild
from service.maintenance.reconcile import burn
from service.maintenance.verify import answers
from service.query.language import Query
from service.query.parse import parse_query
from service.query.problems import QueryProblem
from service.workflows.replica import Replica
from service.writer.state import DatasetState
from tests.factories import CLOCK, ask, upload
from tests.memory.store import MemoryStore
from tests.memory.tables import Dataset
from tests.workflows.surveys import findings, surveyed

QUERIES: dict[str, dict[str, Any]] = {
    "a count": {},
    "an empty count": {"where": {"ge": [{"col": "age"}, 120]}},
    "a histogram": {"from": "visits", "select": [{"histogram": {"column": "item"}}], "per_individual": {"l2_clip": 2}},
    "sums by group": {
        "select": [{"sum": {"column": "spend"}}, {"count": {}}],
        "group_by": ["country"],
        "noise": {"sigma": [1500, 3]},
    },
    "fine noise": {"select": [{"sum": {"column": "spend"}}], "noise": {"sigma": 0.37}},
}


@pytest.fixture
def replica(store: MemoryStore) -> Iterator[Replica]:
    """A replica with three individuals and their visits."""
    with surveyed(store, [("ann", "NO", 44, 10), ("bob", "SE", 30, 20.5), ("eve", "NO", 50, 1)]) as opened:
        upload(opened, "visits", [("ann", 3), ("ann", 7), ("eve", 3)])
        yield opened


def kept(store: MemoryStore) -> Dataset:
    """The stored data of the one dataset."""
    (found,) = store.kept.values()
    return found


def delete(store: MemoryStore, who: Principal, key: str) -> AnswerRecord:
    """Delete an answer with the owner's rights; returns the deleted row."""
    return kept(store).answers.pop((who.id, key))


@pytest.mark.parametrize("query", QUERIES)
def test_the_deleted_row_is_restored_exactly(store: MemoryStore, replica: Replica, ana: Principal, query: str) -> None:
    """The key replays the same bytes from a replica that was running, no entry is added, and the ledger verifies."""
    ask(replica, ana, "before", noise={"sigma": 40.0})
    answered = ask(replica, ana, "k", **QUERIES[query])
    row = delete(store, ana, "k")
    assert findings(store) == ["ledger row 2: the answer to it is missing from answers"]

    assert rebuild(store, "survey", seq=2, key="k") == row
    assert kept(store).answers[ana.id, "k"] == row
    assert findings(store) == []
    again = ask(replica, ana, "k", **QUERIES[query])
    assert (again.body, again.sequence, store.head(1).seq) == (answered.body, 2, 2)


def test_a_row_that_was_not_deleted_stays(store: MemoryStore, replica: Replica, ana: Principal) -> None:
    """Repeating the command does nothing and returns None."""
    ask(replica, ana, "k")
    delete(store, ana, "k")
    assert rebuild(store, "survey", seq=1, key="k") is not None
    rows = dict(kept(store).answers)
    assert rebuild(store, "survey", seq=1, key="k") is None
    assert kept(store).answers == rows


def test_only_the_original_key_gets_the_answer(store: MemoryStore, replica: Replica, ana: Principal) -> None:
    """Wrong keys, the analyst's other keys and malformed keys are refused, and nothing is written."""
    ask(replica, ana, "k")
    ask(replica, ana, "other", reuse=False)
    delete(store, ana, "k")
    delete(store, ana, "other")
    for wrong in ("K", "k ", "", "other", "\udcff"):
        with pytest.raises(InvalidRequest, match="ledger row 1 was not asked under this key"):
            rebuild(store, "survey", seq=1, key=wrong)
    assert kept(store).answers == {}


def test_the_value_of_reuse_is_part_of_the_request(store: MemoryStore, replica: Replica, ana: Principal) -> None:
    """With the other value of `reuse` the key replays to that request, without a new charge."""
    answered = ask(replica, ana, "k", reuse=False)
    row = delete(store, ana, "k")
    assert rebuild(store, "survey", seq=1, key="k", reuse=False) == row
    delete(store, ana, "k")
    rebuild(store, "survey", seq=1, key="k")
    with pytest.raises(KeyConflict):
        ask(replica, ana, "k", reuse=False)
    assert ask(replica, ana, "k").body == answered.body
    assert findings(store) == []


def test_a_key_that_was_used_again_keeps_its_new_answer(store: MemoryStore, replica: Replica, ana: Principal) -> None:
    """The query was charged again meanwhile: the refusal names the entry that the key shows."""
    ask(replica, ana, "k", reuse=False)
    delete(store, ana, "k")
    ask(replica, ana, "k", reuse=False)
    new = kept(store).answers[ana.id, "k"]
    with pytest.raises(InvalidRequest, match=f"answers row 'k' of {ana.id} is taken: it shows ledger row 2"):
        rebuild(store, "survey", seq=1, key="k", reuse=False)
    assert kept(store).answers == {(ana.id, "k"): new}


def test_an_answer_moved_to_another_principal_is_not_rebuilt(
    store: MemoryStore, replica: Replica, ana: Principal
) -> None:
    """Another principal's row holds it: the refusal names that row, and later rows are not read."""
    ask(replica, ana, "k")
    ask(replica, ana, "later", reuse=False)
    bea = UUID(int=9)
    kept(store).answers[bea, "m"] = replace(delete(store, ana, "k"), principal_id=bea, key="m")
    with pytest.raises(InvalidRequest, match=f"moved, not deleted: answers row 'm' of {bea} holds it"):
        rebuild(store, "survey", seq=1, key="k")
    assert (ana.id, "k") not in kept(store).answers


def test_an_answer_that_reuses_the_entry_does_not_block_rebuilding(
    store: MemoryStore, replica: Replica, ana: Principal
) -> None:
    """The reusing answer says that it was reused, so it is not taken for the original."""
    ask(replica, ana, "k")
    ask(replica, ana, "k2")
    row = delete(store, ana, "k")
    assert rebuild(store, "survey", seq=1, key="k") == row


def test_a_damaged_entry_gives_no_answer(store: MemoryStore, replica: Replica, ana: Principal) -> None:
    """Edited values; a consistent new entry that neither the next entry nor the head continues."""
    ask(replica, ana, "k")
    delete(store, ana, "k")
    (entry,) = kept(store).entries
    other = np.array([7], dtype=">i8").tobytes()
    kept(store).entries = (replace(entry, values=other),)
    with pytest.raises(LedgerDamaged, match="ledger row 1: its contents do not give its hash"):
        rebuild(store, "survey", seq=1, key="k")
    kept(store).entries = (replace(entry, values=other).sealed(),)
    with pytest.raises(LedgerDamaged, match="ledger row 1: what comes after it does not continue it"):
        rebuild(store, "survey", seq=1, key="k")
    kept(store).entries = (entry,)
    ask(replica, ana, "l", reuse=False)
    kept(store).entries = (replace(entry, values=other).sealed(), kept(store).entries[1])
    with pytest.raises(LedgerDamaged, match="ledger row 1: what comes after it does not continue it"):
        rebuild(store, "survey", seq=1, key="k")
    assert (ana.id, "k") not in kept(store).answers


def test_rows_without_an_answer_to_rebuild_are_named(store: MemoryStore, replica: Replica, ana: Principal) -> None:
    """A burn, a missing row and a missing dataset."""
    ask(replica, ana, "k")
    with store.transaction(1, lock=True) as transaction:
        state = DatasetState(kept(store).record)
        state.catch_up(transaction)
        burn(transaction, state, units=1, settled=(1, 1, 1), why="test", at=CLOCK)
        transaction.commit()
    for seq, said in ((2, "is a burn, which has no answer"), (3, "there is no ledger row 3")):
        with pytest.raises(InvalidRequest, match=said):
            rebuild(store, "survey", seq=seq, key="k")
    with pytest.raises(NotFound):
        rebuild(store, "unknown", seq=1, key="k")


def refuse(canonical: bytes) -> Query:
    """A version that does not read a query any more."""
    raise QueryProblem.of("version", f"{len(canonical)} bytes of another language")


def with_groups(canonical: bytes) -> Query:
    """A version that reads groups out of every query."""
    return parse_query(canonical.replace(b'"group_by":[]', b'"group_by":["country"]'))


@pytest.mark.parametrize("reading", [refuse, with_groups])
def test_a_query_of_an_unreadable_version_is_refused(
    store: MemoryStore,
    replica: Replica,
    ana: Principal,
    monkeypatch: pytest.MonkeyPatch,
    reading: Callable[[bytes], Query],
) -> None:
    """Only the version that accepted the query knows its labels."""
    ask(replica, ana, "k")
    delete(store, ana, "k")
    monkeypatch.setattr(answers, "parse_query", reading)
    with pytest.raises(InvalidRequest, match="cannot read the query of ledger row 1"):
        rebuild(store, "survey", seq=1, key="k")


def test_an_unclear_commit_is_unavailable_and_may_be_repeated(
    store: MemoryStore, replica: Replica, ana: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeating is right whether or not the row was committed."""
    ask(replica, ana, "k")
    row = delete(store, ana, "k")

    def keep_and_fall_silent(dataset_id: int, draft: Dataset) -> None:
        MemoryStore.keep(store, dataset_id, draft)
        raise CommitUnclear

    monkeypatch.setattr(store, "keep", keep_and_fall_silent)
    with pytest.raises(Unavailable, match="run the command again"):
        rebuild(store, "survey", seq=1, key="k")
    monkeypatch.undo()
    assert rebuild(store, "survey", seq=1, key="k") is None
    assert kept(store).answers == {(ana.id, "k"): row}
