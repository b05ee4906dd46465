"""Bytes off the wire to a Query.

`service.query.json_text` reads the text and pydantic reads the document. Pydantic's errors are reported in the caller's
words.
"""

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, TypeGuard

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from service.query.json_text import document_of, first_distinct, written
from service.query.language import Query
from service.query.problems import FieldError, QueryProblem

BODY_BYTES_MAX = 256 * 1024
KEPT_BODY_BYTES_MAX = 1024
KEPT_MAX = 256
"""The most queries of short texts that are kept, those asked last."""

_LITERAL_TYPES = {"bool", "constrained-int", "float", "constrained-str"}  # a literal's union, as pydantic names it
_MESSAGES = {
    "missing": "is required",
    "extra_forbidden": "is not a field of the query language",
    "model_type": "must be an object",
    "tuple_type": "must be a list",
    "too_long": "must have at most {max_length} entries",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "string_unicode": "has half of a surrogate pair, which is not text",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
}


def kept_query(body: bytes, asker: Hashable) -> Query:
    """Parse as `parse_query`, but keep short texts: one text of one asker is read once and gives the same object.

    Texts are kept for each asker. So nobody can tell by the time of a query what another asker has asked.
    """
    return _read_for(body, asker) if len(body) <= KEPT_BODY_BYTES_MAX else parse_query(body)


@lru_cache(maxsize=KEPT_MAX)
def _read_for(body: bytes, _asker: Hashable) -> Query:
    return parse_query(body)


def parse_query(body: bytes) -> Query:
    """The query in a request's body, UTF-8 JSON of at most 256 KiB nested at most 16 deep.

    Raises QueryProblem, and nothing else, for any fault of the body. `compile_query` checks what the query means for a
    dataset.
    """
    if len(body) > BODY_BYTES_MAX:
        raise QueryProblem.of("body", f"is larger than {BODY_BYTES_MAX} bytes")
    return query_of(document_of(body))


def query_of(document: object) -> Query:
    """The query that a document is. Raises QueryProblem."""
    try:
        return Query.model_validate(document)
    except ValidationError as error:
        if _is_tick_without_noise(document):
            return query_of({**document, "noise": {"prepaid": {}}})
        problem = QueryProblem(*_errors(error, document))
    raise problem  # outside of the handler: what pydantic said quotes the document and goes no further


def _is_tick_without_noise(document: object) -> TypeGuard[dict[str, Any]]:
    """Tell whether a document asks for a tick alone and leaves out the noise, which the monitor decides."""
    match document:
        case {"noise": _}:
            return False
        case {"select": [{"exhausted": _}]}:
            return True
        case _:
            return False


def _errors(error: ValidationError, document: object) -> list[FieldError]:
    """The problems of a query in the caller's own words: the first twenty that are different."""
    details = error.errors(include_url=False, include_input=False)
    return first_distinct(
        FieldError(field=_field(detail["loc"], document, missing=detail["type"] == "missing"), message=_message(detail))
        for detail in details
    )


def _field(location: tuple[int | str, ...], document: object, *, missing: bool) -> str:
    """The field at a location of pydantic's. A part that is not in the document, a union member's name, is left out."""
    path: list[int | str] = []
    for depth, part in enumerate(location):
        absent = missing and depth == len(location) - 1
        match document:
            case dict() if part in document or absent:
                path.append(part)
                document = document.get(part)
            case list() if isinstance(part, int) and (part < len(document) or absent):
                path.append(part)
                document = None if absent else document[part]
    return written(path)


def _message(detail: ErrorDetails) -> str:
    if detail["loc"] and detail["loc"][-1] in _LITERAL_TYPES:
        return "must be true or false, a number, or text of at most 1000 characters"
    if detail["loc"] == ("version",) and detail["type"] != "missing":
        return "must be 1, the only version there is"
    if detail["type"] in _MESSAGES:
        return _MESSAGES[detail["type"]].format(**detail.get("ctx", {}))
    return detail["msg"].replace("Input should", "must")
