"""The pages: public bytes, the same for everyone, read once. They change only with the version.

Everything that they show comes from /v1, for which a sign-in is needed. Each audience has its own addresses, so that no
cache and no history mixes the audiences.
"""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Final

import orjson
from fastapi import APIRouter, FastAPI, Request, Response
from starlette.responses import RedirectResponse

from service.api.auth import CurrentReplica, authenticated
from service.api.places import current_places
from service.api.problems import Refusal
from service.files import folder_of
from service.ledger.model.errors import NotFound, WorkflowError
from service.query.items import ITEMS

PAGE_TYPES: Final = {
    ".json": "application/json",
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml; charset=utf-8",
}
_ASSETS: Final = frozenset({".css", ".js", ".svg"})  # beside them lie settings of tools, which end in .json
_SHELL: Final = "shell.html"
_TITLES: Final = {
    "analyst": "Queries",
    "auditor": "The chain",
    "curator": "Datasets",
    "docs": "The interface",
    "individual": "Your privacy",
    "sign-in": "Sign in",
}
_GZIP_LEVEL: Final = 6
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'none'; base-uri 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)
REFERENCE: Final = "openapi.json"
"""The document that the reference at /docs shows: the one of /openapi.json."""
FORMS: Final = "items.json"
"""The forms of items: `x-form` in the interface's document, without the rest, which is thirty times as long."""

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """One file as it is sent: its bytes, plain and compressed."""

    media_type: str
    body: bytes
    packed: bytes
    etag: str

    @classmethod
    def made(cls, name: str, body: bytes) -> "PageFile":
        """A file of these bytes, whose type follows from its name."""
        return cls(
            media_type=PAGE_TYPES[Path(name).suffix],
            body=body,
            packed=gzip.compress(body, _GZIP_LEVEL, mtime=0),
            etag=f'"{hashlib.sha256(body).hexdigest()[:32]}"',
        )


@router.get("/")
async def start(request: Request, replica: CurrentReplica) -> Response:
    """To the caller's own page, or to the sign-in."""
    try:
        principal = await authenticated(request, replica)
    except (Refusal, WorkflowError):
        principal = None
    return RedirectResponse("/sign-in" if principal is None else f"/{principal.role}", status_code=303)


@router.get("/sign-in")
@router.get("/curator")
@router.get("/curator/{place:path}")
@router.get("/individual")
@router.get("/individual/{place:path}")
@router.get("/analyst")
@router.get("/analyst/{place:path}")
@router.get("/auditor")
@router.get("/auditor/{place:path}")
@router.get("/docs")
async def page(request: Request) -> Response:
    """The page of an audience; its script shows the place that the rest of the address names."""
    return await _sent(request, f"{request.url.path.split('/')[1]}.html")


@router.api_route("/openapi.json", methods=["GET", "HEAD"])
async def description(request: Request) -> Response:
    """The document of the interface, which changes with the version alone."""
    state = request.app.state
    if not hasattr(state, "reference"):
        state.reference = await current_places(request).pages.run(None, partial(_reference, request.app))
    return sent(request, state.reference, CONTENT_SECURITY_POLICY)


@router.get("/assets/{name}")
async def asset(request: Request, name: str) -> Response:
    """A script, a style sheet, an image, the forms of items, or the document of the interface."""
    if name.endswith(".html"):
        raise NotFound
    return await (description(request) if name == REFERENCE else _sent(request, name))


async def _sent(request: Request, name: str) -> Response:
    state = request.app.state
    if not hasattr(state, "page_files"):
        state.page_files = await current_places(request).pages.run(None, page_files)
    if name not in state.page_files:
        raise NotFound
    return sent(request, state.page_files[name], CONTENT_SECURITY_POLICY)


def _reference(app: FastAPI) -> PageFile:
    return PageFile.made(REFERENCE, orjson.dumps(app.openapi()))


def sent(request: Request, file: PageFile, policy: str) -> Response:
    """The response with a file and a content security policy; a 304 if the browser has the same file already."""
    headers = {
        "ETag": file.etag,
        "Cache-Control": "no-cache",  # keep it, and ask whether it is still the same
        "Content-Security-Policy": policy,
        "Vary": "Accept-Encoding",
    }
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, media_type=file.media_type, headers=headers | {"Content-Encoding": "gzip"})
    return Response(file.body, media_type=file.media_type, headers=headers)


@cache
def page_files() -> dict[str, PageFile]:
    """The files by name: the assets, the forms of items, and for each page the shell with its title and its script.

    Empty where the pages are not installed.
    """
    folder = folder_of("dashboard", in_clone="clients/dashboard")
    if not folder.is_dir():
        return {}
    bodies = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix in _ASSETS}
    bodies[FORMS] = orjson.dumps([form for item in ITEMS if (form := item.form_document()) is not None])
    shell = (folder / _SHELL).read_text(encoding="utf-8")
    for name, title in _TITLES.items():
        page = shell.replace("{title}", title).replace("{name}", name)
        bodies[f"{name}.html"] = page.encode()
    return {name: PageFile.made(name, body) for name, body in bodies.items()}
