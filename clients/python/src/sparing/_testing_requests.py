"""Reading of requests to the fake service: bodies, idempotency keys, and the parameters of listings."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from sparing._testing_problems import Refused, invalid

__all__ = ["checked_key", "cursor_of", "entries_in", "limit_of", "query_of"]

ENTRIES_MAX = 256
LIMIT_DEFAULT, LIMIT_MAX = 100, 1000
INTEGER_MAX = 2**53 - 1
_KEY = re.compile(r"[\x20-\x7e]{1,128}")


def query_of(content: bytes) -> Any:  # noqa: ANN401 - JSON
    """The JSON of a body, its numbers as the service reads them. Raises Refused."""
    try:
        return json.loads(content, parse_float=_number)
    except ValueError:
        raise invalid("body", "must be a JSON document in UTF-8") from None


def _number(digits: str) -> float:
    """One value, one spelling: 3.0 is 3."""
    value = float(digits)
    return int(value) if value.is_integer() and abs(value) <= INTEGER_MAX else value


def entries_in(body: object) -> Sequence[Mapping[str, Any]]:
    """The entries of a batch. Raises Refused naming the field."""
    match body:
        case {"queries": list(entries), **others} if not others:
            if not 1 <= len(entries) <= ENTRIES_MAX:
                raise invalid("queries", f"must hold 1 to {ENTRIES_MAX} entries")
        case {"queries": list(), **others}:
            raise invalid(str(next(iter(others))), "is not a member of a batch")
        case _:
            raise invalid("queries", "must be a list of entries")
    for place, entry in enumerate(entries):
        if not isinstance(entry, dict) or "query" not in entry or entry.keys() - {"query", "idempotency_key"}:
            raise invalid(f"queries[{place}]", "must have a query, an idempotency_key and nothing else")
    return entries


def checked_key(key: object) -> str:
    """An idempotency key. Raises Refused for none, and for one that is not 1 to 128 printable ASCII characters."""
    if key is None or (isinstance(key, str) and not key.strip()):
        raise Refused("idempotency-key-missing")
    if not isinstance(key, str) or _KEY.fullmatch(key) is None:
        raise Refused("idempotency-key-invalid")
    return key


def limit_of(text: str | None) -> int:
    """The most rows of a page. Raises Refused."""
    if text is None:
        return LIMIT_DEFAULT
    if re.fullmatch(r"-?[0-9]{1,9}", text) is None:
        raise invalid("limit", "input should be a valid integer, unable to parse string as an integer")
    if not 1 <= int(text) <= LIMIT_MAX:
        bound = "greater than or equal to 1" if int(text) < 1 else f"less than or equal to {LIMIT_MAX}"
        raise invalid("limit", f"input should be {bound}")
    return int(text)


def cursor_of(text: str | None) -> int | None:
    """The number of older releases; None for the newest page. Raises Refused for what is no cursor."""
    if text is None:
        return None
    if re.fullmatch(r"p[0-9]{1,9}", text) is None:
        raise invalid("cursor", "not a cursor of this listing")
    return int(text[1:])
