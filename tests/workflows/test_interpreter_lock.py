"""Whoever works off a batch of small queries keeps the interpreter's lock until there is something to wait for."""

from collections.abc import Iterator

import orjson
import pytest

from service.engine.pages import PAGE_SLOTS
from service.query.parse import parse_query
from service.store.entropy import system_entropy
from service.testing.store import MemoryStore
from service.workflows.model.ledger_entry import LedgerEntry
from tests.factories import PassiveReplica, analyst, open_replica, register, upload
from tests.gil_probe import bystander

PEOPLE = PAGE_SLOTS + 500


@pytest.fixture
def replica() -> Iterator[PassiveReplica]:
    """More people than a page holds, in memory, with the system's own entropy."""
    store = MemoryStore()
    with open_replica(store) as opened:
        register(opened)
        upload(opened, "people", [(f"p{n}", ("NO", "SE")[n % 2], n % 121, n % 500) for n in range(PEOPLE)])
        yield PassiveReplica(store, system_entropy)


def entries(replica: PassiveReplica) -> list[LedgerEntry]:
    """The ledger."""
    with replica.writer.guard.transaction(lock=False) as transaction:
        return list(transaction.entries(after=0))


@pytest.mark.slow
@pytest.mark.parametrize("some_cannot_pay", [False, True])
def test_small_queries_are_answered_without_giving_it_up(replica: PassiveReplica, *, some_cannot_pay: bool) -> None:
    """Found by an index, filtered, summed, noised, encoded, hashed, debited and put down: 273 people on two pages.

    Whether all of them can pay makes no difference. A query that has to look at everybody does give it up: the same
    bystander sees that.
    """
    who = analyst(replica)

    def ask(key: str, count: int, **more: object) -> None:
        document = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 99.0}, "reuse": False, **more}
        queries = [parse_query(orjson.dumps(document)) for _ in range(count)]
        for number, query in enumerate(queries):
            replica.analysts.submit(who, "survey", f"{key}{number}", query)

    young = {"where": {"and": [{"eq": [{"col": "age"}, 7]}, {"eq": [{"col": "country"}, "NO"]}]}}
    if some_cannot_pay:  # half a rho, which is all they have
        spending = {"lt": [{"col": "spend"}, 100]}
        ask("spent", 1, noise={"sigma": 1.0}, where={"and": [*young["where"]["and"], spending]})
    ask("before", 1, **young)
    replica.writer.step()  # what is read only once is read by now
    with bystander() as turns:
        ask("small", 16, **young)
        before = turns()
        replica.writer.step()
        assert turns() == before
        assert (entries(replica)[-1].left_out_count > 0) is some_cannot_pay
        for attempt in range(100):
            ask(f"large{attempt}", 1)
            before = turns()
            replica.writer.step()
            if turns() > before:
                return
    raise AssertionError
