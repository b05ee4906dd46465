"""The n-th round trip to the database fails, for n = 1 and on until a request needs no more: one route, one principal.

A round trip is what a client of Postgres waits for: a query, the end of a pipeline, a flush in one. The application,
the replica and the store are those of the service.
"""

import io
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, cast

import httpx
import psycopg
from psycopg import sql

from service.ledger.model.api_keys import Pepper
from service.maintenance.verify.report import verify_all
from service.run.adapters import now
from service.store.entropy import system_entropy
from service.store.postgres.store import PostgresStore
from service.workflows.readiness import READY_FOR
from service.workflows.replica import Replica
from tests.api.route_table import PUBLIC, ROUTES, Route
from tests.api.world import PEOPLE, World, build_world
from tests.faults.messages import RoundTrips
from tests.faults.proxy import Cut, CuttingProxy
from tests.keys import LEDGER_KEY
from tests.memory.cache import MemoryWitness
from tests.memory.store import MemoryStore

NOBODY = "nobody"
PROBES = [
    Route(method=method, template=template, roles=frozenset({NOBODY}))
    for method, template in sorted(PUBLIC, key=lambda each: each[::-1])
]
CASES = [(route, role) for route in [*ROUTES, *PROBES] for role in sorted(route.roles)]
CUTS = (Cut.BEFORE, Cut.REPLIED, Cut.ERROR)
# What a second delivery is told where the first was through, even if its reply was lost.
DONE_ALREADY = {
    "POST /v1/datasets": 409,
    "POST /v1/datasets/{dataset}/tables/{table}/rows": 422,
    "DELETE /v1/datasets/{dataset}/individual": 404,
    "DELETE /v1/principals/{principal}": 404,
}
ASKING = {"POST /v1/datasets/{dataset}/queries", "POST /v1/datasets/{dataset}/queries/batch"}
ED = PEOPLE.splitlines(keepends=True)[0] + b"ed,NO,44\n"
ROUND_TRIPS_MAX = 60


@dataclass(slots=True)
class Countdown:
    """Has the n-th round trip from now on fail, once."""

    cut: Cut
    left: int = 0
    door: threading.Lock = field(default_factory=threading.Lock)

    def decide(self) -> Cut:
        """The fate of this one."""
        with self.door:
            self.left -= 1
            return self.cut if self.left == 0 else Cut.NEVER

    def stop(self) -> bool:
        """Let everything pass from now on. Whether something failed."""
        with self.door:
            was_due, self.left = self.left <= 0, 0
        return was_due


@dataclass(slots=True)
class Clock:
    """Ours, and as much ahead as it is set."""

    ahead: timedelta = timedelta()

    def __call__(self) -> datetime:
        return now() + self.ahead


@dataclass(kw_only=True)
class Swept:
    """The world of the API's tests on a Postgres of ours; `deliveries` makes each request another one."""

    database_url: str
    world: World
    witness: MemoryWitness
    deliveries: int = 0

    @classmethod
    def of(cls, database_url: str) -> "Swept":
        """Build it."""
        store, witness = PostgresStore(database_url, LEDGER_KEY), MemoryWitness()
        # Only the tests of single routes look into the world's store.
        world = build_world(store=cast("MemoryStore", store), witness=witness)
        world.replica.close()
        store.close()
        return cls(database_url=database_url, world=world, witness=witness)

    async def sweep(self, route: Route, role: str, cut: Cut) -> int:
        """Every round trip fails once, at a replica that has served. Returns how many there were."""
        with self.opened(cut) as trial:
            trial.world.enrol("spare", "auditor")
            await trial.delivered(route, role)
            return await _first_clean(lambda n: trial.fails(route, role, n))

    async def sweep_cold(self, route: Route, role: str, cut: Cut) -> int:
        """Every round trip fails once, at a replica that has served nothing yet. Returns how many there were."""

        async def fails(n: int) -> bool:
            with self.opened(cut) as trial:
                return await trial.fails(route, role, n)

        return await _first_clean(fails)

    def count(self, table: str) -> int:
        """The number of rows of a table."""
        with psycopg.connect(self.database_url) as connection:
            ((number,),) = connection.execute(
                sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
            ).fetchall()
        return int(number)

    @contextmanager
    def opened(self, cut: Cut) -> Iterator["Trial"]:
        """A replica and an application behind a proxy; the ledger is verified at the end."""
        countdown, clock = Countdown(cut), Clock()
        with CuttingProxy(self.database_url, countdown.decide, reads=RoundTrips) as proxy:
            store = PostgresStore(proxy.url, LEDGER_KEY)
            replica = Replica(
                store=store, witness=self.witness, pepper=Pepper(b"p" * 32), entropy=system_entropy, clock=clock
            )
            app = self.world.app
            app.state.replica = replica
            client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://sparing")
            world = replace(self.world, replica=replica, app=app, client=client)
            try:
                yield Trial(swept=self, world=world, store=store, countdown=countdown, clock=clock)
                assert [finding for report in verify_all(store, self.witness) for finding in report.findings] == []
            finally:
                replica.close()
                store.close()


@dataclass(kw_only=True)
class Trial:
    """One replica in the sweep."""

    swept: Swept
    world: World
    store: PostgresStore
    countdown: Countdown
    clock: Clock

    async def delivered(self, route: Route, role: str) -> httpx.Response:
        """A request that nothing happens to."""
        self.swept.deliveries += 1
        return await self._deliver(_varied(route, self.swept.deliveries), role)

    async def fails(self, route: Route, role: str, n: int) -> bool:
        """The n-th round trip fails; the request is refused or answered. False when it has no n-th round trip."""
        self._restore(route)
        self.swept.deliveries += 1
        request, seq = _varied(route, self.swept.deliveries), self._seq()
        self.clock.ahead += READY_FOR  # a frequent caller is told the last finding
        self.countdown.left = n
        first = await self._deliver(request, role)
        failed = self.countdown.stop()
        self.clock.ahead += READY_FOR
        again = await self._deliver(request, role)
        place = (str(route), role, self.countdown.cut, n, first.text, again.text)
        _compare(route, first, again, failed=failed)
        done_already = None if _is_keyed_upload(route) else DONE_ALREADY.get(str(route))
        accepted = {route.status, done_already or route.status}
        assert again.status_code in accepted, place
        assert self._seq() == seq + (str(route) in ASKING), place
        return failed

    async def _deliver(self, route: Route, role: str) -> httpx.Response:
        return await route.call(self.world, None if role == NOBODY else role)

    def _restore(self, route: Route) -> None:
        """Have what the last request has taken away."""
        if str(route).startswith("DELETE /v1/datasets/{dataset}/individual"):
            self.world.replica.curators.append_rows("care", "people", "text/csv", io.BytesIO(ED))
        if str(route).startswith("DELETE /v1/principals"):
            self.world.enrol("spare", "auditor")

    def _seq(self) -> int:
        record = self.store.dataset("care")
        assert record is not None
        return self.store.head(record.id).seq


async def _first_clean(fails: Callable[[int], Awaitable[bool]]) -> int:
    """How often something failed, for n = 1 and on, until nothing did."""
    for n in range(1, ROUND_TRIPS_MAX):
        if not await fails(n):
            return n - 1
    raise RuntimeError("there is no end of round trips")


def _varied(route: Route, number: int) -> Route:
    """The request for other people, under another key."""
    headers, options = dict(route.headers), dict(route.options)
    if "Idempotency-Key" in headers:
        headers["Idempotency-Key"] = f"key {number}"
    if "content" in options:
        text = options["content"].replace(b'"b1"', b'"batched %d"' % number).replace(b"fa,", b"fa%d," % number)
        options["content"] = text.replace(b'{"version"', b'{"reuse":false,"version"')
    if isinstance(options.get("json"), dict) and options["json"].get("name") == "new":
        options["json"] = {**options["json"], "name": f"new{number}"}
    if isinstance(options.get("json"), dict) and "capacity" in options["json"] and "name" not in options["json"]:
        options["json"] = {"capacity": options["json"]["capacity"] + number}
    return replace(route, headers=headers, options=options)


def _compare(route: Route, first: httpx.Response, again: httpx.Response, *, failed: bool) -> None:
    """A refusal says nothing of what happened; an answer is the same for ever."""
    if first.status_code != route.status:
        assert failed, first.text
        _assert_says_nothing(first.json())
    elif route.template.endswith("/batch"):
        refused = [each for each in first.json()["answers"] if "status" in each]
        assert refused or again.content == first.content
        for each in refused:
            _assert_says_nothing(each)
    elif str(route) in ASKING or _is_keyed_upload(route):
        assert again.content == first.content


def _is_keyed_upload(route: Route) -> bool:
    """Tell whether it is an upload that may be sent again."""
    return route.template.endswith("/rows") and "Idempotency-Key" in route.headers


def _assert_says_nothing(problem: Mapping[str, Any]) -> None:
    """A refusal that is the same whatever happened."""
    assert problem["status"] == 503, problem
    assert problem["type"].rpartition(":")[2] in {"unavailable", "not-ready"}, problem
    assert problem.keys() == {"type", "title", "status", "detail", "request_id"}, problem
