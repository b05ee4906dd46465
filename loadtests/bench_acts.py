"""The cost of an act to queries, at its own replica and at one that follows: a million people, a million events.

    python -m loadtests.bench_acts

All figures are medians in milliseconds. `..._writer` is how long an act occupies the writer, and `..._processor` the
processor time of that. `..._follow` is how long another replica's memory takes to reach the new head;
`everything_follow` is the same when that replica knows only that something has changed. `..._late` is how late a thread
is that sleeps for a millisecond, at the 99.9th percentile, while the act is prepared; `nothing_late` is the same
without any act.
"""

import io
import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from uuid import UUID

import numpy as np
import pyarrow as pa

from loadtests.rig import arrow_bytes, people, throw_away_home
from service.embedded import EmbeddedPostgres
from service.ledger.model.api_keys import Pepper
from service.ledger.model.views import Principal
from service.query.keys import Key
from service.store.entropy import system_entropy
from service.store.postgres.registrations import migrate
from service.store.postgres.store import PostgresStore
from service.workflows.datasets import Registration
from service.workflows.replica import Replica
from service.writer.committer import Operation
from service.writer.state import DatasetState
from tests.memory.cache import MemoryWitness

PEOPLE = 1_000_000
EVENTS = 1_000_000
ROUNDS = 5
QUIET_S = 2.0
ARROW = "application/vnd.apache.arrow.stream"
REGISTRATION = {
    "name": "million",
    "guarantee": {"epsilon": 1, "delta": 1e-6},
    "capacity": 3 * PEOPLE,
    "tables": {
        "people": {
            "kind": "individuals",
            "key": "person_id",
            "columns": {
                "age": {"type": "integer", "lower": 0, "upper": 120},
                "country": {"type": "category", "size": 50},
            },
        },
        "visits": {"kind": "events", "key": "person_id", "columns": {"item": {"type": "category", "size": 1000}}},
    },
}


@dataclass(frozen=True)
class Rig:
    """A replica over a database of its own, and the memory of another replica that follows."""

    replica: Replica
    store: PostgresStore
    follower: DatasetState
    line_s: list[tuple[float, float]] = field(default_factory=list)  # processor time of the same

    def __post_init__(self) -> None:
        """Measure how long acts occupy the writer."""
        committer = self.replica.registry.writer(self.follower.record).committer
        real = committer.act

        def act(wanted: Operation[object]) -> object:
            began, used = time.perf_counter(), time.thread_time()
            try:
                return real(wanted)
            finally:
                self.line_s.append((time.perf_counter() - began, time.thread_time() - used))

        committer.act = act  # type: ignore[method-assign,assignment]

    def upload(self, table: str, rows: pa.Table) -> None:
        """Append rows."""
        self.replica.curators.append_rows("million", table, ARROW, io.BytesIO(arrow_bytes(rows)))

    def follow_ms(self) -> float:
        """Bring the follower to the head; returns the milliseconds."""
        with self.store.transaction(self.follower.record.id, lock=False) as transaction:
            began = time.perf_counter()
            self.follower.catch_up(transaction)
            return 1000 * (time.perf_counter() - began)


@contextmanager
def rig() -> Iterator[Rig]:
    """A million people with events, in the replica's memory and in the follower's."""
    with throw_away_home() as home, EmbeddedPostgres(home / "postgres", throw_away=True) as server:
        url = server.url_of("postgres")
        migrate(url)
        store = PostgresStore(url, Pepper(bytes(32)).ledger_key())
        replica = Replica(
            store=store,
            witness=MemoryWitness(),
            pepper=Pepper(bytes(32)),
            entropy=system_entropy,
            clock=lambda: datetime.now(UTC),
        )
        replica.curators.register(Registration.model_validate(REGISTRATION))
        made = Rig(replica, store, DatasetState(store.datasets()[0]))
        made.upload("people", people(PEOPLE))
        made.upload("visits", visits(np.random.default_rng(2).integers(0, PEOPLE, EVENTS)))
        yield made
        replica.close()
        store.close()


def visits(whose: np.ndarray) -> pa.Table:
    """One event of each of these people."""
    return pa.table({"person_id": pa.array([f"p{n}" for n in whose]), "item": pa.array(whose % 1000)})


def newcomers(first: int, count: int) -> pa.Table:
    """New people."""
    return people(count).set_column(0, "person_id", pa.array([f"new{n}" for n in range(first, first + count)]))


def lateness_ms(task: Callable[[], object]) -> float:
    """The lateness, at the 99.9th percentile, of a thread that sleeps for a millisecond while a task runs."""
    late: list[float] = []
    is_over = threading.Event()

    def sleep() -> None:
        while not is_over.is_set():
            began = time.perf_counter()
            time.sleep(0.001)
            late.append(1000 * (time.perf_counter() - began) - 1)

    sleeper = threading.Thread(target=sleep)
    sleeper.start()
    try:
        task()
    finally:
        is_over.set()
        sleeper.join()
    return float(np.quantile(late, 0.999))


def acts_of(made: Rig) -> dict[str, Callable[[int], object]]:
    """The measured acts, by name."""
    drawn = np.random.default_rng(3)

    def pause(n: int) -> None:
        someone = Principal(
            id=UUID(int=n), role="individual", name="", dataset="million", individual=Key(f"p{n}"), allowance_units=None
        )
        made.replica.individuals.lower_limit(someone, "million", limit_rho=Decimal("0.001"))

    return {
        "epoch": lambda _: made.replica.curators.open_epoch("million"),
        "pause": pause,
        "erasure": lambda n: made.replica.curators.erase_individual("million", f"p{100 + n}"),
        "one_joins": lambda n: made.upload("people", newcomers(n, 1)),
        "one_event": lambda n: made.upload("visits", visits(np.array([1000 + n]))),
        "10000_events": lambda _: made.upload("visits", visits(drawn.integers(2000, PEOPLE, 10_000))),
        "100000_join": lambda n: made.upload("people", newcomers(1000 + 100_000 * n, 100_000)),
        "1000000_join": lambda _: made.upload("people", newcomers(1_000_000, PEOPLE)),
        "1000000_events": lambda _: made.upload("visits", visits(drawn.integers(2000, PEOPLE, EVENTS))),
    }


def run() -> dict[str, float]:
    """The medians of all rounds."""
    figures: dict[str, float] = {}
    with rig() as made:
        loads = []
        for _ in range(ROUNDS):
            made.follower.invalidate_all()
            loads.append(made.follow_ms())
        figures["everything_follow"] = statistics.median(loads)
        figures["nothing_late"] = lateness_ms(lambda: time.sleep(QUIET_S))
        for name, act in acts_of(made).items():
            late, follow = [], []
            made.line_s.clear()
            for n in range(1 if name.startswith("1000000") else ROUNDS):
                late.append(lateness_ms(partial(act, n)))
                follow.append(made.follow_ms())
            figures[f"{name}_writer"] = 1000 * statistics.median(taken for taken, _ in made.line_s)
            figures[f"{name}_processor"] = 1000 * statistics.median(used for _, used in made.line_s)
            figures[f"{name}_follow"] = statistics.median(follow)
            if name.startswith("1000000"):
                figures[f"{name}_late"] = late[0]
    return figures


def main() -> None:
    """Print the figures."""
    print(json.dumps(run(), indent=2))


if __name__ == "__main__":
    main()
