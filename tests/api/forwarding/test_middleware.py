"""Requests that concern a dataset are answered by its owner, whichever process receives them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.forwarding.hop import CONNECTION, ConnectionState
from service.api.forwarding.middleware import Forwarding
from service.api.forwarding.request_head import HOP_HEADER
from service.api.middleware.request_context import UNMATCHED
from service.ledger.model.rows import ReplicaAddress
from service.ledger.ports.cache import NoCache
from service.ledger.ports.store import StoreUnavailable
from service.workflows import principals
from service.writer.admission.rate_limit import Limiter, Rate
from service.writer.replication.ownership import LEASE_S
from tests.api.neighbours import Neighbours, ask_sealed, neighbours, visible
from tests.api.route_table import ROUTES, Route
from tests.api.world import COUNT, CSV, PEOPLE, World, client_of
from tests.memory.cache import MemoryLeases
from tests.rotation import some_of
from tests.waiting import until_async

FRESH = COUNT.replace(b"20.0", b"21.0")
CASES = [(route, role) for route in ROUTES for role in sorted(route.roles)]
WHOLE = {"/v1/datasets", "/v1/principals", "/v1/principals/{principal}", "/v1/queries", "/v1/queries/{query_id}"}
WHOLE |= {"/v1/allowances", "/v1/session", "/v1/principals/{principal}/key", "/v1/files/preview"}


@pytest.fixture
async def pair() -> AsyncIterator[Neighbours]:
    """An owner and its neighbour."""
    async with neighbours() as made:
        yield made


def concerns_dataset(route: Route, role: str) -> bool:
    """Tell whether a call concerns one dataset; an individual has one."""
    return route.template not in WHOLE or role == "individual"


async def forwarded(pair: Neighbours, expected: int) -> int:
    """The requests that the neighbour has forwarded; one is counted a little after its response has left."""
    await until_async(lambda: pair.other_counts.of("forwarded") >= expected)
    return pair.other_counts.of("forwarded")


async def test_every_read_gives_the_same_through_either(pair: Neighbours) -> None:
    """Status, headers in their order and bytes; what concerns a dataset is forwarded, and loaded by its owner alone."""
    forwards = 0
    for route, role in CASES:
        if route.method == "GET":
            there = await route.call(pair.other, role)
            assert there.status_code == route.status, route
            assert visible(there) == visible(await route.call(pair.owner, role)), route
            forwards += concerns_dataset(route, role)
            assert await forwarded(pair, forwards) == forwards, route
    assert pair.loaded() == 0


@pytest.mark.parametrize(("route", "role"), some_of([each for each in CASES if each[0].method != "GET"], 2), ids=str)
async def test_every_change_gives_the_same_through_either(pair: Neighbours, route: Route, role: str) -> None:
    """Status and headers in their order; what concerns a dataset is forwarded, and loaded by its owner alone."""
    there = await route.call(pair.other, role)
    async with neighbours() as fresh:
        here = await route.call(fresh.owner, role)
    assert there.status_code == here.status_code == route.status
    assert [each for each, _ in there.headers.raw] == [each for each, _ in here.headers.raw]
    expected = concerns_dataset(route, role)
    assert await forwarded(pair, expected) == expected
    assert pair.loaded() == 0


async def test_a_key_is_executed_once_at_any_process(pair: Neighbours) -> None:
    """The neighbour's answer is the owner's, byte for byte."""
    first = await pair.other.ask("k", FRESH)
    assert first.status_code == 200
    assert (await pair.owner.ask("k", FRESH)).content == first.content
    assert (await pair.other.ask("k", FRESH)).content == first.content


async def test_an_upload_goes_through(pair: Neighbours) -> None:
    """All of it, and its refusals too."""
    rows = b"person_id,country,age\n" + b"".join(b"p%d,NO,40\n" % n for n in range(900))
    path = "/v1/datasets/care/tables/people/rows"
    done = await pair.other.call("curator", "POST", path, headers=CSV, content=rows)
    assert done.json()["individuals"] == 900
    twice = await pair.other.call("curator", "POST", path, headers=CSV, content=PEOPLE)
    assert (twice.status_code, twice.json()["errors"][0]["field"]) == (422, "rows[1].person_id")
    large = await pair.other.call("curator", "POST", path, headers=CSV, content=b"x" * (2**20 + 1))
    assert large.status_code == 413


async def test_what_concerns_no_dataset_that_the_caller_may_name_is_answered_here(pair: Neighbours) -> None:
    """A stranger cannot tell by the way of a request which datasets there are."""
    for role, method, path, status in (
        (None, "GET", "/v1/datasets/care", 401),
        (None, "GET", "/v1/datasets/nothing", 401),
        ("curator", "GET", "/v1/datasets/nothing", 404),
        ("curator", "GET", "/v1/datasets/ca%00re", 404),
        ("curator", "OPTIONS", "/v1/datasets/care", 405),
        ("curator", "GET", "/v1/nothing", 404),
        ("curator", "GET", "/livez", 200),
        ("individual", "GET", "/livez", 200),
        (None, "GET", "/openapi.json", 200),
    ):
        response = await pair.other.call(role, method, path)
        assert (path, response.status_code) == (path, status)
    assert pair.other_counts.of("forwarded") == 0


async def test_the_owner_checks_the_key_again(pair: Neighbours, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that was revoked at the owner is refused at once, though the neighbour still remembers it."""
    monkeypatch.setattr(principals, "REMEMBERED_FOR", timedelta(days=1))  # however slow the machine is
    assert (await pair.other.ask("k", FRESH)).status_code == 200
    await pair.owner.call("curator", "DELETE", f"/v1/principals/{pair.owner.ids['analyst']}")
    refused = await pair.other.ask("k", FRESH)
    assert (refused.status_code, await forwarded(pair, 2)) == (401, 2)


async def test_a_forwarded_request_takes_one_token(pair: Neighbours) -> None:
    """The owner asks the limiter; the process in between does not."""
    for world in (pair.owner, pair.other):
        world.replica.limiter = Limiter(Rate(per_s=1, burst=2), NoCache(), clock=lambda: 5.0)
    statuses = [(await pair.other.ask("k", FRESH)).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]


async def test_a_request_is_forwarded_once(pair: Neighbours) -> None:
    """A process that is not the owner either refuses what was forwarded to it, and says that it has not started."""
    refused = await ask_sealed(pair.other, FRESH, by=pair.owning, to=pair.others)
    assert (refused.status_code, refused.json()["type"]) == (503, "urn:sparing:problem:unavailable")
    assert (refused.headers["retry-after"], refused.headers["x-not-started"]) == ("1", "1")
    assert len(refused.headers[HOP_HEADER.decode()]) == 32
    assert pair.other_counts.of("forwarded") == 0
    served = await ask_sealed(pair.owner, FRESH, by=pair.others, to=pair.owning)
    assert served.status_code == 200


@pytest.mark.parametrize("forged", ["1", "0123456789abcdef" * 2 + "." + "0" * 64])
async def test_nothing_is_run_without_a_seal_that_fits(pair: Neighbours, forged: str) -> None:
    """A client that writes the header, or a request that was changed on its way: 400, and the connection ends."""
    invented = await pair.owner.ask("k", FRESH, headers={HOP_HEADER.decode(): forged})
    changed = await ask_sealed(pair.owner, FRESH, by=pair.others, to=pair.owning, changed=b"text/csv")
    for refused in (invented, changed):
        assert (refused.status_code, refused.headers["connection"]) == (400, "close")
        assert refused.json()["type"] == "urn:sparing:problem:malformed-request"
    assert (await pair.other.ask("k", FRESH)).headers.get("idempotent-replayed") is None
    assert pair.owner_counts.of("unsealed") == 2


async def test_a_greeted_connection_carries_sealed_requests_alone(pair: Neighbours) -> None:
    """A request that stands in another's body would come without a seal."""
    connection = ConnectionState()
    asked = replace(pair.owner, client=client_of(on(connection, pair.owner.app)))
    async with asked.client:
        greeted = await ask_sealed(asked, by=pair.others, to=pair.owning, path="/forwarding")
        proof = greeted.content
        assert pair.others.is_proof(pair.owning.replica, greeted.headers[HOP_HEADER.decode()].encode(), proof)
        assert connection.is_of_a_replica
        assert (await asked.call("curator", "GET", "/v1/datasets")).status_code == 400
        assert (await ask_sealed(asked, FRESH, by=pair.others, to=pair.owning)).status_code == 200


async def test_a_greeting_without_a_seal_is_none(pair: Neighbours) -> None:
    """A proxy keeps connections that all its clients share: one of them must not change what the next may send."""
    connection = ConnectionState()
    asked = replace(pair.owner, client=client_of(on(connection, pair.owner.app)))
    async with asked.client:
        for role in (None, "analyst"):
            assert (await asked.call(role, "GET", "/forwarding")).status_code == 404
        assert not connection.is_of_a_replica
        assert (await asked.call("curator", "GET", "/v1/datasets")).status_code == 200


def on(connection: ConnectionState, app: ASGIApp) -> ASGIApp:
    """An application whose requests all come on one connection."""

    async def connected(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"] = {CONNECTION: connection}
        await app(scope, receive, send)

    return connected


async def test_an_owner_that_is_not_there_any_more_is_followed(pair: Neighbours) -> None:
    """While its lease lasts the answer is 503 with Retry-After; then the neighbour takes the dataset over."""
    assert (await pair.other.ask("k", FRESH)).status_code == 200
    await pair.die()
    refused = await pair.other.ask("l", FRESH)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    pair.clock.now_s += LEASE_S
    assert (await pair.other.ask("l", FRESH)).status_code == 200
    assert pair.loaded() == 1


async def test_a_free_dataset_is_taken_over_within_the_request(pair: Neighbours) -> None:
    """An owner that has released it and is gone: the body that was taken for it is not lost."""
    assert (await pair.other.ask("k", FRESH)).status_code == 200
    await pair.die()
    MemoryLeases.release(pair.leases, pair.owning.replica)
    assert (await pair.other.ask("l", FRESH)).status_code == 200
    assert pair.other_counts.of("POST /v1/datasets/{dataset}/queries") == 1


async def test_an_owner_that_leaves_hands_over_without_a_refusal(pair: Neighbours) -> None:
    """It says that it has not started; the neighbour claims the dataset and answers with the same body."""
    assert (await pair.other.ask("k", FRESH)).status_code == 200
    pair.owner.app.state.drain_state.drain()
    pair.owning.step()
    assert (await pair.other.ask("l", FRESH)).status_code == 200
    assert pair.loaded() == 1


async def test_an_owner_that_leaves_is_waited_for_until_its_lease_is_released(pair: Neighbours) -> None:
    """It refuses from its signal on, and the store takes a moment to release the lease."""
    assert (await pair.other.ask("k", FRESH)).status_code == 200
    pair.leases.may_release.clear()
    pair.owner.app.state.drain_state.drain()
    asked = asyncio.create_task(pair.other.ask("l", FRESH))
    await until_async(lambda: pair.owner_counts.of(UNMATCHED) > 0)
    pair.leases.may_release.set()
    assert (await asked).status_code == 200
    assert pair.loaded() == 1


async def test_a_request_that_came_just_before_the_owner_leaves_is_sent_back(pair: Neighbours) -> None:
    """The owner has released the lease before it looks up the owner of the dataset: it says that it has not started."""
    assert (await pair.other.ask("k", FRESH)).status_code == 200
    pair.owning.leave()
    pair.owning.step()
    refused = await ask_sealed(pair.owner, FRESH, by=pair.others, to=pair.owning)
    assert (refused.status_code, refused.headers["x-not-started"]) == (503, "1")
    assert (await pair.other.ask("l", FRESH)).status_code == 200


async def test_an_owner_that_is_not_the_owner_any_more_says_so(pair: Neighbours) -> None:
    """A remembered owner may be old: the request goes to the process that has claimed the dataset since."""
    assert (await pair.other.ask("k", FRESH)).status_code == 200
    pair.leases.release(pair.owning.replica)
    pair.others.invalidate(1, pair.owning.replica)
    pair.others.claim(1)
    pair.owning.step()
    assert (await pair.other.ask("l", FRESH)).status_code == 200
    refused = await pair.owner.ask("m", FRESH)  # nobody listens at the neighbour's address here
    assert (refused.status_code, refused.headers["x-not-started"]) == (503, "1")


async def test_a_database_that_is_away_is_said_once(pair: Neighbours, monkeypatch: pytest.MonkeyPatch) -> None:
    """503 for every request that waits for the same claim, and a new claim for later ones."""
    claims: list[int] = []

    def gone(_leases: MemoryLeases, dataset_id: int, _replica: ReplicaAddress, *, lease_s: float) -> None:
        claims.append(dataset_id)
        raise StoreUnavailable

    monkeypatch.setattr(MemoryLeases, "claim", gone)
    refused = await asyncio.gather(*(pair.other.ask(f"k{n}", FRESH) for n in range(5)))
    assert {response.status_code for response in refused} == {503}
    assert len(claims) < 5
    monkeypatch.undo()
    assert (await pair.other.ask("k0", FRESH)).status_code == 200


def test_a_replica_without_ownership_forwards_nothing(world: World, pair: Neighbours) -> None:
    """The layer is absent if nothing is held: each process answers for itself."""
    layers = [[layer.cls for layer in each.app.user_middleware] for each in (pair.other, world)]
    assert [layer.count(Forwarding) for layer in layers] == [1, 0]  # type: ignore[arg-type]
