"""The guide as files: public, under a policy that names each script, and nothing beside it."""

import base64
import hashlib
from pathlib import Path

import httpx
import pytest

from service.api.routes import guide
from tests.api.world import ROLES, World

SCRIPT = "start();"
DIGEST = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
PAGE = f'<script>{SCRIPT}</script><script src="a.js"></script><script type="application/json">{{}}</script>'
FILES = {
    "index.html": PAGE,
    "sql/index.html": "<p>SQL</p>",
    "assets/a.js": "1",
    "assets/a.css": "a {}",
    "search/search_index.json": "{}",
    "objects.inv": "no",
}


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small guide."""
    for name, text in FILES.items():
        (tmp_path / "guide" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "guide" / name).write_text(text, encoding="utf-8")
    (tmp_path / "secret.html").write_text("no", encoding="utf-8")
    return _placed(tmp_path / "guide", monkeypatch)


def _placed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(guide, "folder_of", lambda name, in_clone: folder)
    return folder


def _policy(response: httpx.Response) -> dict[str, list[str]]:
    parts = [part.split() for part in response.headers["content-security-policy"].split(";")]
    return {part[0]: part[1:] for part in parts}


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("path", "name", "media_type"),
    [
        ("/guide/", "index.html", "text/html; charset=utf-8"),
        ("/guide/sql/", "sql/index.html", "text/html; charset=utf-8"),
        ("/guide/assets/a.js", "assets/a.js", "text/javascript; charset=utf-8"),
        ("/guide/assets/a.css", "assets/a.css", "text/css; charset=utf-8"),
        ("/guide/search/search_index.json", "search/search_index.json", "application/json"),
    ],
)
async def test_a_file_is_the_same_for_everyone_and_sent_once(
    world: World, path: str, name: str, media_type: str
) -> None:
    """With and without a key; not again while its bytes are the same."""
    stranger = await world.client.get(path, headers={"X-Request-Id": "one"})
    assert (stranger.status_code, stranger.text, stranger.headers["content-type"]) == (200, FILES[name], media_type)
    for role in ROLES:
        own = await world.call(role, "GET", path, headers={"X-Request-Id": "one"})
        assert (own.content, own.headers) == (stranger.content, stranger.headers)
    again = await world.client.get(path, headers={"If-None-Match": stranger.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.usefixtures("built")
async def test_the_policy_names_the_scripts_within_a_page_and_allows_this_origin_alone(world: World) -> None:
    """No other inline script, no inline style, no frame, no form; the search works in a worker."""
    policy = _policy(await world.client.get("/guide/"))
    assert policy["script-src"] == ["'self'", f"'sha256-{DIGEST}'"]
    assert (
        policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == policy["form-action"] == ["'none'"]
    )
    assert policy["worker-src"] == policy["style-src"] == policy["connect-src"] == ["'self'"]
    assert _policy(await world.client.get("/guide/sql/"))["script-src"] == ["'self'"]


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(("path", "target"), [("/guide", "/guide/"), ("/guide/sql", "/guide/sql/")])
async def test_a_folder_has_an_address_that_ends_in_a_slash(world: World, path: str, target: str) -> None:
    """The links of its page go from there."""
    response = await world.client.get(path)
    assert (response.status_code, response.headers["location"]) == (308, target)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    "path",
    [
        "nothing/",
        "nothing",
        "objects.inv",
        "../secret.html",
        "%2e%2e/secret.html",
        "/evil.example",
        "sql/index.html/",
        "//",
    ],
)
async def test_nothing_but_its_files_is_served(world: World, path: str) -> None:
    """No path leads out of the folder, and no address elsewhere: files are known by name."""
    response = await world.client.get(f"/guide/{path}")
    assert (response.status_code, response.headers.get("location")) == (404, None)


async def test_without_a_built_guide_a_page_says_how_it_is_built(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every address of it; once it is there, it is served."""
    _placed(tmp_path, monkeypatch)
    for path in ("/guide", "/guide/", "/guide/sql/"):
        response = await world.client.get(path)
        assert response.status_code == 404
        assert "make docs" in response.text
        assert _policy(response)["script-src"] == ["'self'"]
    (tmp_path / "index.html").write_text("<p>Here</p>", encoding="utf-8")
    assert (await world.client.get("/guide/")).text == "<p>Here</p>"
