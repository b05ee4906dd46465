"""Make, change and revoke principals and their keys."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Literal, TypedDict
from urllib.parse import urlencode

from sparing._calls import Call, Stream, acknowledged, listing, reply_of
from sparing._decode import read
from sparing._errors import APIReplyError
from sparing._models import IndividualKey, PrincipalKey, PrincipalRow
from sparing._requests import delete, patch, path, post
from sparing._wire import key_text


class Details(TypedDict, total=False):
    """The facts about a principal that may change."""

    allowance_rho: float | Decimal | str | None
    organisation: str | None
    purpose: str | None
    expires_at: datetime | None


class Changes(Details, total=False):
    """The facts about a principal that may change, and its name."""

    name: str


Role = Literal["curator", "analyst", "individual", "auditor"]


def create(
    role: Role, name: str, dataset: str | None, individual: str | int | None, details: Details
) -> Call[PrincipalKey]:
    """Make a principal; arguments of None are not sent."""
    key = None if individual is None else key_text(individual)
    given = {"role": role, "name": name, "dataset": dataset, "individual": key, **_wire(details)}
    body = {field: value for field, value in given.items() if value is not None}
    return reply_of(PrincipalKey, post(path("principals"), body))


def create_for(
    dataset: str, individuals: Iterable[str | int], expires_at: datetime | None
) -> Call[tuple[IndividualKey, ...]]:
    """Make a key for each of many individuals."""
    query = "" if expires_at is None else f"?{urlencode({'expires_at': expires_at.isoformat()})}"
    reply = yield post(
        path("datasets", dataset, "individuals", "keys") + query, [key_text(each) for each in individuals]
    )
    if not isinstance(reply, list):
        raise APIReplyError("the reply is not a list of keys")
    return tuple(read(IndividualKey, each) for each in reply)


def every(role: Role | None, dataset: str | None, search: str | None, page_size: int) -> Stream[PrincipalRow]:
    """Every principal, or only those of a role, of a dataset, or with all words of `search`."""
    return listing(PrincipalRow, path("principals"), role=role, dataset=dataset, search=search, limit=page_size)


def change(principal: str, changes: Changes) -> Call[PrincipalRow]:
    """Change the given facts about a principal; None is sent as null."""
    return reply_of(PrincipalRow, patch(path("principals", principal), _wire(changes)))


def replace_key(principal: str) -> Call[PrincipalKey]:
    """Replace a principal's key."""
    return reply_of(PrincipalKey, post(path("principals", principal, "key")))


def revoke(principal: str) -> Call[None]:
    """Revoke a principal's key."""
    return acknowledged(delete(path("principals", principal)))


def _wire(details: Mapping[str, object]) -> dict[str, object]:
    """The details in the form of JSON."""
    stated = dict(details)
    if stated.get("allowance_rho") is not None:
        stated["allowance_rho"] = str(stated["allowance_rho"])
    return stated
