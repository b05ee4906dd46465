"""The oracle: every slot, order, sequence and instant of a server under load, recomputed from its public events.

A real server on a real Postgres, asked by 64 connections of eight analysts: counts, sums, histograms, batches, reads
and disconnects. What the schedule was told (arrivals, disconnects, public costs) goes into an independent computation
(`tests.leaks.oracle`), which must give the same slots; answers must have the sequences and come after the instants that
it foretells. `loadtests/attack_oracle.py` does the same with ten thousand requests.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.leaks.listening import Load, Slots, loaded, queries
from tests.leaks.observed import FORMER_SLOTS
from tests.leaks.oracle import Oracle

REQUESTS = 600


@pytest.fixture(scope="module")
def load(server_directory: Path) -> Load:
    """One load for all tests."""
    return loaded(server_directory / "oracle", REQUESTS)


@pytest.fixture(scope="module")
def oracle(load: Load) -> Oracle:
    """The slots and instants that the public events foretell."""
    return load.oracle()


def test_every_slot_is_a_function_of_the_public_events(load: Load, oracle: Oracle) -> None:
    """The requests and their slots are foretold in order, however many share a slot or went before it."""
    assert foretold(oracle) == load.begun()


def test_every_sequence_is_a_function_of_the_public_events(load: Load, oracle: Oracle) -> None:
    """A query's place among its dataset's in the order of slots."""
    answered = queries(load, oracle)
    assert [query.sequence for query in answered] == [query.foretold for query in answered]
    assert answered


def test_no_answer_leaves_before_its_instant(load: Load, oracle: Oracle) -> None:
    """By the clients' clocks."""
    assert min(query.late_ms for query in queries(load, oracle)) >= 0


def test_other_costs_would_be_seen(load: Load) -> None:
    """Planted: costs of one analyst that are a tenth above the public ones foretell other slots."""
    events = [
        {**event, "cost_ns": event["cost_ns"] * 11 // 10} if event.get("principal") == 1 else event
        for event in load.events
    ]
    assert foretold(replace(load, events=events).oracle()) != load.begun()


def test_an_arrival_that_is_not_told_would_be_seen(load: Load) -> None:
    """Planted: slots that were reserved for something of which the public events say nothing."""
    begun = load.begun()
    differs = []
    for hidden, _, _ in begun[:: max(len(begun) // 20, 1)]:  # where slots had room to spare, one more moves nothing
        events = [event for event in load.events if event.get("request") != hidden]
        others = [slots for slots in begun if slots[0] != hidden]
        differs.append(foretold(replace(load, events=events).oracle()) != others)
    assert any(differs)


def test_the_former_slots_would_be_seen(server_directory: Path) -> None:
    """Planted: answers that leave when the work is done, on a grid that begins with the request, come too early.

    Few connections and long slots, so that any work ends before its slot on a busy machine too.
    """
    load = loaded(server_directory / "former", 20, FORMER_SLOTS, connections=4, SPARING_RELEASE_SLOT_MS="400")
    assert any(query.late_ms < 0 for query in queries(load, load.oracle()))


def foretold(oracle: Oracle) -> list[Slots]:
    """Its requests in order, with their slots."""
    return [(n, oracle.foretold[n].begins_ns, oracle.foretold[n].leaves_ns) for n in oracle.order]
