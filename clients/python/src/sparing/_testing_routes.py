"""The addresses of the service: which the fake answers, and which need a key of another role."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

import httpx

from sparing._testing_problems import Refused, not_found

__all__ = ["ANALYSTS", "OTHERS", "Route", "route_of"]

ANALYSTS = (
    "GET /datasets",
    "GET /datasets/{dataset}",
    "POST /datasets/{dataset}/queries",
    "DELETE /datasets/{dataset}/queries",
    "POST /datasets/{dataset}/queries/preview",
    "POST /datasets/{dataset}/queries/batch",
    "GET /queries",
    "GET /queries/{query}",
    "GET /allowances",
)
_CURATOR, _ALL = "curator", "curator, for all datasets"
OTHERS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "POST /datasets",
            "DELETE /datasets/{dataset}",
            "GET /principals",
            "POST /principals",
            "PATCH /principals/{principal}",
            "DELETE /principals/{principal}",
            "POST /principals/{principal}/key",
        ),
        _ALL,
    ),
    **dict.fromkeys(
        (
            "PATCH /datasets/{dataset}",
            "POST /datasets/{dataset}/tables/{table}/rows",
            "GET /datasets/{dataset}/individuals/{key}",
            "PATCH /datasets/{dataset}/individuals/{key}",
            "DELETE /datasets/{dataset}/individuals/{key}",
            "POST /datasets/{dataset}/individuals/keys",
            "POST /datasets/{dataset}/epochs",
            "POST /datasets/{dataset}/archive",
            "POST /datasets/{dataset}/forecast",
            "PUT /datasets/{dataset}/alarm",
            "POST /datasets/{dataset}/verification",
            *(
                f"GET /datasets/{{dataset}}/{part}"
                for part in (
                    *("budgets", "budgets/summary", "budgets/history", "budgets/export", "alarm", "verification"),
                    *("events", "receipts", "erasure-requests", "acts", "analysts"),
                )
            ),
        ),
        _CURATOR,
    ),
    "GET /datasets/{dataset}/ledger": "auditor or curator",
    **dict.fromkeys(
        (
            "GET /me/budgets",
            "GET /me/receipts",
            "POST /me/budgets/{dataset}/lower",
            "POST /me/budgets/{dataset}/resume",
            "GET /me/record/{dataset}",
            "GET /me/erasure/{dataset}",
            "POST /me/erasure/{dataset}",
        ),
        "individual",
    ),
}
"""Routes that are not for analysts, with the roles that they need as the service says them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A route that was asked for: its name in the tables above, and the names in its address."""

    name: str
    parts: Mapping[str, str]


def route_of(request: httpx.Request) -> Route:
    """The route of a request. Raises Refused for an unknown address, and for a method that it does not take."""
    raw = request.url.raw_path.decode("ascii").partition("?")[0]
    words = [unquote(part) for part in raw.removeprefix("/v1/").split("/")]
    found: dict[str, Route] = {}
    for name in (*OTHERS, *ANALYSTS):
        method, _, template = name.partition(" /")
        parts = _matched(template.split("/"), words) if raw.startswith("/v1/") else None
        if parts is not None and (method not in found or len(parts) < len(found[method].parts)):
            found[method] = Route(name=name, parts=parts)
    if not found:
        raise not_found()
    if request.method not in found:
        raise Refused("method-not-allowed", headers={"Allow": ", ".join(sorted(found))})
    return found[request.method]


def _matched(template: list[str], words: list[str]) -> dict[str, str] | None:
    """The names in an address, or None for another address."""
    if len(template) != len(words):
        return None
    parts = {}
    for expected, word in zip(template, words, strict=True):
        if expected.startswith("{"):
            parts[expected.strip("{}")] = word
        elif expected != word:
            return None
    return parts
