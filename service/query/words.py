"""A query in words: one line of English for ledgers, receipts and histories. A function of the query alone.

It reads the canonical form, so that a query is described in the same words wherever it is shown.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

PARTS_SHOWN_MAX: Final = 6
"""The most parts of a list that are shown; a longer one says how many more there are."""

_OPERATORS: Final = {"add": "+", "sub": "-", "mul": "*"}
_SIGNS: Final = {"eq": "=", "ne": "≠", "lt": "<", "le": "≤", "gt": ">", "ge": "≥"}

_REDUCED: Final = {"max": "the largest number", "norm": "the norm of the numbers"}

_Node = Mapping[str, Any]


def in_words(canonical: _Node) -> str:
    """The words for a canonical query as read from JSON, or for the reason of a burn.

    `count of visits where area = 1295, by day, σ 18`. Raises LookupError for a document that is neither.
    """
    if "burn" in canonical:
        return f"burn after a restored backup: {canonical['burn']['why']}"
    where = canonical["where"]
    parts = [
        _selected(canonical["select"], canonical["from"]) + ("" if where is None else f" where {_condition(where)}"),
        *([f"by {_listed(map(_group, canonical['group_by']))}"] if canonical["group_by"] else []),
        *([_REDUCED[canonical["reduce"]]] if "reduce" in canonical else []),
        *_clip(canonical["per_individual"]),
        *(["shortened to what is left"] if canonical.get("rule") == "clip" else []),
        *([] if "prepaid" in canonical["noise"] else [_noise(canonical["noise"])]),
        *(["Laplace noise"] if canonical.get("mechanism") == "laplace" else []),
    ]
    return ", ".join(parts)


def _selected(items: Sequence[_Node], table: str) -> str:
    if all("count" in item for item in items):
        return f"count of {table}"
    if "exhausted" in items[0]:
        return f"tick of the count of exhausted {table}"
    if "active" in items[0]:
        return f"count of {table} with at least {_number(100 * items[0]['active']['share'])} % of the budget left"
    return f"{_listed(_item(item) for item in items)} in {table}"


def _item(item: _Node) -> str:
    [(kind, body)] = item.items()
    if kind == "count":
        return kind
    if kind == "count_individuals":
        return "individuals"
    if kind in {"moments", "gradient"}:
        if kind == "moments":
            return f"second moments of {_features(body)}"
        target = body["target"]
        is_group = isinstance(target, str) or "bin" in target or "bucket" in target
        return f"{body['loss']} gradient of {_group(target) if is_group else _value(target)} by {_features(body)}"
    if kind == "linear" and "matrix" in body:
        matrix = body["matrix"]
        return f"{len(matrix['starts']) - 1} functionals of {body['column']} with {len(matrix['values'])} weights"
    if kind == "histogram" and "values" in body:
        return f"histogram of {len(body['values'])} values of {body['column']}"
    if kind == "linear":
        weights = body["weights"] if isinstance(body["weights"], list | tuple) else [body["weights"]]
        counts = _shortened([str(len(each["indices"])) for each in weights])
        return f"weights of {', '.join(counts)} values of {body['column']}"
    return f"{kind} of {_value(body['of']) if 'of' in body else body['column']}"


def _group(key: str | _Node) -> str:
    if isinstance(key, str):
        return key
    [(kind, body)] = key.items()
    if kind == "bucket":
        return f"{body['by']} of {body['column']}"
    name = _value(body["of"]) if "of" in body else body["column"]
    if "width" in body:
        return f"{name} in bins of {_number(body['width'])}"
    return f"{name} in {len(body['edges']) - 1} bins"


def _value(node: object) -> str:
    if not isinstance(node, Mapping):
        return _literal(node)
    [(kind, body)] = node.items()
    if kind == "col":
        return str(body)
    if kind == "abs":
        return f"|{_value(body)}|"
    if kind == "clip":
        return f"{_value(body[0])} cut to {_number(body[1])}..{_number(body[2])}"
    if kind == "predict":
        return f"{body['link']} prediction by {_features(body)}"
    if kind == "own":
        return _own(body)
    return f"({_value(body[0])} {_OPERATORS[kind]} {_value(body[1])})"


def _own(body: _Node) -> str:
    total = f"sum of {_value(body['sum'])} of own {body['from']}" if "sum" in body else f"number of own {body['from']}"
    where = "" if body.get("where") is None else f" where {_condition(body['where'])}"
    return f"({total}{where} cut to {_number(body['clip'][0])}..{_number(body['clip'][1])})"


def _features(body: _Node) -> str:
    vectors = [str(each["vector"]) for each in body["features"] if "vector" in each]
    others = len(body["features"]) - len(vectors)
    counted = [f"{others} feature{'s' * (others > 1)}"] if others else []
    return " and ".join([*counted, *([f"the numbers of {', '.join(vectors)}"] if vectors else [])])


def _condition(node: _Node) -> str:
    [(kind, body)] = node.items()
    match kind:
        case "in":
            return f"{_value(body[0])} in ({', '.join(_shortened([_literal(each) for each in body[1]]))})"
        case "between":
            return f"{_value(body[0])} from {_literal(body[1])} to {_literal(body[2])}"
        case "fold":
            return f"in {_listed(map(str, body['in']))} of {body['of']} parts by {_literal(body['seed'])}"
        case "is_null":
            return f"{_value(body)} is missing"
        case "not":
            return f"not ({_condition(body)})"
        case "and" | "or":
            return _junction(kind, body)
        case _:
            return f"{_value(body[0])} {_SIGNS[kind]} {_value(body[1])}"


def _junction(kind: str, parts: Sequence[_Node]) -> str:
    if len(parts) == 1:
        return _condition(parts[0])
    told = [f"({_condition(part)})" if _is_junction(part) else _condition(part) for part in parts]
    return f" {kind} ".join(_shortened(told))


def _is_junction(node: _Node) -> bool:
    [(kind, body)] = node.items()
    return kind in {"and", "or"} and len(body) > 1


def _clip(per_individual: _Node) -> list[str]:
    clip, rows = per_individual["l2_clip"], per_individual.get("rows")
    return [
        *([] if rows is None else [f"people with more than {rows} {'row' if rows == 1 else 'rows'} as {rows}"]),
        *([] if clip is None else [f"clipped to {_numbers(clip)} per person"]),
    ]


def _noise(noise: _Node) -> str:
    if "sigma" in noise:
        return f"σ {_numbers(noise['sigma'])}"
    if "scale" in noise:
        return f"scale {_number(noise['scale'])}"
    parts = noise.get("weights") or [1]
    divided = "" if len(set(parts)) == 1 else f", divided {':'.join(map(_number, parts))}"
    if "share" in noise:
        return f"at most {_number(100 * noise['share'])} % of the budget per person{divided}"
    if "rho" in noise:
        return f"at most ρ {_number(noise['rho'])} per person{divided}"
    return f"± {_numbers(noise['half_width'])} with {_number(100 * noise['confidence'])} % confidence"


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"“{value}”" if isinstance(value, str) else _number(value)


def _number(value: Any) -> str:  # noqa: ANN401 - int or float
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def _numbers(value: Any) -> str:  # noqa: ANN401 - a number or a list of them
    return _listed(map(_number, value)) if isinstance(value, list | tuple) else _number(value)


def _shortened(parts: Sequence[str]) -> Sequence[str]:
    if len(parts) <= PARTS_SHOWN_MAX:
        return parts
    return [*parts[: PARTS_SHOWN_MAX - 1], f"{len(parts) - PARTS_SHOWN_MAX + 1} more"]


def _listed(names: Iterable[str]) -> str:
    parts = _shortened(list(names))
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
