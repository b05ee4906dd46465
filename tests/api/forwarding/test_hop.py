"""A request is run for another process only as that process has sealed it."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from starlette.types import Scope

from service.api.forwarding.hop import echo, is_reply, new_hop_id, sealed, sealed_id
from service.api.forwarding.request_head import HOP_HEADER, head_of
from service.ledger.model.api_keys import Pepper
from service.ledger.model.rows import ReplicaAddress
from service.writer.replication.ownership import Ownership
from tests.memory.cache import MemoryLeases

ID = b"0123456789abcdef" * 2
Change = Callable[[Scope], None]


def replica(number: int, pepper: bytes = b"p" * 32) -> Ownership:
    """A process."""
    address = ReplicaAddress(id=UUID(int=number), url="")
    return Ownership(leases=MemoryLeases(), replica=address, pepper=Pepper(pepper))


OURS, OWNER = replica(1), replica(2)


def request(**changed: Any) -> Scope:
    """A request of an analyst, as a process has received it."""
    headers = [(b"host", b"h"), (b"authorization", b"Bearer k"), (b"content-length", b"3")]
    made: Scope = {"method": "POST", "path": "/v1/x", "raw_path": b"/v1/x", "query_string": b"", "headers": headers}
    return {**made, "state": {"request_id": "mine"}, **changed}


def sent(scope: Scope, hop_id: bytes = ID, *, by: Ownership = OURS, to: Ownership = OWNER) -> Scope:
    """The request as its owner has parsed it."""
    lines = sealed(head_of(scope), hop_id, to.replica, by).split(b"\r\n")
    headers = [(name, value) for name, _, value in (line.partition(b": ") for line in lines[1:] if line)]
    return {**scope, "headers": headers}


def replaced(name: bytes, value: bytes) -> Change:
    """Another value of a header."""

    def change(scope: Scope) -> None:
        scope["headers"] = [(each, value if each == name else old) for each, old in scope["headers"]]

    return change


def added(name: bytes, value: bytes) -> Change:
    """One more header."""
    return lambda scope: scope["headers"].append((name, value))


def test_a_request_fits_its_own_seal_and_the_reply_repeats_its_id() -> None:
    """At the replica for which it was sealed."""
    scope = sent(request())
    assert sealed_id(scope, OWNER) == ID
    assert is_reply([(HOP_HEADER, ID)], ID)
    assert echo(scope) == {"x-sparing-hop": ID.decode()}


@pytest.mark.parametrize(
    "change",
    [
        lambda scope: scope.update(method="DELETE"),
        lambda scope: scope.update(raw_path=b"/v1/y"),
        lambda scope: scope.update(query_string=b"a"),
        replaced(b"authorization", b"Bearer l"),
        replaced(b"content-length", b"4"),
        replaced(b"content-length", b"x"),
        replaced(HOP_HEADER, b"1"),
        replaced(HOP_HEADER, ID + b"." + b"0" * 64),
        added(b"transfer-encoding", b"chunked"),
        added(b"idempotency-key", b"k"),
        added(b"x-other", b"v"),
        added(HOP_HEADER, b"1"),
        lambda scope: scope["headers"].pop(),
    ],
)
def test_a_request_that_was_changed_fits_no_seal(change: Change) -> None:
    """Its line, a header, its length, one header more, a second seal or none."""
    scope = sent(request())
    change(scope)
    assert sealed_id(scope, OWNER) is None


def test_a_seal_is_for_one_replica_and_by_one_that_has_the_pepper() -> None:
    """The proof of a greeting, which anybody can ask for, is none either."""
    assert sealed_id(sent(request()), OURS) is None
    assert sealed_id(sent(request(), by=replica(1, b"q" * 32)), OWNER) is None
    message = ID + b"\n" + head_of(request()).encoded()
    greeted = sent(request())
    replaced(HOP_HEADER, ID + b"." + OWNER.proof(message))(greeted)
    assert sealed_id(greeted, OWNER) is None


@pytest.mark.parametrize("headers", [[], [(HOP_HEADER, b"f" * 32)], [(HOP_HEADER, ID)] * 2])
def test_any_other_reply_is_none(headers: list[tuple[bytes, bytes]]) -> None:
    """Without an id, with another's, with two."""
    assert not is_reply(headers, ID)


def test_ids_are_fresh() -> None:
    """A client cannot know the next one."""
    assert len({new_hop_id() for _ in range(100)}) == 100
