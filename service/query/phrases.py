"""Phrases for the parts of a query, as JSON has them: the words of a value, a condition, a group and a number."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

PARTS_SHOWN_MAX: Final = 6
"""The most parts of a list that are shown. A longer list ends with how many more there are."""

_OPERATORS: Final = {"add": "+", "sub": "-", "mul": "*"}
_SIGNS: Final = {"eq": "=", "ne": "≠", "lt": "<", "le": "≤", "gt": ">", "ge": "≥"}

Node = Mapping[str, Any]


def group_words(key: str | Node) -> str:
    """The words for a key of `group_by`."""
    if isinstance(key, str):
        return key
    [(kind, body)] = key.items()
    if kind == "bucket":
        return f"{body['by']} of {body['column']}"
    name = value_words(body["of"]) if "of" in body else body["column"]
    if "width" in body:
        return f"{name} in bins of {number_text(body['width'])}"
    return f"{name} in {len(body['edges']) - 1} bins"


def value_words(node: object) -> str:
    """The words for a value of a row."""
    if not isinstance(node, Mapping):
        return literal_words(node)
    [(kind, body)] = node.items()
    match kind:
        case "col":
            return str(body)
        case "abs":
            return f"|{value_words(body)}|"
        case "clip":
            return f"{value_words(body[0])} cut to {number_text(body[1])}..{number_text(body[2])}"
        case "predict":
            return f"{body['link']} prediction by {feature_words(body)}"
        case "own":
            return _own(body)
        case _:
            return f"({value_words(body[0])} {_OPERATORS[kind]} {value_words(body[1])})"


def _own(body: Node) -> str:
    total = (
        f"sum of {value_words(body['sum'])} of own {body['from']}" if "sum" in body else f"number of own {body['from']}"
    )
    where = "" if body.get("where") is None else f" where {condition_words(body['where'])}"
    return f"({total}{where} cut to {number_text(body['clip'][0])}..{number_text(body['clip'][1])})"


def feature_words(body: Node) -> str:
    """The words for features: how many single ones there are, and the vectors by name."""
    vectors = [str(each["vector"]) for each in body["features"] if "vector" in each]
    others = len(body["features"]) - len(vectors)
    counted = [f"{others} feature{'s' * (others > 1)}"] if others else []
    return " and ".join([*counted, *([f"the numbers of {', '.join(vectors)}"] if vectors else [])])


def condition_words(node: Node) -> str:
    """The words for a condition."""
    [(kind, body)] = node.items()
    match kind:
        case "in":
            return f"{value_words(body[0])} in ({', '.join(shortened([literal_words(each) for each in body[1]]))})"
        case "between":
            return f"{value_words(body[0])} from {literal_words(body[1])} to {literal_words(body[2])}"
        case "fold":
            return f"in {listed(map(str, body['in']))} of {body['of']} parts by {literal_words(body['seed'])}"
        case "is_null":
            return f"{value_words(body)} is missing"
        case "not":
            return f"not ({condition_words(body)})"
        case "and" | "or":
            return _junction(kind, body)
        case _:
            return f"{value_words(body[0])} {_SIGNS[kind]} {value_words(body[1])}"


def _junction(kind: str, parts: Sequence[Node]) -> str:
    if len(parts) == 1:
        return condition_words(parts[0])
    told = [f"({condition_words(part)})" if _is_junction(part) else condition_words(part) for part in parts]
    return f" {kind} ".join(shortened(told))


def _is_junction(node: Node) -> bool:
    [(kind, body)] = node.items()
    return kind in {"and", "or"} and len(body) > 1


def literal_words(value: object) -> str:
    """The words for a literal."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"“{value}”" if isinstance(value, str) else number_text(value)


def number_text(value: Any) -> str:  # noqa: ANN401 - int or float
    """A number in twelve digits."""
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def numbers_text(value: Any) -> str:  # noqa: ANN401 - a number or a list of them
    """A number, or a list of numbers, as text."""
    return listed(map(number_text, value)) if isinstance(value, list | tuple) else number_text(value)


def shortened(parts: Sequence[str]) -> Sequence[str]:
    """The first parts of a long list, and how many more there are; a short list whole."""
    if len(parts) <= PARTS_SHOWN_MAX:
        return parts
    return [*parts[: PARTS_SHOWN_MAX - 1], f"{len(parts) - PARTS_SHOWN_MAX + 1} more"]


def listed(names: Iterable[str]) -> str:
    """Names with commas and an `and`."""
    parts = shortened(list(names))
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
