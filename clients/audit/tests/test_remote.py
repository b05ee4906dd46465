"""The audit at a service that lies: it ends, with an error that says what could not be read."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from sparing import APIReplyError, SparingError
from sparing_audit.accountings import OF_RULES
from sparing_audit.remote import RemoteService

ROUTES = {"/v1/datasets": {"rule": "Rule"}, "/v1/datasets/{dataset}/queries": {"rule": "Rule", "mechanism": "Law"}}


def document(**schemas: Any) -> dict[str, Any]:
    """The description of an interface with such schemas."""
    paths = {}
    for path, fields in ROUTES.items():
        properties = {name: {"$ref": f"#/components/schemas/{kind}"} for name, kind in fields.items()}
        content = {"application/json": {"schema": {"properties": properties}}}
        paths[path] = {"post": {"requestBody": {"content": content}}}
    return {"paths": paths, "components": {"schemas": {"Rule": {"enum": ["skip"]}, "Law": {}} | schemas}}


def service(*replies: httpx.Response) -> RemoteService:
    """A service that gives these replies, one after the other."""
    left = iter(replies)
    transport = httpx.MockTransport(lambda _: next(left))
    return RemoteService(base_url="http://audit.test", curator_key="k", transport=transport)


def test_references_are_followed_once() -> None:
    """Those that lead back to themselves, and those that double with each step."""
    doubling = {f"A{number}": {"anyOf": [{"$ref": f"/A{number + 1}"}] * 2} for number in range(60)}
    rule = {"anyOf": [{"$ref": "/Rule"}, {"$ref": "/A0"}, {"enum": ["drop"]}]}
    circle = {"Law": {"$ref": "/Other"}, "Other": {"$ref": "/Law"}}
    told = document(Rule=rule, A60={"const": "clip"}, **doubling, **circle)
    offered = service(httpx.Response(200, json=told)).offered()
    assert (offered.datasets, offered.mechanisms) == (("clip", "drop"), ())


NO_DOCUMENTS: list[Any] = [[], {}, {"paths": []}, document(Rule=7), document(Rule={"$ref": "/Missing"}), "\x1b[2J"]


@pytest.mark.parametrize("told", NO_DOCUMENTS, ids=range(len(NO_DOCUMENTS)))
def test_what_is_no_document_of_a_service_is_refused(told: Any) -> None:
    """In words that a terminal may print."""
    with pytest.raises(APIReplyError, match="has no document of a service") as refused:
        service(httpx.Response(200, json=told)).offered()
    assert str(refused.value).isprintable()


FILES = [b"", b"\xff", b"key,spent_units\n", b"key,spent_units,budget_units,queries_charged,queries_left_out\na,1\n"]
FILES += [FILES[3].replace(b"a,1", b"a,1,x,0,0"), b'"' + b"x" * 200_000 + b'"\n']


@pytest.mark.parametrize("file", FILES, ids=range(len(FILES)))
def test_a_file_of_accounts_that_is_none_is_an_error(file: bytes) -> None:
    """Cut short, of other columns, or of no numbers."""
    with pytest.raises(APIReplyError):
        service(httpx.Response(200, content=file, headers={"Content-Type": "text/csv"})).accounts("d")


ACTS: dict[str, tuple[Callable[[RemoteService], object], Any]] = {
    "keys of others": (lambda told: told.own_account("d", "a"), [{"individual": "b", "api_key": "k"}]),
    "no keys": (lambda told: told.own_account("d", "a"), []),
    "a ledger": (lambda told: told.ledger("d"), {"items": [{}], "next": None}),
    "a description": (lambda told: told.register("d", rule="skip", people=1, accounting=OF_RULES), {"name": "d"}),
}


@pytest.mark.parametrize(("act", "reply"), ACTS.values(), ids=ACTS)
def test_every_other_reply_that_is_none_is_an_error(act: Callable[[RemoteService], object], reply: Any) -> None:
    """The error is the client's, which the command tells in a line."""
    with pytest.raises(SparingError):
        act(service(httpx.Response(200, json=reply)))
