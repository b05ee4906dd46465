"""The seal of a forwarded request. It shows that its sender has the pepper, and sent exactly these bytes.

The seal covers the whole head and the replica for which it is meant. The owner makes the head again from what it has
parsed, and runs nothing that the seal does not fit. Its reply repeats the id of the hop.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.types import Message, Scope, Send

from service.api.forwarding.request_head import HOP_HEADER, RequestHead, head_of
from service.api.problems import REFUSALS
from service.ledger.model.rows import ReplicaAddress
from service.writer.replication.ownership import Ownership

CONNECTION: Final = "connection"
"""The place of the `ConnectionState` in a request's state, if the server keeps one."""

_HOP: Final = re.compile(rb"([0-9a-f]{32})\.([0-9a-f]{64})")
_ID_BYTES: Final = 16
drawn: Callable[[int], bytes] = getattr(os, "getrandom", os.urandom)  # the latter gives up the GIL


@dataclass(slots=True)
class ConnectionState:
    """The facts of a connection that concern each request on it."""

    is_of_a_replica: bool = False  # another process has greeted this one on it, and sends sealed requests alone


def new_hop_id() -> bytes:
    """A fresh id of a forwarded request; the request's own id is chosen by the client."""
    return drawn(_ID_BYTES).hex().encode()


def sealed(head: RequestHead, hop_id: bytes, owner: ReplicaAddress, ownership: Ownership) -> bytes:
    """The whole head on the wire, with its seal for `owner`."""
    encoded = head.encoded()
    return b"%b%b: %b.%b\r\n\r\n" % (encoded, HOP_HEADER, hop_id, ownership.seal(owner, _message(hop_id, encoded)))


def sealed_id(scope: Scope, ownership: Ownership) -> bytes | None:
    """The hop's id of a request that another process has sealed for this one; None if no seal fits the head."""
    hops = _hops(scope)
    found = _HOP.fullmatch(hops[0]) if len(hops) == 1 else None
    if found is None:
        return None
    try:
        head = head_of(scope)
    except REFUSALS:
        return None
    hop_id, seal = found.groups()
    return hop_id if head.dropped == 0 and ownership.is_seal(_message(hop_id, head.encoded()), seal) else None


def is_on_a_hop(scope: Scope) -> bool:
    """Tell whether a request bears a seal, valid or not, or comes on a connection for sealed requests alone."""
    connection: ConnectionState | None = scope["state"].get(CONNECTION)
    return (connection is not None and connection.is_of_a_replica) or HOP_HEADER in dict(scope["headers"])


def echo(scope: Scope) -> dict[str, str]:
    """The header by which a reply repeats the hop's id of a request; empty for a request without one."""
    found = _HOP.fullmatch(next(iter(_hops(scope)), b""))
    return {} if found is None else {HOP_HEADER.decode(): found[1].decode()}


def repeating(hop_id: bytes, send: Send) -> Send:
    """A `send` whose reply repeats the hop's id."""

    async def repeat(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], (HOP_HEADER, hop_id)]}
        await send(message)

    return repeat


def is_reply(headers: list[tuple[bytes, bytes]], hop_id: bytes) -> bool:
    """Tell whether a reply is the one to the request with this hop's id."""
    return [value for name, value in headers if name == HOP_HEADER] == [hop_id]


def _hops(scope: Scope) -> list[bytes]:
    return [value for name, value in scope["headers"] if name == HOP_HEADER]


def _message(hop_id: bytes, encoded: bytes) -> bytes:
    return hop_id + b"\n" + encoded
