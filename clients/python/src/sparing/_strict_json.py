"""JSON from a server, read strictly: in UTF-8, with finite numbers, and with bounds on its size and its depth."""

import json
import math
from typing import NoReturn

from sparing._constants import REPLY_CONTAINERS_MAX, REPLY_DEPTH_MAX


def json_document(content: bytes) -> object:
    """The JSON document in some bytes of UTF-8. Raises ValueError for other bytes, for NaN, and for too many parts."""
    is_long = len(content) > 2 * REPLY_CONTAINERS_MAX  # each is two characters at least
    if is_long and content.count(b"{") + content.count(b"[") > REPLY_CONTAINERS_MAX:
        raise ValueError(f"has more than {REPLY_CONTAINERS_MAX:,} objects and lists")
    try:
        return json.loads(content.decode(), parse_constant=_refused)
    except RecursionError:
        raise ValueError("has objects and lists too deep within each other") from None


def is_shallow(value: object) -> bool:
    """Tell whether objects and lists are nested no deeper than REPLY_DEPTH_MAX, and all numbers are finite."""
    level = [value]
    for _ in range(REPLY_DEPTH_MAX):
        inner: list[object] = []
        for each in level:
            if isinstance(each, dict):
                inner.extend(each.values())
            elif isinstance(each, list):
                inner.extend(each)
            elif isinstance(each, float) and not math.isfinite(each):
                return False
        level = inner
        if not level:
            return True
    return False


def _refused(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
