"""The differences between two lines of JSON, each by the path of what differs."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

SHOWN_MAX = 200
"""The characters of a value that are shown."""


def differences(kept: Sequence[str], found: Sequence[str]) -> list[str]:
    """Each difference as a text: the line from 1, the path, what was kept and what is found."""
    told = [
        f"{number}: {place}: {_shown(before)} -> {_shown(after)}"
        for number, (old, new) in enumerate(zip(kept, found, strict=False), start=1)
        if old != new
        for place, before, after in _apart(json.loads(old), json.loads(new), "")
    ]
    if len(kept) != len(found):
        told.append(f"{len(kept)} lines -> {len(found)} lines")
    return told


_ABSENT = object()


def _apart(before: Any, after: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(each for each in after if each not in before)]:
            yield from _apart(before.get(name, _ABSENT), after.get(name, _ABSENT), f"{place}.{name}".lstrip("."))
        if list(before) != list(after) and before == after:
            yield f"{place} (order)", list(before), list(after)
    elif type(before) is not type(after) or before != after:
        yield place, before, after


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."
