"""Requests that concern one dataset go to the process that owns it (`service.writer.replication.ownership`).

A request concerns the dataset to which its caller is bound, or else the one that its path names. It is forwarded at
most once, with a new head and its body as it came. The receiver checks the key, the rate limit and everything else
again, so that it need not trust the process in between. An unknown caller is answered here, as in every process.

This layer stands outside the release slots: the owner holds a response, which is passed on when it comes.
"""

import asyncio
import re
from collections.abc import Callable, Hashable
from functools import partial
from typing import Final, TypeVar

from fastapi import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.auth import authenticated
from service.api.forwarding.exchange import GREETING_PATH, Body, ForwardingClient
from service.api.forwarding.hop import CONNECTION, ConnectionState, is_on_a_hop, repeating, sealed_id
from service.api.middleware.request_context import COUNTED_AS, FORWARDED, GREETING, NOT_STARTED, UNSEALED
from service.api.places import current_places
from service.api.problems import REFUSALS, Refusal, request_id_of, response_of
from service.ledger.model.errors import NotFound, Unavailable
from service.ledger.model.rows import DatasetRecord, ReplicaAddress
from service.ledger.model.views import Principal
from service.ledger.ports.telemetry import NULL_TELEMETRY, Telemetry
from service.workflows.replica import Replica
from service.writer.replication.ownership import Ownership

T = TypeVar("T")

METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
"""The methods that are forwarded. Others have no route: each process refuses them by itself."""
PAUSES_S: Final = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4)
"""The pause before each attempt: an owner that leaves refuses requests a moment before its lease is released."""
_CONCERNED: Final = "/v1/"
"""The beginning of the paths that are forwarded.

Others are probes, pages and the description, which each process has.
"""
_NAMED: Final = re.compile(r"/v1/datasets/([^/\0]+)(?:/[^\0]*)?", re.DOTALL)


class Forwarding:
    """Forwards a request whose owner is another process, refuses one without an owner, and passes on all others."""

    def __init__(
        self, app: ASGIApp, *, replica: Replica, ownership: Ownership, telemetry: Telemetry = NULL_TELEMETRY
    ) -> None:
        self.app = app
        self._replica, self._ownership = replica, ownership
        self._client = ForwardingClient(ownership, telemetry=telemetry)
        self._claims: dict[int, asyncio.Future[ReplicaAddress]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward, refuse or pass on a request. On a connection of another process nothing is run without its seal."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif is_on_a_hop(scope):
            hop_id = sealed_id(scope, self._ownership)
            if hop_id is None:
                scope["state"][COUNTED_AS] = UNSEALED
                refusal = Refusal("malformed-request", headers={"Connection": "close"})
                await response_of(refusal, request_id_of(scope))(scope, receive, send)
            elif scope["path"] == GREETING_PATH:
                scope["state"][COUNTED_AS] = GREETING
                await self._greeting(scope, hop_id)(scope, receive, repeating(hop_id, send))
            else:
                await self._pass(scope, receive, repeating(hop_id, send), is_last_hop=True)
        else:
            await self._pass(scope, receive, send, is_last_hop=False)

    async def _pass(self, scope: Scope, receive: Receive, send: Send, *, is_last_hop: bool) -> None:
        """Pass a request on to the layers within, or to the owner, or refuse it without an owner."""
        if scope["method"] not in METHODS:
            await self.app(scope, receive, send)
            return
        try:
            caller = await self._caller(scope)
            record = None if caller is None else await self._concerned(scope, caller)
            known = None if record is None else self._ownership.at_hand(record.id)
            owner = known if record is None else known or await self._claim(record.id, scope)
        except REFUSALS as refusal:
            reply = _not_owner() if isinstance(refusal, Unavailable) else refusal  # which says that this process leaves
            await response_of(reply, request_id_of(scope))(scope, receive, send)
            return
        if caller is None or record is None or owner is None or self._ownership.is_here(owner):
            await self.app(scope, receive, send)
        elif is_last_hop:
            await response_of(_not_owner(), request_id_of(scope))(scope, receive, send)
        else:
            await self._forward(caller, record, owner, scope, receive, send)

    async def _forward(
        self,
        caller: Principal,
        record: DatasetRecord,
        owner: ReplicaAddress,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Have the owner answer. If it has not started, ask the next owner, which may be this process."""
        body = Body(receive)
        scope["state"][COUNTED_AS] = FORWARDED
        try:
            for pause_s in PAUSES_S:
                await asyncio.sleep(pause_s)
                if await self._client.carry(owner, caller.id, scope, body, send):
                    return
                self._ownership.invalidate(record.id, owner)
                owner = self._ownership.at_hand(record.id) or await self._claim(record.id, scope)
                body = body.rewound()
                if self._ownership.is_here(owner):
                    break
            else:
                raise _not_owner()
        except REFUSALS as refusal:
            await response_of(refusal, request_id_of(scope))(scope, body.receive, send)
            return
        del scope["state"][COUNTED_AS]
        await self.app(scope, body.receive, send)

    async def _caller(self, scope: Scope) -> Principal | None:
        """The request's principal; None for a stranger, and for a path that concerns no dataset."""
        if not scope["path"].startswith(_CONCERNED):
            return None
        return await authenticated(Request(scope), self._replica)

    async def _concerned(self, scope: Scope, caller: Principal) -> DatasetRecord | None:
        """The one dataset that a caller's request concerns; None if it concerns none or all."""
        named = _NAMED.fullmatch(scope["path"])
        name = caller.dataset or (named and named[1])
        if not name:
            return None
        registry = self._replica.registry
        try:
            return registry.remembered(name) or await self._in_owners(scope, caller.id, partial(registry.record, name))
        except NotFound:
            return None

    async def _claim(self, dataset_id: int, scope: Scope) -> ReplicaAddress:
        """The owner by the store. Concurrent requests share one claim. Raises StoreUnavailable, Unavailable."""
        claim = self._claims.get(dataset_id)
        if claim is None:
            claim = asyncio.ensure_future(self._in_owners(scope, None, partial(self._ownership.claim, dataset_id)))
            self._claims[dataset_id] = claim
            claim.add_done_callback(lambda done: self._claimed(dataset_id, done))
        return await asyncio.shield(claim)

    @staticmethod
    async def _in_owners(scope: Scope, owner: Hashable, work: Callable[[], T]) -> T:
        """Do work in a thread of the place `owners`."""
        return await current_places(Request(scope)).owners.run(owner, work)

    def _claimed(self, dataset_id: int, claim: "asyncio.Future[ReplicaAddress]") -> None:
        del self._claims[dataset_id]
        if not claim.cancelled():
            claim.exception()  # the requests that waited may have gone

    def _greeting(self, scope: Scope, challenge: bytes) -> PlainTextResponse:
        """The proof that this process is its replica. After it the connection carries forwarded requests alone."""
        connection: ConnectionState | None = scope["state"].get(CONNECTION)
        if connection is not None:
            connection.is_of_a_replica = True
        return PlainTextResponse(self._ownership.proof(challenge))


def _not_owner() -> Refusal:
    return Refusal(Unavailable.slug, headers={"Retry-After": str(Unavailable.retry_after_s), NOT_STARTED: "1"})
