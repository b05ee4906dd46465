"""Reads of a writer's memory from other threads: immediate when no step is running, and never of a partial change."""

import threading
from collections.abc import Iterator

import pytest

from service.writer.state import DatasetState
from service.writer.threads import WriterThread
from tests.factories import TWO_PEOPLE, PassiveReplica, SeededEntropy, analyst, ask, open_replica
from tests.gated_store import GatedStore
from tests.waiting import PATIENCE_S
from tests.workflows.surveys import fill, writer_of


@pytest.fixture
def store() -> Iterator[GatedStore]:
    """A dataset of one individual, in a store whose locked transactions can be held."""
    made = GatedStore()
    fill(made, TWO_PEOPLE[:1])
    yield made
    made.gate.set()


@pytest.fixture
def writer(store: GatedStore) -> Iterator[WriterThread]:
    """The writer of that dataset, after one query."""
    with open_replica(store) as replica:
        ask(replica, analyst(replica), "k")
        yield writer_of(replica)


def seq(state: DatasetState) -> int:
    """The look that the tests use."""
    return state.seq


def hold(store: GatedStore, writer: WriterThread) -> None:
    """Stop the writer in the middle of a step."""
    store.gate.clear()
    writer.submit_act(lambda transaction, state: None)
    store.wait_until_reached()


def test_a_look_is_in_the_callers_own_thread(writer: WriterThread) -> None:
    """The writer's thread is not involved."""
    writer.submit_look(seq).result(timeout=PATIENCE_S)  # the previous step has ended
    assert writer.peek(lambda state: (state.seq, threading.current_thread())) == (1, threading.current_thread())
    assert writer.look(seq) == 1


def test_nothing_is_seen_while_a_step_works(store: GatedStore, writer: WriterThread) -> None:
    """A glimpse returns None at once, a peek after a while; a look waits until the step has ended."""
    hold(store, writer)
    assert writer.glimpse(seq) is None
    assert writer.peek(seq) is None
    waiting = writer.submit_look(seq)
    assert not waiting.done()
    store.gate.set()
    assert waiting.result(timeout=PATIENCE_S) == 1
    assert writer.peek(seq) == 1


def test_a_look_between_two_steps_is_not_waited_for_for_ever(store: GatedStore, writer: WriterThread) -> None:
    """While a step goes on a caller is soon sent to the database; after it the caller looks."""
    hold(store, writer)
    assert writer.look_soon(seq) is None
    store.gate.set()
    writer.submit_look(seq).result(timeout=PATIENCE_S)
    assert writer.look_soon(seq) == 1
    writer.end()
    assert writer.look_soon(seq) is None


def test_a_look_during_which_a_step_began_does_not_count(store: GatedStore) -> None:
    """Its error does not count either; an error of an undisturbed look is raised."""
    replica = PassiveReplica(store, SeededEntropy())
    writer_of(replica)
    writer = replica.writer

    def disturbed(state: DatasetState) -> int:
        writer.submit_look(seq)
        writer.step()
        return state.seq

    def broken(state: DatasetState) -> int:
        disturbed(state)
        raise IndexError

    assert writer.glimpse(disturbed) is None
    assert writer.glimpse(broken) is None
    with pytest.raises(ZeroDivisionError):
        writer.glimpse(lambda state: 1 // 0)


def test_a_dataset_that_is_not_in_memory_is_not_waited_for(store: GatedStore) -> None:
    """A peek runs the look once, without waiting for the load."""
    looks = []
    with open_replica(store) as replica:
        writer = writer_of(replica)
        assert writer.peek(lambda state: looks.append(state.position)) is None
        assert writer.look_soon(lambda state: looks.append(state.position)) is None
    assert looks == [None]
