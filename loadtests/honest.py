"""Three honest principals. Each of their requests has one right answer, so that a wrong one is found by its content.

No two successive requests have the same answer: pages differ by their length, datasets by their name, and an analyst
repeats queries that differ by their noise.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Final

from loadtests.raw_http import Address, Cut, Reply, Wire, request_of
from loadtests.rig import Rig
from loadtests.smuggling import DATASET, QUERIES

PEOPLE: Final = 50
SIGMAS: Final = range(20, 44)
PAGES: Final = range(1, 8)
SECOND: Final = "e"
_CONNECTIONS: Final = 3
_REQUESTS_OF_CONNECTION: Final = 40
_MAY_REFUSE: Final = frozenset({429, 502, 503, 504})
SECRETS: Final = (b'"spent_units"', b'"promise_rho"', b'"charged_rho"', b'"sigma":')
"""Members that only answers to others have: no reply to the attacker may hold one."""


Fits = Callable[[Any], bool]


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request, the name of its route, and a check of its answer."""

    data: bytes
    route: str
    fits: Fits


@dataclass(kw_only=True)
class Seen:
    """The answers that honest principals have seen."""

    answers: int = 0
    wrong: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    sent: Counter[str] = field(default_factory=Counter)

    def take(self, who: str, request: Request, reply: Reply) -> None:
        """Judge one answer by its content."""
        if reply.status in _MAY_REFUSE:
            self.refused[str(reply.status)] += 1
            return
        self.answers += 1
        try:
            is_right = reply.status == 200 and request.fits(json.loads(reply.body))
        except (ValueError, LookupError, TypeError, AttributeError):
            is_right = False
        if not is_right:
            self.wrong.append(f"{who}, {request.route}: {reply.status} {reply.body[:100]!r}")


@dataclass(frozen=True, kw_only=True)
class Principals:
    """The keys of a prepared service."""

    curator: str
    analyst: str
    individual: str
    attacker: str

    def requests(self) -> dict[str, Sequence[Request]]:
        """The requests of each honest principal, in their order."""
        return {"curator": [*self._curators()], "analyst": [*self._analysts()], "individual": [*self._individuals()]}

    def _curators(self) -> Iterator[Request]:
        for length in PAGES:
            for name in (DATASET, SECOND):
                yield Request(
                    data=request_of("GET", f"/v1/datasets/{name}", self.curator),
                    route="GET /v1/datasets/{dataset}",
                    fits=_dataset(name),
                )
            yield Request(
                data=request_of("GET", f"/v1/datasets/{DATASET}/budgets?limit={length}", self.curator),
                route="GET /v1/datasets/{dataset}/budgets",
                fits=_page(length, "spent_units"),
            )

    def _analysts(self) -> Iterator[Request]:
        for number, sigma in enumerate(SIGMAS):
            yield Request(
                data=ask(self.analyst, sigma), route="POST /v1/datasets/{dataset}/queries", fits=_answer(sigma)
            )
            length = PAGES[number % len(PAGES)]
            yield Request(
                data=request_of("GET", f"/v1/queries?limit={length}", self.analyst),
                route="GET /v1/queries",
                fits=_page(length, "words"),
            )

    def _individuals(self) -> Iterator[Request]:
        for length in PAGES:
            yield Request(
                data=request_of("GET", "/v1/me/budgets", self.individual),
                route="GET /v1/me/budgets",
                fits=lambda told: [each["dataset"] for each in told] == [DATASET] and not told[0]["paused"],
            )
            yield Request(
                data=request_of("GET", f"/v1/me/receipts?limit={length}", self.individual),
                route="GET /v1/me/receipts",
                fits=_page(length, "charged_rho"),
            )


def _dataset(name: str) -> Fits:
    return lambda told: told["name"] == name and told["individuals"] == PEOPLE


def _page(length: int, member: str) -> Fits:
    return lambda told: len(told["items"]) == length and member in told["items"][0]


def _answer(sigma: int) -> Fits:
    return lambda told: told["sigma"] == float(sigma) and len(told["values"]) == 1


def ask(key: str, sigma: int) -> bytes:
    """A query with this noise, under a key of its own. Sent again, it has the same answer and costs nothing."""
    query = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": sigma}, "reuse": False}
    body = json.dumps(query).encode()
    return request_of("POST", QUERIES, key, body=body, more=f"Idempotency-Key: honest-{sigma}\r\n")


def prepare(rig: Rig) -> Principals:
    """Make two datasets, and principals of the first one with some answers."""
    for name in (DATASET, SECOND):
        columns = {"age": {"type": "integer", "lower": 0, "upper": 120}}
        tables = {"people": {"kind": "individuals", "key": "id", "columns": columns}}
        registration = {"name": name, "guarantee": {"rho": "1000"}, "capacity": 1000, "tables": tables}
        rig.curator.post("/v1/datasets", json=registration).raise_for_status()
        rows = "id,age\n" + "".join(f"p{n},{n}\n" for n in range(PEOPLE))
        path, headers = f"/v1/datasets/{name}/tables/people/rows", {"Content-Type": "text/csv"}
        rig.curator.post(path, content=rows.encode(), headers=headers).raise_for_status()
    keys = {
        name: str(rig.curator.post("/v1/principals", json={"name": name, "dataset": DATASET, **more}).json()["key"])
        for name, more in (
            ("curator", {"role": "curator"}),
            ("analyst", {"role": "analyst"}),
            ("individual", {"role": "individual", "individual": "p7"}),
            ("attacker", {"role": "analyst"}),
        )
    }
    unbound = str(rig.curator.headers["Authorization"]).removeprefix("Bearer ")
    return Principals(**{**keys, "curator": unbound})


async def ask_all(addresses: Sequence[Address], principals: Principals, seen: Seen, is_over: asyncio.Event) -> None:
    """Have every principal ask over a few connections, until `is_over` is set."""
    async with asyncio.TaskGroup() as group:
        for who, requests in principals.requests().items():
            for number in range(_CONNECTIONS):
                start = number * len(requests) // _CONNECTIONS
                turn = cycle([*requests[start:], *requests[:start]])
                places = cycle([*addresses[number % len(addresses) :], *addresses])
                group.create_task(_ask_on(who, turn, places, seen, is_over))


async def _ask_on(
    who: str, turn: Iterator[Request], places: Iterator[Address], seen: Seen, is_over: asyncio.Event
) -> None:
    """Ask on one connection after the other, so that each worker is asked."""
    while not is_over.is_set():
        try:
            wire = await Wire.to(next(places))
        except Cut:
            seen.refused["no connection"] += 1
            await asyncio.sleep(0.05)
            continue
        for _ in range(_REQUESTS_OF_CONNECTION):
            request = next(turn)
            seen.sent[request.route] += 1
            try:
                reply = await wire.ask(request.data)
            except Cut:
                seen.refused["cut"] += 1
                break
            seen.take(who, request, reply)
            if reply.closes or is_over.is_set():
                break
        wire.close()
