"""An address has the parameters that its route reads, each once and in UTF-8, and no others."""

import pytest
from fastapi import Request

from service.api.parameters import refuse_other_parameters
from service.ledger.model.errors import InvalidRequest
from tests.api.route_table import ROUTES
from tests.api.world import World

KNOWN = {"dry_run", "rows_over_limit", "limit"}


def refusal(query: bytes) -> list[tuple[str, str]]:
    """The faults for which an address with this query is refused; none where it passes."""
    try:
        refuse_other_parameters(Request({"type": "http", "query_string": query, "headers": []}), KNOWN)
    except InvalidRequest as refused:
        return [(error.field, error.message) for error in refused.errors]
    return []


@pytest.mark.parametrize(
    ("query", "field", "message"),
    [
        (b"dryrun=true", "dryrun", "is no parameter of this address; did you mean 'dry_run'?"),
        (b"dry-run=true", "dry-run", "is no parameter of this address; did you mean 'dry_run'?"),
        (b"Dry_Run=true", "Dry_Run", "is no parameter of this address; did you mean 'dry_run'?"),
        (b"row_over_limit", "row_over_limit", "is no parameter of this address; did you mean 'rows_over_limit'?"),
        (b"x=1", "x", "is no parameter of this address"),
        (b"=1", "''", "is no parameter of this address"),
        (b"%00=1", "'\\x00'", "is no parameter of this address"),
        (b"limit=1&limit=1", "limit", "is in the address more than once"),
        (b"limit=1&lim%69t=2", "limit", "is in the address more than once"),
        (b"limit=%ff", "limit", "must be UTF-8 in percent escapes"),
        (b"limit=%zz", "limit", "must be UTF-8 in percent escapes"),
        (b"limit=%1", "limit", "must be UTF-8 in percent escapes"),
        (b"limit=%ed%a0%80", "limit", "must be UTF-8 in percent escapes"),
        ("limit=ø".encode(), "limit", "must be UTF-8 in percent escapes"),
    ],
)
def test_a_parameter_that_would_be_misread_is_named(query: bytes, field: str, message: str) -> None:
    """Also beside one that is well."""
    assert refusal(query) == [(field, message)]
    assert (field, message) in refusal(b"dry_run=true&" + query)


def test_what_a_route_reads_passes() -> None:
    """Blanks may be written as forms do, and names may be escaped."""
    for query in (b"", b"&", b"limit=5", b"limit=a+b%20c&dry%5Frun=%C3%B8", b"limit"):
        assert refusal(query) == []


def test_twenty_parameters_are_told_and_no_more_are_looked_at() -> None:
    """Each name is compared with those that are known, which is work."""
    assert len(refusal(b"&".join(b"x%d=1" % number for number in range(5000)))) == 20


async def test_each_route_refuses_what_it_does_not_read(world: World) -> None:
    """422 by name; and one that it reads is refused the second time."""
    for route in ROUTES:
        operation = world.app.openapi()["paths"][route.template][route.method.lower()]
        read = [each["name"] for each in operation.get("parameters", []) if each["in"] == "query"]
        rest = {name: value for name, value in route.options.items() if name != "params"}
        for name in ("unread", *read):
            path = f"{route.path(world)}?{name}=1&{name}=1"
            reply = await world.call(min(route.roles), route.method, path, headers=route.headers, **rest)
            told = "is in the address more than once" if name in read else "is no parameter of this address"
            assert reply.status_code == 422, (route, name, reply.text)
            assert {"field": name, "message": told} in reply.json()["errors"], route


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
async def test_a_probe_takes_no_parameter(world: World, path: str) -> None:
    """A probe that was meant to ask for more is told that it does not."""
    refused = await world.client.get(f"{path}?verbose")
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "verbose")
