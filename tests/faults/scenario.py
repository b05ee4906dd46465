"""One dataset for a drill, what its queries cost by arithmetic of our own, and the audit at the end."""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, isqrt, ldexp
from typing import Any, LiteralString
from uuid import uuid4

import orjson
import psycopg

from service.accounting.monitor import coefficients
from service.core.noise import Entropy
from service.ledger.model.api_keys import Pepper
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.views import Principal
from service.ledger.ports.store import Store
from service.ledger.ports.witness import Witness
from service.maintenance.verify.report import verify_all
from service.run.adapters import now
from service.store.entropy import system_entropy
from service.store.postgres.store import PostgresStore
from service.workflows.datasets import Registration
from service.workflows.replica import Replica
from service.writer.rollback.guard import witness_name
from tests.faults.history import Attempt, Curve, Entry, History, Reading, Reply, Ticks, violations
from tests.faults.replicas import PEPPER, Answer, ask, exchange
from tests.laws.reference import UNIT, clipped_count, gaussian_units, laplace_units
from tests.memory.cache import MemoryWitness
from tests.rotation import TURN
from tests.sealed_accounts import spent_in

_PEPPER = Pepper(bytes.fromhex(PEPPER))
LEDGER_KEY = _PEPPER.ledger_key()

COLUMNS = {
    "country": {"type": "category", "categories": ["NO", "SE"]},
    "age": {"type": "integer", "lower": 0, "upper": 120},
    "image": {"type": "vector", "length": 2, "lower": 0, "upper": 255, "step_log2": -8},
    "limit_rho": {"type": "budget"},
}
PEOPLE = 24
MONITOR: Mapping[str, Any] = {"rho": "0.000244140625", "ticks": 4096, "share": 0.0625}
RESERVE_UNITS = 2**28  # of 2^-12 rho, by which each limit is lower for queries


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    """A count: its JSON, the individuals that it touches if they have the share of the budget left, and its sigma.

    With Laplace noise `sigma` is the scale. `price` is of one individual, in units, by the square of what it adds.
    """

    query: Mapping[str, Any]
    touched: frozenset[int]
    sigma: Fraction
    share: Fraction = Fraction(0)
    price: Callable[[int, Fraction], int] = gaussian_units

    def costs(self) -> dict[int, int]:
        """Units by slot: each of those that it touches adds one."""
        return dict.fromkeys(sorted(self.touched), self.price(1, self.sigma))

    def part(self, left: int) -> int:
        """Units that an individual pays under the clip rule that has only so many left."""
        return clipped_count(left, self.sigma)[1]


def _query(sigma: str, touched: Iterator[int], where: Mapping[str, Any] | None, **more: Any) -> QueryRequest:
    query = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": float(sigma)}, "reuse": False, **more}
    condition = {} if where is None else {"where": where}
    return QueryRequest(query=query | condition, touched=frozenset(touched), sigma=Fraction(sigma))


def _laplace(scale: str, touched: Iterator[int], where: Mapping[str, Any] | None, **more: Any) -> QueryRequest:
    noise = {"mechanism": "laplace", "noise": {"scale": float(scale)}}
    return replace(_query(scale, touched, where, **noise, **more), price=laplace_units("gdp"))


def _in_norway(slot: int) -> bool:
    return slot % 3 == 0


def _age(slot: int) -> int:
    return 5 * slot % 100


_ACTIVE: Mapping[str, Any] = {
    "version": 1,
    "select": [{"active": {"share": 0.5}}],
    "where": {"eq": [{"col": "country"}, "NO"]},
    "noise": {"sigma": 8.0},
}
TICK = "exhausted"


def _no_units(_squared: int, _sigma: Fraction) -> int:
    """A tick is paid from the reserve."""
    return 0


# With a feature for each country an individual has one product that is not zero, and pays as for a count.
QUESTIONS: Mapping[str, QueryRequest] = {
    "everybody": _query("4", iter(range(PEOPLE)), None),
    "north": _query("2", filter(_in_norway, range(PEOPLE)), {"eq": [{"col": "country"}, "NO"]}),
    "older": _query("3.5", (n for n in range(PEOPLE) if _age(n) >= 40), {"ge": [{"col": "age"}, 40]}),
    "shortened": _query("4", iter(range(PEOPLE)), None, rule="clip"),
    "again": _query("4", iter(range(PEOPLE)), None, reuse=True),
    "shortened north": _query("3", filter(_in_norway, range(PEOPLE)), {"eq": [{"col": "country"}, "NO"]}, rule="clip"),
    "moments": _query("2.5", iter(range(PEOPLE)), None, select=[{"moments": {"features": [{"one_hot": "country"}]}}]),
    "active": QueryRequest(
        query=_ACTIVE, touched=frozenset(filter(_in_norway, range(PEOPLE))), sigma=Fraction(8), share=Fraction(1, 2)
    ),
    "laplace north": _laplace("3", filter(_in_norway, range(PEOPLE)), {"eq": [{"col": "country"}, "NO"]}),
    "largest": _query("3", iter(range(PEOPLE)), None, group_by=["country"], reduce="max"),
    "laplace largest": _laplace("5", iter(range(PEOPLE)), None, group_by=["country"], reduce="max"),
    TICK: QueryRequest(
        query={"version": 1, "select": [{"exhausted": {}}]}, touched=frozenset(), sigma=Fraction(0), price=_no_units
    ),
}
NAMES = tuple(QUESTIONS)
FRESH = tuple(name for name in NAMES if name != "again")
BY_BLOCK = frozenset({"charges", "active-set"})
"""Points of a charge, by which a tick does not come."""


def fresh_at(place: str) -> tuple[str, ...]:
    """The questions that are evaluated at a place of a query's way."""
    return tuple(name for name in FRESH if name != TICK) if place in BY_BLOCK else FRESH


def in_turn(names: Sequence[str], place: int, number: int, *, count: int) -> str:
    """The question `number` of the `count` at a place: over places and turns each comes at each place."""
    return names[((place + TURN) * count + number) % len(names)]


@dataclass(slots=True, kw_only=True)
class Stage:
    """A dataset on a database, and everything that anybody saw of it."""

    database_url: str = field(repr=False)
    dataset: str
    rule: str
    limits: Mapping[int, int]
    analyst: Principal
    analyst_key: str
    curator_key: str
    connection: psycopg.Connection[tuple[Any, ...]] = field(repr=False)
    attempts: list[Attempt] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)

    def ask(self, url: str, key: str, question: str) -> Answer:
        """Ask a replica, and remember what was seen."""
        path = f"/v1/datasets/{self.dataset}/queries"
        answer = ask(url, self.analyst_key, path, key, QUESTIONS[question].query)
        self.attempts.append(
            Attempt(
                key=key,
                question=question,
                started=answer.started,
                seen_at=answer.seen_at,
                status=answer.status,
                body=answer.body if answer.status == 200 else b"",
                complete=answer.complete,
            )
        )
        return answer

    def insist(self, url: str, key: str, question: str) -> bytes:
        """Ask a replica until it answers; every refusal must be one that says: later. Returns the answer's bytes."""
        for _ in range(200):
            answer = self.ask(url, key, question)
            if answer.status == 200:
                assert answer.complete
                return answer.body
            assert answer.status == 503, answer
        raise TimeoutError(f"{key} is never answered")

    def read(self, url: str) -> None:
        """Read every individual's budget and all ticks from a replica, and remember what came."""
        answer = exchange(url, "GET", f"/v1/datasets/{self.dataset}/budgets?limit=1000", self.curator_key)
        if answer.status == 200 and answer.complete and answer.seen_at is not None:
            rows = orjson.loads(answer.body)["items"]
            spent = {int(row["key"].removeprefix("p")): int(row["spent_units"]) for row in rows}
            self.readings.append(Reading(started=answer.started, ended=answer.seen_at, spent=spent))
        answer = exchange(url, "GET", f"/v1/datasets/{self.dataset}/monitor", self.analyst_key)
        if answer.status == 200 and answer.complete:
            self.curves.append(Curve(started=answer.started, values=tuple(orjson.loads(answer.body)["values"])))

    def answered(self) -> int:
        """How many answers were seen."""
        return sum(attempt.status == 200 for attempt in tuple(self.attempts))

    def move(self, database_url: str) -> None:
        """The database has another URL from now on."""
        self.connection.close()
        self.database_url = database_url

    def stored(self, key: str) -> Reply | None:
        """The reply that the database holds for a key, if any, once the holder of the dataset's lock is through."""
        self._rows(
            "SELECT 1 FROM heads h JOIN datasets d ON d.id = h.dataset_id WHERE d.name = %s FOR UPDATE OF h",
            [self.dataset],
        )
        return next(iter(self.replies(key)), None)

    def replies(self, key: str | None = None) -> list[Reply]:
        """Every stored reply, or that of one key."""
        rows = self._rows(
            "SELECT idempotency_key, seq, body FROM answers a JOIN datasets d ON d.id = a.dataset_id"
            " WHERE d.name = %s AND principal_id = %s AND coalesce(idempotency_key = %s, true)"
            " ORDER BY seq, idempotency_key",
            [self.dataset, self.analyst.id, key],
        )
        return [_reply(each, seq, bytes(body)) for each, seq, body in rows]

    def check_witness(self, witness: Witness) -> None:
        """Raises AssertionError unless the witness has seen whatever anybody has seen a byte of.

        That is so at every instant, and to be asked before a process starts again: it makes up for what is missing.
        """
        store = PostgresStore(self.database_url, LEDGER_KEY)
        try:
            seen = self._seen(self.replies())
            assert seen <= _witnessed(store, self.dataset, witness), "an answer was seen that is not witnessed"
        finally:
            store.close()

    def audit(self, witness: Witness | None = None) -> History:
        """Replay everything; raises AssertionError with every finding. Returns what was looked at.

        The witness, if there is one, must have seen whatever anybody has seen.
        """
        replies = self.replies()
        makers = {reply.seq: reply.key for reply in replies if not orjson.loads(reply.body)["reused"]}
        store = PostgresStore(self.database_url, LEDGER_KEY)
        try:
            findings = [finding for report in verify_all(store, witness) for finding in report.findings]
            entries = _entries(store, self.dataset, makers)
            if witness is not None and self._seen(replies) > _witnessed(store, self.dataset, witness):
                findings.append("an answer was seen that is not witnessed")
        finally:
            store.close()
        budget = max(self.limits.values()) + RESERVE_UNITS
        history = History(
            rule=self.rule,
            limits=self.limits,
            costs={name: question.costs() for name, question in QUESTIONS.items()},
            thresholds={name: ceil(budget * each.share) for name, each in QUESTIONS.items()},
            shortened={name: each.part for name, each in QUESTIONS.items() if each.query.get("rule") == "clip"},
            attempts=tuple(self.attempts),
            entries=entries,
            replies=replies,
            readings=tuple(self.readings),
            ticks=Ticks(
                question=TICK,
                coefficients=tuple(coefficients(MONITOR["ticks"]).tolist()),
                threshold=ceil(budget * Fraction(MONITOR["share"])),
            ),
            curves=tuple(self.curves),
        )
        findings += violations(history)
        if self._view() != _replayed(entries):
            findings.append("the view of the budgets does not show what the ledger gives")
        assert not findings, "; ".join(findings)
        return history

    def _seen(self, replies: Sequence[Reply]) -> int:
        """The last entry of which anybody saw a byte."""
        answered = {attempt.key for attempt in tuple(self.attempts) if attempt.status == 200}
        return max((reply.seq for reply in replies if reply.key in answered), default=0)

    def _view(self) -> dict[int, int]:
        rows = spent_in(self._open_connection(), LEDGER_KEY)
        return {int((row.key or "").removeprefix("p")): row.spent_units for row in rows if row.dataset == self.dataset}

    def _rows(self, statement: LiteralString, values: list[object]) -> list[tuple[Any, ...]]:
        """Past the service, over a connection of our own."""
        return self._open_connection().execute(statement, values).fetchall()

    def _open_connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        """Opened again where the database has ended it."""
        if self.connection.closed:
            self.connection = psycopg.connect(self.database_url, autocommit=True)
        return self.connection


@contextmanager
def staged(database_url: str, *, questions: int) -> Iterator[Stage]:
    """Twenty-four people under either rule; about half of them run out in the course of so many queries.

    The dataset's name was never used before: replicas of other stages share the witness's folder.
    """
    name = uuid4()
    dataset, rule = f"survey-{name.hex}", "drop" if name.int % 2 else "skip"
    rhos = [Fraction(questions, 64) * (1 + slot % 8) / 4 for slot in range(PEOPLE)]
    rows = [
        {
            "person_id": f"p{slot}",
            "country": "NO" if _in_norway(slot) else "SE",
            "age": _age(slot),
            "image": None if slot % 5 == 0 else [4 * slot, 64],
            "limit_rho": float(rho),
        }
        for slot, rho in enumerate(rhos)
    ]
    document = {
        "name": dataset,
        "guarantee": {"rho": str(float(max(rhos)))},
        "capacity": 1000,
        "rule": rule,
        "limit_floor_rho": str(float(min(rhos))),
        "monitor": MONITOR,
        "tables": {"people": {"kind": "individuals", "key": "person_id", "columns": COLUMNS}},
    }
    with open_replica(database_url) as (_, replica):
        replica.curators.register(Registration.model_validate(document))
        lines = io.BytesIO(b"\n".join(map(orjson.dumps, rows)))
        replica.curators.append_rows(dataset, "people", "application/x-ndjson", lines)
        analyst, analyst_key = replica.principals.create(role="analyst", name="ana", dataset=dataset)
        _, curator_key = replica.principals.create(role="curator", name="cur", dataset=dataset)
    stage = Stage(
        database_url=database_url,
        dataset=dataset,
        rule=rule,
        limits={slot: int(rho / UNIT) - RESERVE_UNITS for slot, rho in enumerate(rhos)},
        analyst=analyst,
        analyst_key=analyst_key,
        curator_key=curator_key,
        connection=psycopg.connect(database_url, autocommit=True),
    )
    try:
        yield stage
    finally:
        stage.connection.close()


def _replayed(entries: Sequence[Entry]) -> dict[int, int]:
    spent = dict.fromkeys(range(PEOPLE), 0)
    for entry in entries:
        for slot, units in entry.charged.items():
            spent[slot] += units
    return spent


def _witnessed(store: Store, dataset: str, witness: Witness) -> int:
    record = store.dataset(dataset)
    if record is None:
        return 0
    return max((each.seq for each in witness.history(witness_name(record))), default=0)


def _entries(store: Store, dataset: str, makers: Mapping[int, str]) -> list[Entry]:
    record = store.dataset(dataset)
    if record is None:  # not even the registration has outlived what was done to the database
        return []
    with store.transaction(record.id, lock=False) as transaction:
        rows = list(transaction.entries(after=0))
    return [_entry(row, makers) for row in rows]


def _entry(row: LedgerEntry, makers: Mapping[int, str]) -> Entry:
    """The charges of an entry; of a tick, which charges nobody, its number and its contributions."""
    charged, charges, left_out = (array.tolist() for array in row.decode())
    paid = {slot: units for slot, units in zip(charged, charges, strict=True) if units or not row.tick}
    told = row.quantities()
    added = zip(told.touched.tolist(), map(isqrt, told.amounts.tolist()), strict=True)
    return Entry(
        seq=row.seq,
        made_by=makers.get(row.seq, f"nobody ({row.seq})"),
        charged=paid,
        left_out=frozenset(left_out),
        tick=row.tick,
        value=ldexp(int(row.steps()[0]), row.grid_log2) if row.tick else 0.0,
        added=dict(added) if row.tick else {},
    )


def _reply(key: str, seq: int, body: bytes) -> Reply:
    told = orjson.loads(body)
    tick = told.get("tick", 0)
    return Reply(key=key, seq=seq, body=body, tick=tick, value=told["values"][0] if tick else 0.0)


_WITNESSES: dict[str, MemoryWitness] = {}  # one for all replicas on a database


@contextmanager
def open_replica(database_url: str, entropy: Entropy = system_entropy) -> Iterator[tuple[PostgresStore, Replica]]:
    """A replica in this process: a store and a replica of its own."""
    store = PostgresStore(database_url, LEDGER_KEY)
    witness = _WITNESSES.setdefault(database_url, MemoryWitness())
    replica = Replica(store=store, witness=witness, pepper=_PEPPER, entropy=entropy, clock=now)
    try:
        yield store, replica
    finally:
        replica.close()
        store.close()
