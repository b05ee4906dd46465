"""A SELECT whose answer is a table: columns in the order of the text, with aliases, ORDER BY, LIMIT and OFFSET.

These parts are removed before the text is translated, and applied to the answer: they do not change the query or its
cost.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from sparing._answers import Answer
from sparing._averages import is_average
from sparing._expressions import Item
from sparing._query import QueryRequest
from sparing._result_names import ResultNames
from sparing._sql import SQLError, question_of
from sparing._sql_having import Having, Kept
from sparing._sql_tree import Tables, kind_of, text_of

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Expression


class NotASelectError(SQLError):
    """The text is SQL, but no SELECT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A selected column: a key or an item, by its place in the query, and its alias."""

    is_key: bool
    place: int
    alias: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    """A query and the arrangement of its answer."""

    items: tuple[Item, ...]
    question: QueryRequest
    outputs: tuple[Output, ...]
    order: tuple[tuple[Output, bool], ...]  # and whether it is descending
    having: Kept[Output] | None
    limit: int | None
    offset: int
    dates: frozenset[int]  # the places of the keys of DATE_TRUNC


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows and the names of their columns; `samples` has a value of each column, even if LIMIT leaves no rows."""

    names: tuple[str, ...]
    rows: list[tuple[object, ...]]
    samples: tuple[object, ...]


def table_query(text: str, tables: Callable[[], Tables] = dict) -> TableQuery:
    """Read a SELECT; `tables` returns the public schema, in which names are found whatever their case.

    Raises:
        SQLError: as for `question_of`; or a histogram is not the only item; or ORDER BY or HAVING names something that
            is not selected or grouped by. NotASelectError for other statements.
    """
    reading = _Reading()
    items, question = question_of(text, reading.edited, tables)
    if len(items) > 1 and any("histogram" in item.json for item in items):
        raise SQLError("HISTOGRAM beside other items is no table; ask for it alone, or for COUNT(*) in groups")
    return TableQuery(
        items=items,
        question=question,
        outputs=tuple(reading.outputs),
        order=tuple(reading.order),
        having=reading.having,
        limit=reading.limit,
        offset=reading.offset,
        dates=frozenset(reading.dates),
    )


class _Reading:
    """A reader of the parts of one tree that arrange the answer."""

    def __init__(self) -> None:
        self.outputs: list[Output] = []
        self.order: list[tuple[Output, bool]] = []
        self.having: Kept[Output] | None = None
        self.limit: int | None = None
        self.offset = 0
        self.dates: list[int] = []

    def edited(self, tree: "Expression") -> "Expression":
        """The tree without aliases, repeated items, HAVING, ORDER BY, LIMIT and OFFSET, which are kept here."""
        if kind_of(tree) != "Select":
            raise NotASelectError("this service answers SELECT, and nothing else")
        listed = tree.expressions
        selected = [(each.args["this"], each.alias) if kind_of(each) == "Alias" else (each, "") for each in listed]
        keys = self._keys(tree, selected)
        items: dict[str, Expression] = {}
        for node, alias in selected:
            text = text_of(node)
            if text not in keys:
                items.setdefault(text, node)
            place = keys.index(text) if text in keys else list(items).index(text)
            self.outputs.append(Output(is_key=text in keys, place=place, alias=alias or None))
        order, limit, offset = (tree.args.pop(name, None) for name in ("order", "limit", "offset"))
        for ordered in [] if order is None else _parts(order, "expressions")["expressions"]:
            parts = _parts(ordered, "this", "desc", "nulls_first")  # no column of an answer has a NULL
            self.order.append((self._named(parts["this"], keys, list(items), "ORDER BY"), bool(parts["desc"])))
        having = tree.args.pop("having", None)
        if having is not None:
            (condition,) = _parts(having, "this").values()
            self.having = Having(lambda node: self._number(node, keys, list(items))).read(condition)
        self.limit = None if limit is None else _whole(limit)
        self.offset = 0 if offset is None else _whole(offset)
        tree.set("expressions", list(items.values()))
        return tree

    def _keys(self, tree: "Expression", selected: Sequence[tuple["Expression", str]]) -> list[str]:
        """The texts of the grouping keys; keys that are places or aliases are replaced by the selected columns."""
        group = tree.args.get("group")
        if group is None:
            return []
        aliased = {alias.casefold(): node for node, alias in selected if alias}
        keys = []
        for key in group.expressions:
            found = key
            if kind_of(key) == "Literal" and not key.args.get("is_string"):
                found = selected[_place(selected, str(key.this))][0]
            elif kind_of(key) == "Column" and not key.args.get("table") and key.name.casefold() in aliased:
                found = aliased[key.name.casefold()]
            keys.append(found if found is key else found.copy())
        self.dates = [place for place, key in enumerate(keys) if kind_of(key) == "TimestampTrunc"]
        group.set("expressions", keys)
        return [text_of(key) for key in keys]

    def _named(self, node: "Expression", keys: Sequence[str], items: Sequence[str], clause: str) -> Output:
        """The output that a part of ORDER BY or HAVING names: by its place, its alias, or its text."""
        if kind_of(node) == "Literal" and not node.args.get("is_string"):
            return self.outputs[_place(self.outputs, str(node.this))]
        alias = node.name if kind_of(node) == "Column" and not node.args.get("table") else ""
        for fold in (str, str.casefold):  # an alias has no case, where none has the very case
            for output in self.outputs:
                if alias and output.alias and fold(output.alias) == fold(alias):
                    return output
        text = text_of(node)
        if text in keys:
            return Output(is_key=True, place=keys.index(text))
        if text in items:
            return Output(is_key=False, place=items.index(text))
        raise SQLError(f"{clause} takes what is selected or grouped by, not {text[:200]}")

    def _number(self, node: "Expression", keys: Sequence[str], items: Sequence[str]) -> Output:
        """The item that a part of HAVING names. Raises SQLError for a grouping key."""
        output = self._named(node, keys, items, "HAVING")
        if output.is_key:
            raise SQLError("HAVING is about numbers; conditions on columns are written in WHERE")
        return output


@dataclass(frozen=True, slots=True, kw_only=True)
class _Key:
    """A column of groups. ORDER BY compares its `ranks`: places for bins, whose texts sort otherwise, else values."""

    name: str
    values: Sequence[object]
    ranks: Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Numbers:
    """The numbers of an item by group, and the columns beside them by the endings of their names."""

    name: str
    values: Sequence[float | None]
    beside: Mapping[str, Sequence[float]]


def table_of(answer: Answer, query: TableQuery, *, has_half_widths: bool) -> Table:
    """The answer as the query arranges it: a row for each group, and beside each number its half width at 95 %.

    Beside an average are the ends of its interval at 95 %. An average without a value, such as one over a count of 0,
    is None. If a key or an alias has the name of a result, the result's name gets an underscore. Keys that are not
    selected come first.
    """
    keys, items = _keys(answer, query), _items(answer, query)
    own = keys[_depth(query) :]  # of a histogram, which stands beside its numbers
    chosen = {output.place for output in query.outputs if output.is_key}
    columns = [(key.name, key.values) for place, key in enumerate(keys[: _depth(query)]) if place not in chosen]
    names = ResultNames([*(key.name for key in keys), *(output.alias or "" for output in query.outputs)])
    titles = [names.free(item.name) for item in items]
    for output in query.outputs:
        if output.is_key:
            columns.append((output.alias or keys[output.place].name, keys[output.place].values))
            continue
        item, name = items[output.place], output.alias or titles[output.place]
        columns += [*((key.name, key.values) for key in own), (name, item.values)]
        columns += [(names.free(f"{name}_{end}"), each) for end, each in item.beside.items() if has_half_widths]
    rows = [tuple([values[row] for _, values in columns]) for row in _ordered(query, keys, items)]
    samples = tuple(next((value for value in values if value is not None), None) for _, values in columns)
    apart = ResultNames(())
    return Table(names=tuple(apart.free(name) for name, _ in columns), rows=rows, samples=samples)


def _depth(query: TableQuery) -> int:
    """The number of grouping keys."""
    return len(query.question.get("group_by", ()))  # type: ignore[arg-type]  # a list, as a text gives it


def _keys(answer: Answer, query: TableQuery) -> list[_Key]:
    """The columns of the groups, and for a histogram the column of its values."""
    axes: list[Any] = list(answer.axes[: _depth(query)])
    parts: Any = answer.axes[-1]["select"]
    if answer.averages:
        labels = [each.label for each in answer.averages[:: len(query.items)]]
    elif "values" in parts[0]:
        axes, labels = [*axes, parts[0]["values"]], list(answer.labels)
    else:
        labels = list(islice(answer.labels, 0, None, len(parts)))
    found = []
    names = _key_names([str(axis["column"]) for axis in axes])
    for place, axis in enumerate(axes):
        texts = [label[axis["column"]] for label in labels]
        values = [_value(axis, text, is_date=place in query.dates) for text in texts]
        places = {text: rank for rank, text in enumerate(dict.fromkeys(texts))}
        is_binned = bool({"edges", "width"} & axis.keys())
        ranks = [places[text] for text in texts] if is_binned else values
        found.append(_Key(name=names[place], values=values, ranks=ranks))
    return found


def _key_names(columns: Sequence[str]) -> list[str]:
    """The names of columns without their tables, except where two names would be equal."""
    short = [name.rpartition(".")[2] for name in columns]
    return [name if short.count(name) == 1 else whole for name, whole in zip(short, columns, strict=True)]


def _items(answer: Answer, query: TableQuery) -> list[_Numbers]:
    step = 1 if "histogram" in query.items[0].json else len(query.items)
    if not answer.averages:
        widths = answer.half_widths
        return [
            _Numbers(
                name=str(answer.labels[place]["select"]),
                values=answer.values[place::step],
                beside={"half_width": widths[place::step]},
            )
            for place in range(step)
        ]
    found = []
    for place, item in enumerate(query.items):
        listed = answer.averages[place::step]
        around = [each.interval() for each in listed]
        ends = {"low": [each.low for each in around], "high": [each.high for each in around]}
        found.append(
            _Numbers(
                name=str(listed[0].label["select"]),
                values=[None if math.isnan(each.value) else each.value for each in listed],
                beside=ends if is_average(item.json) else {"half_width": [each.half_width() for each in listed]},
            )
        )
    return found


def _ordered(query: TableQuery, keys: Sequence[_Key], items: Sequence[_Numbers]) -> Sequence[int]:
    """The rows that HAVING, LIMIT and OFFSET keep, in the order of ORDER BY; None counts as the largest value."""

    def looking(row: int) -> Callable[[Output], float | None]:
        return lambda output: items[output.place].values[row]

    rows = [row for row in range(len(items[0].values)) if query.having is None or query.having(looking(row))]
    for output, is_descending in reversed(query.order):
        if output.is_key:
            ranks = keys[output.place].ranks
        else:
            ranks = [math.inf if value is None else value for value in items[output.place].values]
        rows.sort(key=ranks.__getitem__, reverse=is_descending)
    return rows[query.offset : None if query.limit is None else query.offset + query.limit]


def _value(axis: Mapping[str, Any], label: Any, *, is_date: bool) -> object:  # noqa: ANN401 - of any column
    """A label as SQL has it: days as dates, a truncated time as its first day, and the year of EXTRACT as a number."""
    if not isinstance(label, str):
        return label
    match axis.get("by"):
        case "day" | "week":
            return date.fromisoformat(label)
        case "month":
            return date.fromisoformat(f"{label}-01")
        case "quarter":
            return date(int(label[:4]), 3 * int(label[-1]) - 2, 1)
        case "year":
            return date(int(label), 1, 1) if is_date else int(label)
    if isinstance(axis.get("lower"), str):
        return datetime.fromisoformat(label) if "T" in label else date.fromisoformat(label)
    return label


def _parts(node: "Expression", *names: str) -> dict[str, Any]:
    """The named parts of a node. Raises SQLError if the node has other parts, which would be ignored."""
    if any(part not in (None, False, []) for name, part in node.args.items() if name not in names):
        raise SQLError(f"{text_of(node)[:200]} is not supported")
    return {name: node.args.get(name) for name in names}


def _whole(node: "Expression") -> int:
    """The number of LIMIT or OFFSET. Raises SQLError if it is no whole number."""
    number = _parts(node, "expression")["expression"]
    if kind_of(number) != "Literal" or number.args.get("is_string") or not str(number.this).isdecimal():
        raise SQLError(f"{text_of(node).strip()[:200]} must be a whole number")
    return int(number.this)


def _place(listed: Sequence[object], text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= len(listed):
        raise SQLError(f"{text[:20]} is no place among the {len(listed)} selected columns")
    return int(text) - 1
