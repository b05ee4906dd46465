"""Draws queries of every item, noise, condition, group and form, half of them with a fault of one kind.

What is drawn is kept with its outcome (`tests.golden.queries`), so that it is drawn once and not in the gate.
"""

import random
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Final

from tests.laws.node_world import TABLES, VALUES

Json = dict[str, Any]

ITEMS: Final = (
    *("count", "count_individuals", "sum", "histogram", "linear", "active", "exhausted", "moments", "gradient"),
    "several",
)
COMPOSITES: Final = ("mean", "variance", "stddev", "quantile", "ratio", "difference")
"""Items that are worked out from linear ones, which have numbers of their own: one more moves no other query."""
NOISES: Final = ("sigma", "rho", "share", "half_width", "scale", "by item", "weights", "prepaid")
PURE, MONITORED = "pure", "gdp with a monitor"
DATASETS: Final = ("gdp", MONITORED, "zcdp", "rdp", PURE)
"""Datasets of each accounting, by name."""
OF_PEOPLE: Final = frozenset({"active", "exhausted", "moments", "gradient"})
_SCALES: Final = {"age": 0.01, "level": 0.25, "spend": 0.002, "balance": 1}
_WEIGHTS: Final = (1, -2, 0.5, 0.1, 7, 1e-3, 1e6)
_NUMBERS: Final = (-3, 0, 1, 2, 0.5, 10, 2.5, 100, 1e6)
_ODD: Final[tuple[Any, ...]] = (
    *(None, True, "", "nothing", "a" * 70, [], {}, -1, 0, 1e-40, 1e40, 2**53, 1.5, "1", [1], {"col": "nothing"}),
    *("Ærø", "2020-02-30", {"count": {}}, 10**30),
)


def drawn(number: int) -> tuple[str, Json]:
    """The dataset and the query of this number: dataset, item and noise in turn, the rest by a source of its own."""
    source = random.Random(number)
    item, noise = ITEMS[number % len(ITEMS)], NOISES[number // len(ITEMS) % len(NOISES)]
    dataset = DATASETS[number // (len(ITEMS) * len(NOISES)) % len(DATASETS)]
    if item == "exhausted" and _mostly(source):
        dataset = MONITORED
    if noise == "prepaid" and _mostly(source):
        noise = "sigma"
    if dataset == PURE and _mostly(source):
        noise = source.choice(["scale", "scale", "rho", "half_width"])
    document = _Drawing(source, item, is_laplace=noise == "scale" or dataset == PURE).document(noise)
    return dataset, _with_fault(document, source) if _rarely(source) else document


def drawn_composite(number: int) -> tuple[str, Json]:
    """The dataset and the query of this number that has composite items: dataset and item in turn."""
    source = random.Random(f"composite {number}")
    item, dataset = COMPOSITES[number % len(COMPOSITES)], DATASETS[number // len(COMPOSITES) % len(DATASETS)]
    document = _Drawing(source, item, is_laplace=False).document(source.choice(["share", "rho", "rho", "weights"]))
    if _mostly(source):
        document.pop("reduce", None)
        document.get("per_individual", {}).pop("l2_clip", None)
    return dataset, _with_fault(document, source) if _rarely(source) else document


def _mostly(source: random.Random) -> bool:
    return source.random() < 0.9


def _often(source: random.Random) -> bool:
    return source.random() < 0.5


def _rarely(source: random.Random) -> bool:
    return source.random() < 0.3


class _Drawing:
    """The parts of one query."""

    def __init__(self, source: random.Random, item: str, *, is_laplace: bool) -> None:
        self._source, self._item, self._is_laplace = source, item, is_laplace
        self._table = "people" if item in OF_PEOPLE else source.choice(["people", "people", "visits"])
        self._columns: Json = TABLES[self._table]["columns"]
        self._by: str | None = None  # the column of a difference

    def document(self, noise: str) -> Json:
        """The whole query."""
        source, several = self._source, self._item == "several"
        items = [source.choice(["count", "sum", "histogram", "linear"]) for _ in range(2)] if several else [self._item]
        document: Json = {"version": 1, "select": [self._selected(each) for each in items]}
        if self._table == "visits" or source.random() < 0.2:
            document["from"] = self._table
        document["noise"] = self._noise(noise, len(items))
        if noise == "scale":
            document["mechanism"] = "laplace"
        if self._item == "exhausted":
            return document | {"noise": {"prepaid": {}}}
        optional: Mapping[str, tuple[float, Callable[[], Any]]] = {
            "where": (0.4, lambda: self._condition(2)),
            "group_by": (0.95 if self._by else 0.05 if self._item in OF_PEOPLE else 0.3, self._groups),
            "per_individual": (0.4, lambda: self._bounds(len(items))),
            "rule": (0.02 if self._is_laplace else 0.15, lambda: "clip"),
            "reduce": (0.1, lambda: source.choice(["max", "norm"])),
            "reuse": (0.2, lambda: source.choice([True, False])),
        }
        return document | {name: make() for name, (share, make) in optional.items() if source.random() < share}

    def _named(self, *kinds: str) -> str:
        return self._source.choice([name for name, column in self._columns.items() if column["type"] in kinds])

    def _values(self, name: str, number: int) -> list[Any]:
        """Values of a column, now and then with those that it does not declare."""
        column = self._columns[name]
        every = [each for each in VALUES[name] if each is not None]
        listed = [each for each in every if _is_declared(each, column)] if _mostly(self._source) else every
        return self._source.sample(listed, min(number, len(listed)))

    def _selected(self, item: str) -> Json:
        source = self._source
        match item:
            case "count" | "count_individuals" | "exhausted":
                return {item: {}}
            case "sum":
                column = {"column": self._named("integer", "real")}
                return {"sum": source.choice([column, {"of": self._value(2)}])}
            case "histogram":
                name = self._named("category", "boolean", "integer")
                return {
                    "histogram": source.choice([{"column": name}, {"column": name, "values": self._values(name, 3)}])
                }
            case "linear":
                return {"linear": self._linear()}
            case "mean" | "variance" | "stddev" | "quantile" | "ratio" | "difference":
                return {item: self._composite(item)}
            case "active":
                return {"active": {"share": source.choice([0.25, 0.5, 1, 0.7500000000000001])}}
            case "moments":
                return {"moments": self._features()}
            case _:
                return {"gradient": self._model()}

    def _composite(self, item: str) -> Json:
        source = self._source
        if item == "ratio":
            return {side: self._selected(source.choice(["count", "sum", "count_individuals"])) for side in ("of", "to")}
        if item == "difference":
            by = self._by = self._named("category", "boolean")
            first, second = (self._values(by, 2) * 2)[:2]
            of = self._selected(source.choice(["count", "mean", "variance", "stddev", "ratio"]))
            return {"of": of, "by": by, "from": first, "to": second}
        value: Json = self._selected("sum")["sum"]
        if item != "quantile":
            return dict(value)
        bins: Json = source.choice([{}, {"bins": 4}, {"edges": [-2, 0, 5.5, 40]}])
        return {**value, "probability": source.choice([0.5, 0.9, 0.01]), **bins}

    def _linear(self) -> Json:
        name = self._named("category", "boolean", "integer")
        if _rarely(self._source):
            values = self._values(name, 2)
            weights = [self._source.choice(_WEIGHTS) for _ in values]
            return {"column": name, "matrix": {"starts": [0, 1, len(values)], "indices": values, "values": weights}}
        functionals = [self._weights(name) for _ in range(self._source.choice([1, 1, 2]))]
        return {"column": name, "weights": functionals[0] if len(functionals) == 1 else functionals}

    def _weights(self, name: str) -> Json:
        values = self._values(name, self._source.randint(1, 4))
        return {"indices": values, "values": [self._source.choice(_WEIGHTS) for _ in values]}

    def _features(self) -> Json:
        one_hot = [{"one_hot": self._named("category", "boolean")}] if _often(self._source) else []
        (scaled,) = self._scaled(1)
        filled = [scaled | {"fill": 0}] if _often(self._source) else [scaled]
        intercept = {"intercept": True} if _rarely(self._source) else {}
        return {"features": [*filled, *one_hot], **intercept}

    def _scaled(self, number: int) -> list[Json]:
        """Different numbers, mostly of one size."""
        names = self._source.sample(sorted(_SCALES), number)
        if not _mostly(self._source):
            return [{"of": {"col": name}} for name in names]
        return [{"of": {"mul": [{"col": name}, _SCALES[name]]}} for name in names]

    def _model(self) -> Json:
        loss = self._source.choice(["logistic", "squared", "softmax"])
        target: Any = {
            "logistic": {"col": "member"},
            "squared": self._scaled(1)[0]["of"],
            "softmax": self._source.choice(["town", "area"]),
        }[loss]
        features = self._scaled(2)
        classes = {"town": 3, "area": 4}.get(target, 1) if isinstance(target, str) else 1
        numbers = [[self._source.choice([0, 0.5, -0.25]) for _ in features] for _ in range(classes)]
        clip = {"residual_clip": 2.5} if loss == "squared" else {}
        parameters = numbers if loss == "softmax" else numbers[0]
        return {"loss": loss, "target": target, "features": features, "parameters": parameters, **clip}

    def _value(self, depth: int) -> Json:
        if depth == 0 or _often(self._source):
            return {"col": self._named("integer", "real")}
        kind = self._source.choice(["add", "sub", "mul", "abs", "clip"])
        inner = self._value(depth - 1)
        if kind == "abs":
            return {"abs": inner}
        if kind == "clip":
            return {"clip": [inner, *sorted(self._source.sample(_NUMBERS, 2))]}
        return {kind: [inner, self._source.choice([self._source.choice(_NUMBERS), self._value(depth - 1)])]}

    def _condition(self, depth: int) -> Json:
        if depth > 0 and _often(self._source):
            kind = self._source.choice(["and", "or", "not"])
            parts = [self._condition(depth - 1) for _ in range(2)]
            return {"not": parts[0]} if kind == "not" else {kind: parts}
        name = self._named("category", "boolean", "integer", "real", "date", "datetime")
        is_ordered = self._columns[name]["type"] not in {"category", "boolean"} or not _mostly(self._source)
        ordered = ["lt", "ge", "between"] if is_ordered else []
        kind = self._source.choice(["eq", "ne", "in", "is_null", *ordered])
        if kind == "is_null":
            return {"is_null": {"col": name}}
        values = self._values(name, 2) * 2
        beside = {"between": [{"col": name}, *values[:2]], "in": [{"col": name}, values[:2]]}
        return {kind: beside.get(kind, [{"col": name}, values[0]])}

    def _groups(self) -> list[Any]:
        name, dated = self._named("category", "boolean"), self._named("date")
        if self._by is not None:
            return [self._by]
        keys: list[Any] = [name, {"bucket": {"column": dated, "by": self._source.choice(["day", "month", "year"])}}]
        if self._table == "people":
            keys.append({"bin": {"column": "age", "edges": [0, 18, 40, 121]}})
        return self._source.sample(keys, self._source.choice([1, 1, 2]))

    def _bounds(self, items: int) -> Json:
        clips = [self._source.choice([0.5, 2.5, 40, 1e6]) for _ in range(items)]
        bounds: Json = {"l2_clip": clips[0] if items == 1 else clips}
        return bounds | ({"rows": self._source.choice([1, 2, 9])} if self._table == "visits" else {})

    def _noise(self, noise: str, items: int) -> Json:
        source = self._source
        match noise:
            case "by item":
                return {"sigma": [source.choice([30, 2.5, 400]) for _ in range(items)]}
            case "weights":
                return {"rho": 0.01, "weights": [source.choice([1, 2, 0.5]) for _ in range(items)]}
            case "half_width":
                return {"half_width": source.choice([250, 12.5, 3]), "confidence": source.choice([0.9, 0.95])}
            case "prepaid":
                return {"prepaid": {}}
            case _:
                sizes = {"sigma": [30, 2.5, 2**18], "rho": [0.01, 1e-8, 0.3], "share": [0.5, 1e-8], "scale": [30, 2.5]}
                return {noise: source.choice(sizes[noise])}


def _is_declared(value: Any, column: Json) -> bool:
    match column["type"]:
        case "category" if "categories" in column:
            return value in column["categories"]
        case "category":
            return bool(0 <= value < column["size"])
        case "boolean":
            return True
        case _:
            return bool(column["lower"] <= value <= column["upper"])


def _with_fault(document: Json, source: random.Random) -> Json:
    """The query with one part that is gone, other, twice, or named otherwise."""
    broken = deepcopy(document)
    holder, key = source.choice([*_places(broken)])
    kind = source.choice(["gone", "odd", "odd", "renamed", "twice", "scaled"])
    part = holder[key]
    match kind:
        case "gone":
            del holder[key]
        case "renamed" if isinstance(holder, dict):
            holder[f"{key}s"] = holder.pop(key)
        case "twice" if isinstance(holder, list):
            holder.append(deepcopy(part))
        case "scaled" if isinstance(part, int | float):
            holder[key] = part * source.choice([1e-12, -1, 1e12])
        case _:
            holder[key] = source.choice(_ODD)
    return broken


def _places(node: Any) -> "list[tuple[Any, Any]]":
    """Every member of an object and of a list, with its place."""
    if isinstance(node, dict):
        own: list[tuple[Any, Any]] = [(node, key) for key in node]
        return own + [place for each in node.values() for place in _places(each)]
    if isinstance(node, list):
        own = [(node, place) for place in range(len(node))]
        return own + [place for each in node for place in _places(each)]
    return []
