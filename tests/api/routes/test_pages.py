"""The files of the pages: public, cached by their content, and unable to load anything else."""

import asyncio
import gzip
import threading

import pytest

from service.api.routes.pages import page_files
from tests.api.world import ROLES, World

PAGES = ["/sign-in", "/docs", *(f"/{role}" for role in ROLES), "/curator/any/place", "/analyst/answer/1"]

FILES = page_files()
"""Compressed once: the chart library takes a third of a second."""


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_is_the_same_for_everyone(world: World, path: str) -> None:
    """With and without a key: status, bytes and headers."""
    headers = {"X-Request-Id": "one"}
    stranger = await world.client.get(path, headers=headers)
    assert stranger.status_code == 200
    for role in ROLES:
        own = await world.call(role, "GET", path, headers=headers)
        assert (own.content, own.headers) == (stranger.content, stranger.headers)


@pytest.mark.parametrize("name", sorted(FILES))
async def test_a_file_is_sent_packed_and_once(world: World, name: str) -> None:
    """Packed where the browser takes that; not again while its bytes are the same."""
    path = f"/{name.removesuffix('.html')}" if name.endswith(".html") else f"/assets/{name}"
    plain = await world.client.get(path, headers={"Accept-Encoding": "identity"})
    packed = await world.client.get(path, headers={"Accept-Encoding": "gzip"})
    assert plain.content == packed.content == FILES[name].body
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(FILES[name].packed) == plain.content
    again = await world.client.get(path, headers={"If-None-Match": plain.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", plain.headers["etag"])
    other = await world.client.get(path, headers={"If-None-Match": '"other"'})
    assert other.status_code == 200


async def test_the_policy_allows_this_origin_alone(world: World) -> None:
    """No inline script, no evaluation, no frame, no form that leaves, no markup from text."""
    response = await world.client.get("/curator")
    parts = [part.split() for part in response.headers["content-security-policy"].split(";")]
    policy = {part[0]: part[1:] for part in parts}
    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == policy["connect-src"] == ["'self'"]
    assert not {"'unsafe-inline'", "'unsafe-eval'"} & {word for words in policy.values() for word in words}
    for name in ("form-action", "base-uri", "frame-ancestors"):
        assert policy[name] == ["'none'"]
    assert policy["require-trusted-types-for"] == ["'script'"]


@pytest.mark.parametrize(
    "path", ["/assets/nothing.js", "/assets/curator.html", "/assets/../page_files.py", "/assets/%2e%2e/pyproject.toml"]
)
async def test_nothing_but_the_files_is_served(world: World, path: str) -> None:
    """No path leads out of the folder: files are known by name."""
    assert (await world.client.get(path)).status_code == 404


async def test_a_page_waits_for_no_thread_once_it_is_made(world: World) -> None:
    """Twenty strangers that asked for the description kept another's sign-in page waiting."""
    paths = ["/sign-in", "/openapi.json", "/assets/style.css"]
    for path in paths:
        assert (await world.client.get(path)).status_code == 200
    ends, begun = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        ends.wait(30)  # in a failed test too

    held = asyncio.create_task(world.app.state.places.here().pages.run(None, hold))
    await asyncio.to_thread(begun.wait)
    try:
        assert [(await world.client.get(path)).status_code for path in paths] == [200] * 3
        assert not held.done()
    finally:
        ends.set()
        await held
