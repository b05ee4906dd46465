"""A replica with a divided dataset does what one with an undivided does, and a shard that is lost loses nothing.

People are on three pages, so that of three shards each has one; one script of queries and acts runs on both replicas.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Any
from uuid import UUID

import orjson
import pytest

from service.ledger.model.errors import Fenced, InvalidRequest, Unavailable
from service.ledger.model.views import Principal
from service.ledger.ports.shards import ShardLost
from service.maintenance.reconcile import reconcile
from service.query.division import PAGE_SLOTS
from service.query.keys import Key
from service.query.parse import parse_query
from service.workflows.replica import Replica
from service.writer.shards.divided import DividedShards
from tests.contracts.stores import dataset
from tests.factories import CLOCK, SeededEntropy, analyst, ask, open_replica, upload, witness_of
from tests.logged import records_of
from tests.memory.shards import MemoryShards, dividing
from tests.memory.store import MemoryStore
from tests.rotation import one_of
from tests.waiting import until
from tests.writer.shards.spread import KEYS, SEEN, filled, findings


@contextmanager
def divided_replica(store: MemoryStore, count: int, entropy: Any = None) -> Iterator[tuple[Replica, MemoryShards]]:
    """A replica whose dataset has so many shards."""
    backend = MemoryShards()
    with open_replica(store, entropy, options=dividing(backend, count)) as replica:
        yield replica, backend


def individual(key: str) -> Principal:
    """The principal of an individual."""
    return Principal(
        id=UUID(int=9), role="individual", name=key, dataset="survey", individual=Key(key), allowance_units=None
    )


QUERIES: tuple[dict[str, Any], ...] = (
    {"noise": {"sigma": 1.5}},
    {"select": [{"sum": {"column": "age"}}], "noise": {"sigma": 100.0}, "where": {"gt": [{"col": "age"}, 20]}},
    {"select": [{"sum": {"column": "spend"}}], "noise": {"sigma": 9.0}, "where": {"eq": [{"col": "age"}, 3]}},
    {"from": "visits", "group_by": ["item"], "noise": {"sigma": 2.0}},
    {"where": {"fold": {"of": 5, "seed": "a", "in": [2]}}, "noise": {"sigma": 4.0}},
)


def asked(replica: Replica, who: Principal, step: str) -> list[Any]:
    """The values and the counts of every query, and of one that reuses an answer of its own batch."""
    shown = []
    for number, query in enumerate(QUERIES):
        body = orjson.loads(ask(replica, who, f"{step} {number}", **query).body)
        shown.append((body["values"], body["sequence"]))
    entries = replica.auditors.ledger("survey", cursor=None, limit=5).items
    return [*shown, [(entry.sequence, entry.charged, entry.left_out) for entry in entries]]


def acted(replica: Replica) -> list[Any]:
    """Every kind of act on people of each page."""
    first, last, second, third = SEEN
    upload(replica, "visits", [(second, 5), (third, 6), ("new", 7), (third, 7)])
    with pytest.raises(InvalidRequest, match="rows_per_individual"):
        upload(replica, "visits", [(last, 1)] * 5)
    replica.curators.erase_individual("survey", second)
    replica.curators.correct("survey", third, {"age": 3, "spend": 77.5})
    replica.individuals.lower_limit(individual(first), "survey", limit_rho=None, pause=True)
    replica.individuals.lower_limit(individual(last), "survey", limit_rho=Decimal("0.3"), pause=False)
    upload(replica, "people", [(second, "SE", 3, 1)])
    return [replica.curators.open_epoch("survey")]


def seen(replica: Replica, keys: Sequence[str] = (*SEEN, "new")) -> list[Any]:
    """The accounts, the summary and a forecast, as curators are shown them."""
    accounts = [replica.curators.account("survey", key) for key in keys]
    summary = replica.overview.summary("survey")
    query = {"version": 1, "select": [{"sum": {"column": "age"}}], "noise": {"sigma": 100.0}}
    forecast = replica.overview.forecast("survey", parse_query(orjson.dumps(query)))
    return [accounts, summary.individuals, summary.exhausted, forecast]


def told(store: MemoryStore) -> list[Any]:
    """All that is stored of charges: pieces, without what is salted, and pages."""
    with store.transaction(1, lock=False) as transaction:
        entries = transaction.entries(after=0)
        pages = {page.number: (page.seq, page.totals.spent.tobytes()) for page in transaction.pages()}
    return [[[(piece.number, piece.content) for piece in entry.pieces] for entry in entries], pages]


def story(counts: tuple[int, int]) -> list[Any]:
    """All that is shown and stored: on so many shards, and after a restart on so many others."""
    store, entropy = MemoryStore(), SeededEntropy()
    with divided_replica(store, counts[0], entropy) as (replica, _):
        filled(replica, store)
        who = analyst(replica)
        shown = [asked(replica, who, "first"), acted(replica), asked(replica, who, "second"), seen(replica)]
    with divided_replica(store, counts[1], entropy) as (replica, _):
        shown += [seen(replica), asked(replica, who, "third"), seen(replica)]
    assert findings(store) == []
    return [shown, told(store)]


@cache
def undivided() -> list[Any]:
    """The story of one shard."""
    return story((1, 1))


@pytest.mark.parametrize("counts", [(1, 3), (3, 2), (2, 8)])
def test_a_divided_dataset_is_the_undivided_one(counts: tuple[int, int]) -> None:
    """Answers, acts, refusals, accounts, summaries, forecasts, pieces and pages, and another number at each start."""
    assert story(counts) == undivided()


def restored(count: int, *, is_running: bool) -> list[Any]:
    """All that is shown and stored after a restore to an older backup: closed, burned, open again, and started anew."""
    store, entropy = MemoryStore(), SeededEntropy()
    with ExitStack() as stack:
        replica, _ = stack.enter_context(divided_replica(store, count, entropy))
        filled(replica, store)
        who = analyst(replica)
        asked(replica, who, "in the backup")
        replica.registry.opened()[0].checkpoint()
        until(lambda: store.head(1).checkpoint_seq > 0)
        backup = dict(store.kept)
        for number in range(2):
            ask(replica, who, f"lost {number}", reuse=False, noise={"sigma": 9.0})
        replica.registry.opened()[0].checkpoint()  # pages that are ahead of the backup's
        true = [replica.curators.account("survey", key).spent_units for key in SEEN]
        if not is_running:
            replica.close()
        store.kept = backup
        if not is_running:
            replica, _ = stack.enter_context(divided_replica(store, count, entropy))
        replica.readiness.check_witnesses()
        with pytest.raises(Fenced):
            ask(replica, who, "closed", reuse=False)
        done = reconcile(store, witness_of(store), "survey", burn_units=None, clock=lambda: CLOCK)
        assert replica.readiness.check_witnesses() == []
        burned = seen(replica, SEEN)
        assert all(account.spent_units >= spent for account, spent in zip(burned[0], true, strict=True))
        assert done is not None
        shown = [done.plan.missing_units, burned, asked(replica, who, "after"), seen(replica, SEEN)]
        replica.registry.opened()[0].checkpoint()
        until(lambda: store.head(1).checkpoint_seq == store.head(1).seq)
    with divided_replica(store, 5 - count, entropy) as (replica, _):
        shown += [seen(replica, SEEN)]
    assert findings(store) == []
    return [shown, told(store)]


@pytest.mark.parametrize("is_running", [True, False])
def test_a_restored_dataset_is_burned_as_the_undivided_one(*, is_running: bool) -> None:
    """The burn, totals, entries and pages are the same on one, two or three shards, and nobody gets anything back."""
    whole = restored(1, is_running=is_running)
    for count in one_of([2, 3], int(is_running)):
        assert restored(count, is_running=is_running) == whole


def paused_and_resumed(replica: Replica) -> None:
    """Two acts of one individual."""
    replica.individuals.lower_limit(individual(SEEN[0]), "survey", limit_rho=None, pause=True)
    replica.individuals.resume(individual(SEEN[0]), "survey")


CALLS: dict[str, Callable[[Replica, Principal, str], object]] = {
    "answer_part": lambda replica, who, key: ask(replica, who, key, reuse=False),
    "changed": lambda replica, _, key: upload(replica, "people", [(key, "NO", 1, 1)]),
    "put": lambda replica, _, key: upload(replica, "people", [(key, "NO", 1, 1)]),
    "set_paused": lambda replica, _, __: paused_and_resumed(replica),
    "accounts": lambda replica, _, __: replica.curators.account("survey", SEEN[0]),
    "pages_since": lambda replica, _, __: replica.registry.opened()[0].checkpoint(),
}
"""Calls of shards, and what makes them."""


def test_a_shard_that_dies_in_a_call_costs_nobody_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the call is done and after: nothing is charged twice or lost, and the same key is answered later."""
    monkeypatch.setattr("service.writer.shards.divided.RESTARTS_APART_S", 0.01)
    monkeypatch.setattr("service.writer.shards.divided.RESTARTS_APART_MAX_S", 0.01)
    store = MemoryStore()
    with divided_replica(store, 3) as (replica, backend):
        filled(replica, store)
        who = analyst(replica)
        ask(replica, who, "before")
        for call, use in CALLS.items():
            for is_done in (False, True):
                backend.channels[0].dies_at = call, is_done
                key = f"{call} {is_done}"
                with suppress(Unavailable):  # an act that is durable already is done
                    use(replica, who, key)
                assert not backend.channels[0].is_to_die
                until(lambda: not replica.registry.opened()[0].shards.lost)
                with suppress(InvalidRequest):  # the upload was stored
                    use(replica, who, key)
                ask(replica, who, f"after {key}", reuse=False)
        assert replica.registry.opened()[0].shards.restarts == 2 * len(CALLS)
        spent = [row.spent_rho for row in replica.curators.budgets("survey", cursor=None, limit=50).items]
        last = replica.auditors.ledger("survey", cursor=None, limit=100).items
    assert findings(store) == []
    assert len(last) == 1 + 2 * len(CALLS) + 2
    with open_replica(store) as again:
        assert [row.spent_rho for row in again.curators.budgets("survey", cursor=None, limit=50).items] == spent


def test_a_shard_that_cannot_be_loaded_is_tried_again_later_and_later() -> None:
    """The time between two starts of it doubles, up to a bound; nothing is answered meanwhile."""
    now = [100.0]
    channels = MemoryShards()
    shards = DividedShards(channels.open(dataset(), 2), clock=lambda: now[0])
    shards.load(dataset(), slots=10, number=1)
    starts = []
    for _ in range(300):
        channels.channels[1].close()
        with pytest.raises(ShardLost):
            shards.pages_since(0)
        with suppress(ShardLost):
            restarted = shards.restarted()
            starts.append(now[0])
            restarted.load(dataset(), slots=10, number=1)
        now[0] += 0.5
    apart = [second - first for first, second in pairwise(starts)]
    assert apart == sorted(apart)
    assert apart[:4] == [0.5, 1.0, 2.0, 4.0]
    assert apart[-1] <= 60.0


@pytest.mark.parametrize("count", [1, 3])
def test_rows_that_are_spread_too_unevenly_are_refused(count: int) -> None:
    """A shard has room for 5/4 of its part of the rows: 50 of 120, of which the people of the first page have 30."""
    store = MemoryStore()
    with divided_replica(store, count) as (replica, _):
        filled(replica, store, rows_capacity=120)
        upload(replica, "visits", [(KEYS[slot], 1) for slot in range(20)])
        if count == 1:
            upload(replica, "visits", [(KEYS[30], 1)])
        else:
            with pytest.raises(InvalidRequest, match="would be 51, and a shard has room for 50"):
                upload(replica, "visits", [(KEYS[30], 1)])
        upload(replica, "visits", [(KEYS[PAGE_SLOTS + 1], 1)])


@pytest.mark.parametrize(("rows", "is_told"), [(50, False), (51, True)])
def test_rows_that_were_spread_too_unevenly_before_are_told_at_the_load(
    caplog: pytest.LogCaptureFixture, rows: int, is_told: bool
) -> None:
    """One line with the dataset, the table and what can be done, and no number of rows; answers are given all the same.

    Of people on the first page, of 120 for which the table has room.
    """
    store = MemoryStore()
    with divided_replica(store, 1) as (replica, _):
        filled(replica, store, rows_capacity=120)
        upload(replica, "visits", [(KEYS[slot % 60], 1) for slot in range(rows - 30)])
    with divided_replica(store, 3) as (replica, _):
        ask(replica, analyst(replica), "key")
    told = records_of(caplog, "sparing.shards")
    assert len(told) == is_told
    for each in told:
        assert each.getMessage().startswith("dataset survey, table visits: one of the 3 shards has more rows")
        assert not {"51", "50", "120"} & set(each.getMessage().split())


def test_an_undivided_dataset_is_told_nothing_of_rows(caplog: pytest.LogCaptureFixture) -> None:
    """All rows of the table are at its one shard."""
    store = MemoryStore()
    with divided_replica(store, 1) as (replica, _):
        filled(replica, store, rows_capacity=60)
        ask(replica, analyst(replica), "key")
    assert records_of(caplog, "sparing.shards") == []
