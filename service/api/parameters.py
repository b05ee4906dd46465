"""The parameters of an address: which a route reads, and the refusal of all others.

FastAPI ignores a parameter that it does not know, takes the last of two, and replaces bytes that are not UTF-8. So
`?dryrun=true` would store rows for good, and `?individual=%ff` might name another individual.
"""

import re
from collections.abc import Callable, Collection, Coroutine
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from service.ledger.model.errors import InvalidRequest
from service.query.json_text import ERRORS_MAX
from service.query.problems import FieldError, quoted
from service.query.suggestions import did_you_mean

_NAME_MAX: Final = 64
_ESCAPED: Final = re.compile(rb"(?:[^%\x80-\xff]|%[0-9A-Fa-f]{2})*")


class PublicRoute(APIRoute):
    """A route without a guard. Its address may have only the parameters that it reads."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, behind the check of the parameters."""
        handle, known = super().get_route_handler(), parameters_of(self.dependant)

        async def checked(request: Request) -> Response:
            refuse_other_parameters(request, known)
            return await handle(request)

        return checked


def parameters_of(dependant: Dependant) -> frozenset[str]:
    """The names of the parameters in the address that a route and its dependencies read."""
    within = [parameters_of(each) for each in dependant.dependencies]
    return frozenset(str(each.alias) for each in dependant.query_params).union(*within)


def refuse_other_parameters(request: Request, known: Collection[str]) -> None:
    """Raise InvalidRequest for a parameter that is not in `known`, comes twice, or is not UTF-8 in percent escapes.

    Of two parameters with one name, a proxy may have checked the other one.
    """
    query: bytes = request.scope["query_string"]
    if not query:
        return
    seen: set[str] = set()
    faults: dict[str, str] = {}
    for piece in filter(None, query.split(b"&")):
        name, _, value = piece.partition(b"=")
        text = _text_of(name)
        fault = _fault(text, value, known) if text not in seen else "is in the address more than once"
        seen.add(text)
        if fault is not None:
            faults.setdefault(text, fault)
        if len(faults) == ERRORS_MAX:
            break
    if faults:
        raise InvalidRequest(*(FieldError(field=name, message=message) for name, message in faults.items()))


def _fault(name: str, value: bytes, known: Collection[str]) -> str | None:
    if name not in known:
        return f"is no parameter of this address{did_you_mean(name, known)}"
    return None if _is_text(value) else "must be UTF-8 in percent escapes"


def _is_text(piece: bytes) -> bool:
    if _ESCAPED.fullmatch(piece) is None:
        return False
    try:
        unquote_to_bytes(piece).decode()
    except UnicodeDecodeError:
        return False
    return True


def _text_of(name: bytes) -> str:
    """The name as an error quotes it."""
    text = unquote_to_bytes(name.replace(b"+", b" ")).decode(errors="backslashreplace")
    return text if text.isprintable() and 0 < len(text) <= _NAME_MAX else quoted(text)
