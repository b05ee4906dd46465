"""A writer that answers a batch of small queries keeps the GIL until it waits for I/O."""

from collections.abc import Iterator

import orjson
import pytest

from service.ledger.model.ledger_entry import LedgerEntry
from service.query.division import PAGE_SLOTS
from service.query.parse import parse_query
from service.store.entropy import system_entropy
from tests.factories import PassiveReplica, analyst
from tests.gil_probe import bystander
from tests.memory.shards import only_shard
from tests.memory.store import MemoryStore
from tests.workflows.surveys import surveyed

PEOPLE = PAGE_SLOTS + 500


@pytest.fixture
def replica() -> Iterator[PassiveReplica]:
    """More individuals than one page holds, in memory, with the system's entropy."""
    store = MemoryStore()
    with surveyed(store, [(f"p{n}", ("NO", "SE")[n % 2], n % 121, n % 500) for n in range(PEOPLE)]):
        yield PassiveReplica(store, system_entropy)


def entries(replica: PassiveReplica) -> list[LedgerEntry]:
    """All entries of the ledger."""
    with replica.writer.guard.transaction(lock=False) as transaction:
        return list(transaction.entries(after=0))


@pytest.mark.parametrize("some_cannot_pay", [False, True])
def test_small_queries_are_answered_without_releasing_the_gil(
    replica: PassiveReplica, *, some_cannot_pay: bool
) -> None:
    """Lookup by index, filter, sum, noise, encoding, hashes, debit and commit for 273 individuals on two pages.

    It makes no difference whether all of them can pay. A query that reads every individual does release the GIL: the
    same bystander thread sees that.
    """
    who = analyst(replica)

    def ask(key: str, count: int, **more: object) -> None:
        document = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 99.0}, "reuse": False, **more}
        queries = [parse_query(orjson.dumps(document)) for _ in range(count)]
        for number, query in enumerate(queries):
            replica.analysts.submit(who, "survey", f"{key}{number}", query)

    young = {"where": {"and": [{"eq": [{"col": "age"}, 7]}, {"eq": [{"col": "country"}, "NO"]}]}}
    if some_cannot_pay:  # half a rho, their whole budget
        spending = {"lt": [{"col": "spend"}, 100]}
        ask("spent", 1, noise={"sigma": 1.0}, where={"and": [*young["where"]["and"], spending]})
    ask("before", 1, **young)
    replica.writer.step()  # everything that is read only once has been read, and the pair of columns asked for
    memory = only_shard(replica.writer._state).memory
    memory.prepare()
    assert memory.take_prepared()
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
