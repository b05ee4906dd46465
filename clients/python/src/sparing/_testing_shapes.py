"""The shapes of a query's JSON: objects with one key, closed objects, lists and numbers; the first fault is refused."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sparing._testing_problems import invalid

__all__ = ["entries_of", "literal_of", "members_of", "number_of", "one_of", "text_of", "whole_of"]

TEXT_MAX = 1000


def one_of(node: object, kinds: Collection[str], field: str, *, said: str | None = None) -> tuple[str, Any]:
    """The key and the value of an object with exactly one of the keys. Raises Refused."""
    if isinstance(node, Mapping) and len(node) == 1 and next(iter(node)) in kinds:
        [(kind, body)] = node.items()
        return kind, body
    raise invalid(field, said or f"must be an object with exactly one of the keys {', '.join(kinds)}")


def members_of(
    node: object, field: str, *, required: Collection[str] = (), optional: Collection[str] = ()
) -> Mapping[str, Any]:
    """A closed object. Raises Refused for a member that is unknown or missing."""
    prefix = f"{field}." if field else ""
    if not isinstance(node, Mapping):
        raise invalid(field or "body", "must be an object")
    for name in required:
        if name not in node:
            raise invalid(f"{prefix}{name}", "is required")
    for name in node:
        if name not in required and name not in optional:
            raise invalid(f"{prefix}{name}", "is not a field of the query language")
    return node


def entries_of(node: object, field: str, *, most: int, exactly: int | None = None) -> Sequence[Any]:
    """A list that is not empty, with at most so many entries, or exactly so many. Raises Refused."""
    if not isinstance(node, list):
        raise invalid(field, "must be a list")
    if exactly is not None and len(node) < exactly:
        raise invalid(f"{field}[{len(node)}]", "is required")
    if not node:
        raise invalid(field, "must not be empty")
    if len(node) > (most if exactly is None else exactly):
        raise invalid(field, f"must have at most {most if exactly is None else exactly} entries")
    return node


def literal_of(node: object, field: str) -> bool | float | str:
    """A boolean, a number or a text. Raises Refused."""
    if isinstance(node, bool | int | float) or (isinstance(node, str) and len(node) <= TEXT_MAX):
        return node
    raise invalid(field, f"must be true or false, a number, or text of at most {TEXT_MAX} characters")


def text_of(node: object, field: str) -> str:
    """A name. Raises Refused."""
    if not isinstance(node, str):
        raise invalid(field, "must be a valid string")
    if not node:
        raise invalid(field, "must not be empty")
    return node


def number_of(
    node: object,
    field: str,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float,
    below: bool = False,
) -> float:
    """A number above `above` or at least `least`, and at most `most` or, with `below`, below it. Raises Refused."""
    if isinstance(node, bool) or not isinstance(node, int | float):
        raise invalid(field, "must be a valid number")
    if above is not None and node <= above:
        raise invalid(field, f"must be above {above:g}")
    if least is not None and node < least:
        raise invalid(field, f"must be at least {least:g}")
    if node > most or (below and node == most):
        raise invalid(field, f"must be {'below' if below else 'at most'} {most:g}")
    return float(node)


def whole_of(node: object, field: str, *, least: int, most: int) -> int:
    """A whole number between two bounds. Raises Refused."""
    if isinstance(node, bool) or not isinstance(node, int):
        raise invalid(field, "must be a valid integer")
    if not least <= node <= most:
        raise invalid(field, f"must be at least {least}" if node < least else f"must be at most {most}")
    return node
