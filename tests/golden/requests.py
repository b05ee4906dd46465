"""A hundred and fifty requests with their responses: each route as its role asks, with an unknown parameter, and amiss.

A line holds the route, how it was asked, and the response. Ids, keys, instants and cursors are left out by their form;
of a body that is no JSON the hash is kept. Each request meets a world of its own, under frozen entropy.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
from fastapi import FastAPI

from tests.api.route_table import ROUTES, Route
from tests.api.world import World, build_world
from tests.factories import CLOCK, SeededEntropy
from tests.golden.net import Net

_FORMS: Final = {
    "<id>": re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"),
    "<key>": re.compile(r"sparing_[A-Za-z0-9_-]{40,}"),
    "<instant>": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)"),
    "<hash>": re.compile(r"[0-9a-f]{64}"),
}
_LEFT_OUT: Final = frozenset({"set-cookie"})


async def _as_asked(route: Route, world: World, role: str) -> httpx.Response:
    return await route.call(world, role)


async def _with_a_parameter(route: Route, world: World, role: str) -> httpx.Response:
    return await route.call(world, role, path=f"{route.path(world)}?nothing=1")


async def _amiss(route: Route, world: World, role: str) -> httpx.Response:
    """With a body that is broken JSON, or without a key where the route has no body."""
    if route.method in {"GET", "DELETE"}:
        return await route.call(world, None)
    return await route.call(world, role, content=b'{"a": 1, "a": 2', json=None)


WAYS: Final[Mapping[str, Callable[[Route, World, str], Awaitable[httpx.Response]]]] = {
    "as asked": _as_asked,
    "with an unknown parameter": _with_a_parameter,
    "amiss": _amiss,
}


async def _lines() -> list[str]:
    built = build_world()
    app = built.app
    built.replica.close()
    return [await _line(route, way, app) for route in ROUTES for way in WAYS]


async def _line(route: Route, way: str, app: FastAPI) -> str:
    world = build_world(app=app, clock=lambda: CLOCK, entropy=SeededEntropy())
    try:
        response = await WAYS[way](route, world, min(route.roles))
    finally:
        await world.client.aclose()
        world.replica.close()
    facts = {"route": str(route), "way": way, "status": response.status_code, "headers": _headers(response)}
    return json.dumps({**facts, "body": _body(response)}, ensure_ascii=False, separators=(",", ":"))


def _headers(response: httpx.Response) -> dict[str, str]:
    return {name: masked(value) for name, value in response.headers.items() if name not in _LEFT_OUT}


def _body(response: httpx.Response) -> Any:
    if "json" in response.headers.get("content-type", "") and "zstd" not in response.headers["content-type"]:
        return _in_order(json.loads(masked(response.text)))
    text = masked(response.content.decode("latin-1"))
    return {"length": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()[:16]} if text else ""


def _in_order(body: Any) -> Any:
    """With principals in the order of their names: they are listed by their ids."""
    match body:
        case {"items": [{"id": _, "name": _, "role": _}, *_]}:
            return body | {"items": sorted(body["items"], key=lambda each: str(each["name"]))}
        case _:
            return body


def masked(text: str) -> str:
    """The text without what differs each time."""
    for name, form in _FORMS.items():
        text = form.sub(name, text)
    return text


def _drawn() -> Iterator[str]:
    yield from asyncio.run(_lines())


def _renewed(_lines_kept: Sequence[str]) -> Iterator[str]:
    """The lines of the same requests: the routes are those of the application."""
    return _drawn()


NET: Final = Net(file=Path(__file__).parent / "data" / "requests.jsonl", drawn=_drawn, renewed=_renewed)
