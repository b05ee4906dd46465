"""Requests with their responses: each route as its role asks, with an unknown parameter, and amiss.

A line holds the route, how it was asked, and the response. Ids, keys, instants and hashes are replaced by fixed ones of
the same form; of a body that is no text its length is kept. Each request meets a world of its own, under frozen
entropy. The requests that work are the examples of the OpenAPI document: the service reads their lines.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
from fastapi import FastAPI

from service.api.openapi import EXAMPLES as EXAMPLES_FILE
from service.api.responses import JSON
from tests.api.route_table import REGISTRATION, ROUTES, SHOWN, Route
from tests.api.world import World, build_world
from tests.factories import CLOCK, SeededEntropy
from tests.golden.net import Net

_ID: Final = "5f0c9a4e-6d1b-47f2-a3c8-e09b7d21f604"
_FORMS: Final = {
    _ID: re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"),
    f"sparing_{_ID.replace('-', '')}_made-up-for-this-page-and-kept-by-no-holder": re.compile(
        r"sparing_[A-Za-z0-9_-]{40,}"
    ),
    f"{CLOCK:%Y-%m-%dT%H:%M:%SZ}": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)"),
    "5e" * 32: re.compile(r"[0-9a-f]{64}"),
}
_LEFT_OUT: Final = frozenset({"set-cookie"})
_TEXT: Final = re.compile(r"text/|application/(?:[a-z-]+\+|x-nd)?json")
_MONITOR: Final = {"rho": "0.0001", "ticks": 1000, "share": 0.1}


async def _with_a_parameter(route: Route, world: World, role: str) -> httpx.Response:
    return await route.call(world, role, path=f"{route.path(world)}?nothing=1")


async def _amiss(route: Route, world: World, role: str) -> httpx.Response:
    """With a body that is broken JSON, or without a key where the route has no body."""
    if route.method in {"GET", "DELETE"}:
        return await route.call(world, None)
    return await route.call(world, role, content=b'{"a": 1, "a": 2', json=None)


WAYS: Final[Mapping[str, Callable[[Route, World, str], Awaitable[httpx.Response]]]] = {
    "with an unknown parameter": _with_a_parameter,
    "amiss": _amiss,
}


def _refused(app: FastAPI) -> Iterable[Awaitable[str]]:
    return (_refusal(route, way, app) for route in ROUTES for way in WAYS)


async def _refusal(route: Route, way: str, app: FastAPI) -> str:
    async with _world(app) as world:
        return _line(route, {"way": way}, await WAYS[way](route, world, min(route.roles)))


def _shown(app: FastAPI) -> Iterable[Awaitable[str]]:
    return (_example(route, app) for route in SHOWN)


async def _example(route: Route, app: FastAPI) -> str:
    async with _world(app) as world:
        if route.dataset == "watched":
            registration = REGISTRATION | {"name": "watched", "monitor": _MONITOR}
            await world.call("curator", "POST", "/v1/datasets", json=registration)
        response = await route.call(world, min(route.roles, default=None))
        parameters = {name: text for name, text in route.names(world).items() if f"{{{name}}}" in route.template}
    assert response.status_code == route.status, (str(route), response.text)
    parameters |= {**route.options.get("params", {}), **route.headers}
    media_type = parameters.pop("Content-Type", JSON)
    sent = {"title": route.title or media_type, "type": media_type, "parameters": parameters}
    return _line(route, sent | {"request": _text_of(media_type, response.request.content)}, response)


@asynccontextmanager
async def _world(app: FastAPI) -> AsyncIterator[World]:
    world = build_world(app=app, clock=lambda: CLOCK, entropy=SeededEntropy())
    try:
        yield world
    finally:
        await world.client.aclose()
        world.replica.close()


def _line(route: Route, asked: Mapping[str, Any], response: httpx.Response) -> str:
    headers = {name: text for name, text in response.headers.items() if name not in _LEFT_OUT}
    body = _in_order(_text_of(headers.get("content-type", ""), response.content))
    facts = {"route": str(route), **asked, "status": response.status_code, "headers": headers, "body": body}
    line = json.dumps(facts, ensure_ascii=False, separators=(",", ":"))
    for fixed, form in _FORMS.items():
        line = form.sub(fixed, line)
    return line


def _text_of(media_type: str, content: bytes) -> Any:
    """The document or the text that a body is, or the length of any other."""
    if not content:
        return None
    if _TEXT.match(media_type) is None:
        return len(content)
    return content.decode() if media_type.startswith(("text/", "application/x-")) else json.loads(content)


def _in_order(body: Any) -> Any:
    """With principals in the order of their names: they are listed by their ids."""
    match body:
        case {"items": [{"id": _, "name": _, "role": _}, *_]}:
            return body | {"items": sorted(body["items"], key=lambda each: str(each["name"]))}
        case _:
            return body


def _net(file: Path, asked: Callable[[FastAPI], Iterable[Awaitable[str]]]) -> Net:
    """The lines of requests, whose routes are those of the application."""

    async def lines() -> list[str]:
        built = build_world()
        built.replica.close()
        return [await line for line in asked(built.app)]

    def renewed(_kept: Sequence[str]) -> Iterator[str]:
        yield from asyncio.run(lines())

    return Net(file=file, drawn=lambda: renewed(()), renewed=renewed)


NET: Final = _net(Path(__file__).parent / "data" / "requests.jsonl", _refused)
EXAMPLES: Final = _net(EXAMPLES_FILE, _shown)
