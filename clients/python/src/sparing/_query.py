"""The JSON of the query language (version 1), made from keyword arguments."""

from collections.abc import Mapping, Sequence
from typing import Required, TypedDict

from sparing._expressions import Column, Condition, Group, Item, count, exhausted, plain

GroupKey = str | Column | Group
_NOISE = ("sigma", "rho", "share", "half_width", "scale")


ByItem = float | Sequence[float]
"""One number, or for a query with several items a list with a number for each."""


class NoiseRequest(TypedDict, total=False):
    """The keyword arguments that state the noise."""

    sigma: ByItem  # standard deviation per coordinate, in the item's units
    rho: float  # such that one individual is charged this at most
    share: float  # such that one individual is charged at most this share of the dataset's budget
    half_width: ByItem  # at most such that an answer is within this of what was counted at `confidence`
    confidence: float  # default 0.95; goes with half_width
    weights: Sequence[float]  # by item, the parts of rho or share; default: equal parts
    scale: float  # of Laplace noise, in the item's units; its standard deviation is sqrt(2) times that
    mechanism: str  # "laplace" for queries in which an individual has one number; default "gaussian", but for a scale


class QueryRequest(NoiseRequest, total=False):
    """The keyword arguments that make a query.

    Exactly one of `sigma`, `rho`, `share`, `half_width` and `scale` is required, and none for `exhausted()`.
    """

    dataset: Required[str]  # the dataset; part of the address, not of the document
    select: Item | Sequence[Item]  # default: count()
    where: Condition | None  # default: all individuals
    from_: str | None  # an event table; default: the table of individuals
    group_by: GroupKey | Sequence[GroupKey]  # one group per declared value, empty ones included
    l2_clip: (
        ByItem | None
    )  # bound on one individual's vector (L2 norm); above 64 rows of one, this or `rows` is required
    rows: int | None  # of one individual's selected rows of events, the first so many count; default: all
    reduce: str | None  # "max" or "norm": one number of the exact sum, with one noise; default: all its numbers
    rule: str  # "clip" shortens the vectors of those who cannot pay; default "skip": the dataset's rule
    reuse: bool  # default True: an identical query of this epoch gets its released answer, at no charge; active() never


def question_json(question: QueryRequest) -> dict[str, object]:
    """The document to send; defaults are left to the service.

    Raises:
        TypeError: an argument is unknown.
        ValueError: not exactly one kind of noise is given.
    """
    if not isinstance(question.get("dataset"), str):
        raise TypeError("dataset must be the name of a dataset")
    unknown = set(question) - set(QueryRequest.__annotations__)
    if unknown:
        raise TypeError(f"a question has no argument {', '.join(sorted(unknown))}")
    select, where = _select(question.get("select", count())), question.get("where")
    if where is not None and not isinstance(where, Condition):
        raise TypeError(f"where must be a condition such as col('age') >= 40, not {where!r}")
    has_noise = select != [exhausted().json] or any(name in question for name in _NOISE)
    bounds = {"l2_clip": _numbers(question.get("l2_clip")), "rows": plain(question.get("rows"))}
    body = {
        "version": 1,
        "select": select,
        "where": None if where is None else where.json,
        "from": question.get("from_"),
        "group_by": _keys(question["group_by"]) if "group_by" in question else None,
        "per_individual": _given(bounds) or None,
        "noise": _noise(question) if has_noise else None,
        "mechanism": "laplace" if "scale" in question else None,
    }
    switches = {name: value for name, value in question.items() if name in ("rule", "reuse", "mechanism", "reduce")}
    return _given(body) | switches


def _given(members: Mapping[str, object]) -> dict[str, object]:
    """Those that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def _select(items: Item | Sequence[Item]) -> list[Mapping[str, object]]:
    listed = [items] if isinstance(items, Item | str) else list(items)
    for item in listed:
        if not isinstance(item, Item):
            raise TypeError(f"select must be count(), sum_('spend'), histogram('item') or a list of them, not {item!r}")
    return [item.json for item in listed]


def _keys(keys: GroupKey | Sequence[GroupKey]) -> list[object]:
    listed = [keys] if isinstance(keys, str | Column | Group) else list(keys)
    return [key_json(key) for key in listed]


def key_json(key: GroupKey) -> object:
    """The JSON of a key to group by: a column, or bins or calendar parts."""
    return key.name if isinstance(key, Column) else key.json if isinstance(key, Group) else key


def _numbers(given: object) -> object:
    """One number unchanged, or a list of numbers from any sequence or array."""
    listed = given.tolist() if hasattr(given, "tolist") else given
    return [plain(each) for each in listed] if isinstance(listed, Sequence) else listed


def _noise(question: QueryRequest) -> dict[str, object]:
    given = {name: _numbers(value) for name, value in question.items() if name in _NOISE}
    if len(given) != 1:
        raise ValueError("give exactly one of sigma, rho, share, half_width and scale")
    if "weights" in question and not given.keys() & {"rho", "share"}:
        raise ValueError("weights go with share and rho")
    if "half_width" in given:
        return {**given, "confidence": plain(question.get("confidence", 0.95))}
    if "confidence" in question:
        raise ValueError("confidence goes with half_width")
    if "weights" in question:
        return {**given, "weights": _numbers(question["weights"])}
    return given
