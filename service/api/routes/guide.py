"""The guide: the site that `make docs` builds from docs/. It is public, read once, and the same for everyone.

Its theme puts a few scripts into its pages. A page's policy names each script by its hash, and allows no other.
"""

import base64
import hashlib
import re
from functools import cache, partial
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from starlette.responses import RedirectResponse

from service.api.places import current_places
from service.api.routes.pages import CONTENT_SECURITY_POLICY, PAGE_TYPES, PageFile, sent
from service.files import folder_of
from service.ledger.model.errors import NotFound

_SCRIPT: Final = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_NOT_BUILT: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The guide is not built · Sparing</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/style.css">
</head>
<body>
<main>
<h1>The guide is not built.</h1>
<p>In a clone, <code>make docs</code> builds it from docs/, and a wheel that is built after that has it too.</p>
<p>The reference of the HTTP interface is at <a href="/docs">/docs</a>.</p>
</main>
</body>
</html>
"""

router = APIRouter(include_in_schema=False)


@router.get("/guide")
@router.get("/guide/{place:path}")
async def guide(request: Request, place: str | None = None) -> Response:
    """A file of the guide; of a folder, its page, at an address that ends in a slash, because its links go from there.

    Where the guide is not built, a page that says how it is.
    """
    return await current_places(request).pages.run(None, partial(_answer, request, place))


def _answer(request: Request, place: str | None) -> Response:
    folder = folder_of("guide", in_clone="clients/guide/build")
    if not (folder / "index.html").is_file():
        return HTMLResponse(_NOT_BUILT, status_code=404, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})
    names = _names(folder)
    if place is None or f"{place}/index.html" in names:
        return RedirectResponse("/guide/" if place is None else f"/guide/{place}/", status_code=308)
    name = f"{place}index.html" if place == "" or place.endswith("/") else place
    if name not in names:
        raise NotFound
    return sent(request, *_file(folder / name))


@cache
def _names(folder: Path) -> frozenset[str]:
    """The paths of the files that are served. No address is looked up on the disk."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix in PAGE_TYPES)
    return frozenset(path.relative_to(folder).as_posix() for path in found)


@cache
def _file(path: Path) -> tuple[PageFile, str]:
    """(file, policy that it is sent with)."""
    body = path.read_bytes()
    return PageFile.made(path.name, body), policy_of(body.decode() if path.suffix == ".html" else "")


def policy_of(page: str) -> str:
    """The content security policy of a page, in which each script within it is named by its hash."""
    digests = sorted({hashlib.sha256(script.encode()).digest() for script in _SCRIPT.findall(page)})
    scripts = "".join(f" 'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src 'self'{scripts}; worker-src 'self'; style-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    )
