"""Where in the request a validation error lies, in the caller's own words.

A location of pydantic's names the members of unions it tried and the validators it ran; the caller knows only the
document it sent. So a location is walked along that document, and what is not in the document is dropped.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from service.query.problems import FieldError, quoted

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")
ERRORS_MAX = 20  # enough to mend a request with, and no more than one screen


def field_errors(errors: Sequence[Mapping[str, Any]], body: object) -> list[FieldError]:
    """The first twenty of pydantic's `errors` about a request whose JSON document was `body`, without repeats.

    A field is written as `tables.people.columns.age.lower` or `queries[3].query`; the document as a whole is `body`.
    """
    found = (FieldError(field=_field(error, body), message=_message(error)) for error in errors)
    return list(dict.fromkeys(found))[:ERRORS_MAX]


def _field(error: Mapping[str, Any], body: object) -> str:
    source, *location = error["loc"]
    if source != "body":
        return str(location[0]) if location else str(source)
    if error["type"] == "json_invalid":
        return "body"
    return "".join(_steps(location, body, missing=error["type"] == "missing")).removeprefix(".") or "body"


def _steps(location: Sequence[str | int], document: object, *, missing: bool) -> Iterator[str]:
    for depth, part in enumerate(location):
        last = depth == len(location) - 1
        match document:
            case dict() if part in document or (missing and last):
                yield f".{part}" if _PLAIN.fullmatch(str(part)) else f"[{quoted(part)}]"
                document = document.get(part)
            case list() if isinstance(part, int) and part < len(document):
                yield f"[{part}]"
                document = document[part]
            case _:
                pass  # a union's member or a validator's name: in the model, not in the document


def _message(error: Mapping[str, Any]) -> str:
    if error["type"] == "json_invalid":
        return "must be a JSON document in UTF-8"
    message = str(error["msg"]).removeprefix("Value error, ")
    return message[:1].lower() + message[1:]
