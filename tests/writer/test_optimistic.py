"""Optimistic commits: when a batch uses one, and that a refused one leaves nothing behind."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.ledger.model.errors import KeyConflict, Unavailable
from service.ledger.model.rows import Asked, Head
from service.ledger.ports.store import CommitRejected, CommitUnclear, HeadMoved
from service.query.keys import Key
from service.workflows.individual import pausing
from service.workflows.replica import Replica
from service.writer.committer import CAUTIOUS_BATCHES, SEEN_MAX, OptimisticCommit
from tests.contracts.stores import totals
from tests.factories import THREE_PEOPLE, analyst, ask, open_replica, register, upload, values
from tests.memory.shards import only_shard
from tests.memory.store import MemoryConditionalAppend, MemoryStore
from tests.memory.transaction import MemoryTransaction
from tests.workflows.surveys import entries_of, findings, surveyed, writer_of


class CommitCountingStore(MemoryStore):
    """A store that counts locked and optimistic commits; `faults` decides the outcome of the next optimistic ones."""

    def __init__(self) -> None:
        super().__init__()
        self.locked = self.proposed = 0
        self.faults: list[Exception] = []

    @contextmanager
    def transaction(self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()) -> Iterator[MemoryTransaction]:
        self.locked += lock
        with super().transaction(dataset_id, lock=lock, asked=asked) as transaction:
            yield transaction

    @contextmanager
    def conditional_append(
        self, dataset_id: int, head: Head, *, asked: Sequence[Asked]
    ) -> Iterator[MemoryConditionalAppend]:
        self.proposed += 1
        self.locked -= not self.faults  # the twin's own method
        with super().conditional_append(dataset_id, head, asked=asked) as conditional_append:
            if self.faults:
                _break(conditional_append, self.faults.pop(0))
            yield conditional_append

    def ways(self) -> tuple[int, int]:
        """(locked, optimistic) commits since the last call."""
        found, self.locked, self.proposed = (self.locked, self.proposed), 0, 0
        return found


def _break(conditional_append: MemoryConditionalAppend, fault: Exception) -> None:
    def broken() -> None:
        raise fault

    conditional_append.commit = broken  # type: ignore[method-assign]


@pytest.fixture
def store() -> CommitCountingStore:
    """A counting store."""
    return CommitCountingStore()


@pytest.fixture
def replica(store: CommitCountingStore) -> Iterator[Replica]:
    """Three registered people, and a first query answered."""
    with surveyed(store) as opened:
        ask(opened, analyst(opened), "first", reuse=False)
        store.ways()
        yield opened


def test_a_single_replica_uses_one_round_trip_a_batch(replica: Replica, store: CommitCountingStore) -> None:
    """From the second query on."""
    who = analyst(replica)
    answers = [ask(replica, who, f"k{n}", reuse=False) for n in range(5)]
    assert store.ways() == (0, 5)
    assert [answer.sequence for answer in answers] == [2, 3, 4, 5, 6]
    assert findings(store) == []


def test_a_repeated_key_or_query_is_looked_up(replica: Replica, store: CommitCountingStore) -> None:
    """An idempotency key, and a query that may be reused; a query that must be fresh is not looked up."""
    who = analyst(replica)
    first = ask(replica, who, "k", noise={"sigma": 9})
    assert store.ways() == (0, 1)
    assert ask(replica, who, "k", noise={"sigma": 9}).body == first.body
    with pytest.raises(KeyConflict):
        ask(replica, who, "k", noise={"sigma": 9}, reuse=False)
    assert values(ask(replica, who, "other", noise={"sigma": 9})) == values(first)
    assert store.ways() == (3, 0)
    ask(replica, who, "fresh", noise={"sigma": 9}, reuse=False)
    assert store.ways() == (0, 1)


def test_an_answer_of_another_replica_refuses_the_optimistic_commit_alone(store: CommitCountingStore) -> None:
    """An idempotency key or query answered by another replica: the stored bytes, no charge, and then locked commits."""
    with open_replica(store) as one, open_replica(store) as two:
        register(one)
        upload(one, "people", THREE_PEOPLE)
        who = analyst(one)
        first = ask(one, who, "k")
        fresh = ask(two, who, "fresh", reuse=False)
        store.ways()
        assert ask(one, who, "fresh", reuse=False).body == fresh.body
        assert store.ways()[1] == 1
        assert ask(two, who, "k").body == first.body
        assert values(ask(two, who, "again")) == values(first)
        assert len(one.auditors.ledger("survey", cursor=None, limit=10).items) == 2
    assert findings(store) == []


def test_after_a_refusal_batches_use_locked_commits_for_a_while(replica: Replica, store: CommitCountingStore) -> None:
    """A dataset shared with another replica does not cost wasted noise for every batch."""
    who = analyst(replica)
    store.faults = [HeadMoved()]
    ask(replica, who, "refused", reuse=False)
    store.ways()
    for n in range(CAUTIOUS_BATCHES):
        ask(replica, who, f"k{n}", reuse=False)
    assert store.ways() == (CAUTIOUS_BATCHES, 0)
    ask(replica, who, "again", reuse=False)
    assert store.ways() == (0, 1)


def test_an_allowance_is_judged_by_the_database(replica: Replica, store: CommitCountingStore) -> None:
    """Including what other replicas have spent of it."""
    ask(replica, analyst(replica, allowance_rho=Decimal(1)), "k", reuse=False)
    assert store.ways() == (1, 0)


def test_an_act_does_not_change_how_the_next_query_commits(replica: Replica, store: CommitCountingStore) -> None:
    """An upload and an epoch: optimistic where the head was known, and with a look where it was not."""
    who = analyst(replica)
    acts: dict[str, Callable[[], object]] = {
        "upload": lambda: upload(replica, "people", [("joe", "SE", 20, 1)]),
        "epoch": lambda: replica.curators.open_epoch("survey"),
    }
    for key, act in acts.items():
        act()
        store.ways()
        ask(replica, who, key, reuse=False)
        assert store.ways() == (0, 1)
    with open_replica(store) as fresh:
        fresh.curators.open_epoch("survey")
        store.ways()
        ask(fresh, who, "k", reuse=False)
        assert store.ways() == (1, 0)


def test_an_unclear_commit_is_followed_by_a_look(replica: Replica, store: CommitCountingStore) -> None:
    """A commit whose outcome is unknown."""
    who = analyst(replica)
    ask(replica, who, "a", reuse=False)
    store.faults = [CommitUnclear()]
    with pytest.raises(Unavailable):
        ask(replica, who, "c", reuse=False)
    store.ways()
    ask(replica, who, "c", reuse=False)
    assert store.ways() == (1, 0)
    assert findings(store) == []


def test_a_head_that_is_not_witnessed_is_not_assumed(replica: Replica, store: CommitCountingStore) -> None:
    """A head that the guard has not confirmed recorded is read again."""
    guard = replica.registry.guard(replica.registry.record("survey"))
    assert guard.is_confirmed(store.head(1))
    guard._is_unwritable = True
    assert not guard.is_confirmed(store.head(1))
    ask(replica, analyst(replica), "k", reuse=False)
    assert store.ways()[1] == 0


def test_the_latest_queries_are_remembered(replica: Replica) -> None:
    """At most SEEN_MAX of them."""
    writer = writer_of(replica)
    optimistic: OptimisticCommit = writer.committer.optimistic
    who = analyst(replica)
    for n in range(40):
        ask(replica, who, f"k{n}", reuse=False, noise={"sigma": 3 + n})
    assert (who.id, "k39") in optimistic._seen
    assert len(optimistic._seen) <= SEEN_MAX
    optimistic._seen.update({str(n): None for n in range(SEEN_MAX)})
    ask(replica, who, "last", reuse=False)
    assert len(optimistic._seen) == SEEN_MAX
    assert (who.id, "last") in optimistic._seen
    assert (who.id, "k0") not in optimistic._seen


@settings(max_examples=60, deadline=None)
@given(
    rule=st.sampled_from(["skip", "drop"]),
    refused=st.lists(st.sampled_from([None, HeadMoved(), CommitRejected("23514")]), min_size=1, max_size=12),
    sigmas=st.lists(st.sampled_from([3, 7]), max_size=3),
)
def test_a_refused_optimistic_commit_leaves_memory_as_it_was(
    rule: str, refused: list[Exception | None], sigmas: list[int]
) -> None:
    """However much was debited, and repeatedly: memory and its pages equal the ledger's replay.

    Under the drop rule nobody is out for good by a query that never was.
    """
    store = CommitCountingStore()
    with surveyed(store, rule=rule) as replica:
        who = analyst(replica)
        ask(replica, who, "first", reuse=False)
        writer = writer_of(replica)
        writer.act(pausing(Key("bob"), paused=True))
        for n, refusal in enumerate(refused):
            writer.committer.optimistic._cautious_batches = 0
            store.faults = [] if refusal is None else [refusal]
            for sigma in [3, *sigmas]:
                with suppress(CommitRejected):
                    ask(replica, who, f"{n}-{sigma}", reuse=False, noise={"sigma": sigma})
            memory = only_shard(writer._state).memory
            replayed = totals(entries_of(store))
            assert memory.accounts.spent.tolist()[:3] == replayed.spent.tolist()[:3]
            assert memory.counters.charged_of(slice(None)).tolist()[:3] == replayed.charged.tolist()[:3]
            assert memory.counters.left_out_of(slice(None)).tolist()[:3] == replayed.left_out.tolist()[:3]
            assert writer._state.seq == store.head(1).seq
    assert findings(store) == []
