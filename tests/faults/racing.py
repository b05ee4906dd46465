"""Two replicas and one last unit: the second must find it spent.

The replicas own nothing, as with SPARING_RELEASE_SLOT_MS=0: both work on the dataset at the same time.
"""

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field

import orjson
import psycopg

from service.ledger.model.errors import Unavailable
from service.ledger.model.views import Principal
from service.maintenance.verify.report import verify_all
from service.query.parse import parse_query
from service.store.postgres.store import PostgresStore
from service.workflows.datasets import Registration
from service.workflows.replica import Replica
from tests.faults.scenario import LEDGER_KEY, open_replica
from tests.sealed_accounts import spent_in
from tests.waiting import PATIENCE_S

DATASET = "race"
CHARGE_UNITS = 2**37  # sigma 2: 1/8


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """One replica in this process."""

    store: PostgresStore
    replica: Replica
    analyst: Principal
    refusals: list[str] = field(default_factory=list)

    def ask(self, person: int, key: str, barrier: threading.Barrier) -> bytes:
        """Ask about one person, at the same instant as the others; insist when told to try again."""
        query = {
            "version": 1,
            "select": [{"count": {}}],
            "where": {"eq": [{"col": "number"}, person]},
            "noise": {"sigma": 2.0},
            "reuse": False,
        }
        parsed = parse_query(orjson.dumps(query))
        barrier.wait(60)
        for _ in range(100):
            try:
                return self.replica.analysts.submit(self.analyst, DATASET, key, parsed).result(timeout=PATIENCE_S).body
            except Unavailable:
                self.refusals.append(key)
        raise TimeoutError(f"{key} is never answered")


def race(database_url: str, races: int, *, rivals: int = 2, same_key: bool = False) -> tuple[int, int]:
    """`races` people with one charge left each, asked about by every rival at once. Returns (charges, 503s).

    With `same_key` all rivals deliver one request; else each asks under a key of its own.
    """
    with ExitStack() as stack, ThreadPoolExecutor(rivals) as pool:
        opened = [stack.enter_context(open_replica(database_url)) for _ in range(rivals)]
        analyst = _people(opened[0][1], races)
        runners = [Runner(store=store, replica=replica, analyst=analyst) for store, replica in opened]
        for person in range(races):
            barrier = threading.Barrier(rivals)
            keys = [f"k{person}" if same_key else f"k{person}-{rival}" for rival in range(rivals)]
            futures = [pool.submit(runner.ask, person, key, barrier) for runner, key in zip(runners, keys, strict=True)]
            bodies = {future.result(timeout=PATIENCE_S) for future in futures}
            assert len(bodies) == (1 if same_key else rivals)
        charges = _check(database_url, runners[0].store, races, entries_each=1 if same_key else rivals)
        return charges, sum(len(runner.refusals) for runner in runners)


def _people(replica: Replica, count: int) -> Principal:
    """Register `count` people that can each pay for one query and not a unit more; return the analyst."""
    columns = {"number": {"type": "category", "size": count}}
    document = {
        "name": DATASET,
        "guarantee": {"rho": "0.125"},
        "capacity": count,
        "tables": {"people": {"kind": "individuals", "key": "person_id", "columns": columns}},
    }
    replica.curators.register(Registration.model_validate(document))
    rows = "person_id,number\n" + "".join(f"p{person},{person}\n" for person in range(count))
    replica.curators.append_rows(DATASET, "people", "text/csv", io.BytesIO(rows.encode()))
    return replica.principals.create(role="analyst", name="ana", dataset=DATASET)[0]


def _check(database_url: str, store: PostgresStore, races: int, *, entries_each: int) -> int:
    """Everybody paid once: the first entry about a person charges, every later one leaves out. Returns the charges."""
    assert [finding for report in verify_all(store) for finding in report.findings] == []
    record = store.dataset(DATASET)
    assert record is not None
    with store.transaction(record.id, lock=False) as transaction:
        entries = list(transaction.entries(after=0))
    charged: set[int] = set()
    left_out: list[int] = []
    for entry in entries:
        paid, charges, unpaid = (array.tolist() for array in entry.decode())
        assert len(paid) + len(unpaid) == 1
        assert not charged & {*paid}
        assert charged >= {*unpaid}
        assert charges == [CHARGE_UNITS] * len(paid)
        charged |= {*paid}
        left_out += unpaid
    assert charged == set(range(races))
    assert sorted(left_out) == sorted(list(range(races)) * (entries_each - 1))
    with psycopg.connect(database_url) as connection:
        spent = {(each.spent_units, each.limit_units) for each in spent_in(connection, LEDGER_KEY)}
    assert spent == {(CHARGE_UNITS, CHARGE_UNITS)}
    return len(charged)
