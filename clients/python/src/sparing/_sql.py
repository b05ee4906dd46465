"""A dialect of SQL for queries: `SELECT town, COUNT(*) FROM people WHERE age >= 40 GROUP BY town`.

The text is parsed by sqlglot and translated node by node. The query is refused if a node cannot be translated, or if a
part of a node has no meaning here: at the end, every node of the tree must have been used.
"""

import contextlib
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from sparing._averages import quantile
from sparing._expressions import Column, Condition, Group, Item
from sparing._query import QueryRequest
from sparing._sql_tree import WORDS, Tables, kind_of, put_names, text_of

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Expression

TEXT_MAX: Final = 20_000
DEPTH_MAX: Final = 14
SUPPORTED: Final = (
    "SELECT of grouping columns, COUNT(*), COUNT(column), COUNT_INDIVIDUALS(), SUM(value), AVG(value),"
    " VARIANCE(value), STDDEV(value), MEDIAN(column), APPROX_QUANTILE(column, p) and HISTOGRAM(column), all with the"
    " same FILTER or CASE; FROM one table; WHERE with AND, OR, NOT, =, <>, <, <=, >, >=, IN, BETWEEN, IS NULL, IS TRUE"
    " and one CASE WHEN; values of columns, literals, +, -, *, ABS and CLIP(value, low, high);"
    " GROUP BY columns, BINS(column, width or edges), DATE_TRUNC('month', column) and EXTRACT(YEAR, HOUR or ISODOW"
    " FROM column); in WHERE also EXTRACT(YEAR FROM column) beside years"
)
_UNITS: Final = ("day", "week", "month", "quarter", "year")
_PARTS: Final = {"YEAR": "year", "HOUR": "hour", "ISODOW": "weekday"}
_OTHER_PARTS: Final = {
    **{
        part: f"of all years together; write DATE_TRUNC('{part.lower()}', column)"
        for part in ("QUARTER", "MONTH", "WEEK", "DAY")
    },
    "DOW": "from Sunday as 0; write ISODOW, which counts from Monday as 1",
}
_PART_NAMES: Final = {name.title(): name for name in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR")} | {
    "DayOfWeek": "DOW"
}
"""The part that EXTRACT takes for functions such as YEAR(column), by sqlglot's names for these functions."""
_YEAR_MAX: Final = 9998  # a condition names the first day of the year after
COMPARISONS: Final = {"EQ": "eq", "NEQ": "ne", "LT": "lt", "LTE": "le", "GT": "gt", "GTE": "ge"}
_FLIPPED: Final = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_AVERAGES: Final = {
    "Avg": "mean",
    "Variance": "variance",
    "VariancePop": "variance",
    "Stddev": "stddev",
    "StddevPop": "stddev",
    "StddevSamp": "stddev",
}
"""A sample's and a population's variance differ by a part in n, which is below the noise."""
COMPARED: Final[dict[str, Callable[[Any, Any], bool]]] = {
    word: getattr(operator, word) for word in COMPARISONS.values()
}
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)")
_ARITHMETIC: Final = {"Add": "add", "Sub": "sub", "Mul": "mul"}
_BEFORE_ITEMS: Final = frozenset({"", "COMMA", "L_PAREN", "SELECT", "GROUP_BY"})
_AFTER_ITEMS: Final = frozenset({"", "COMMA", "R_PAREN", "FROM", "WHERE", "GROUP_BY"})
"""Kinds of tokens that may not follow a comma; `_BEFORE_ITEMS` are those that may not precede one."""


class SQLError(ValueError):
    """The text is not SQL, or has a part that is not in this dialect; nothing was sent."""


def question_of(
    text: str, edited: "Callable[[Expression], Expression]" = lambda tree: tree, tables: Callable[[], Tables] = dict
) -> tuple[tuple[Item, ...], QueryRequest]:
    """The items and the `from_`, `where` and `group_by` of a query in SQL, without its dataset and noise.

    Args:
        text: the query.
        edited: removes parts of the tree that are not translated, such as ORDER BY, and returns the rest.
        tables: returns the public schema, in which names are found whatever their case; by default names stay as
            written.

    Raises:
        SQLError: the text cannot be read, is too long or too deep, or has a part that is not in the dialect.
        ImportError: sqlglot is not installed.
    """
    with reading() as parser:
        _check_size(text)
        _check_commas([token.token_type.name for token in parser.tokenize(text, read="postgres")])
        trees = parser.parse(text, read="postgres")
        if len(trees) != 1 or trees[0] is None:
            raise SQLError("give one SELECT, and nothing after it")
        own = put_names(trees[0], tables)
        return _Translation(str(own.get("key", ""))).question(edited(trees[0]))


@contextlib.contextmanager
def reading() -> Iterator[Any]:
    """The parser, whose errors become SQLError. Raises ImportError where it is not installed."""
    try:
        import sqlglot  # noqa: PLC0415 - an extra of this library
    except ImportError:
        raise ImportError("SQL needs sqlglot: pip install 'sqlglot>=28.10,<31'") from None
    try:
        yield sqlglot
    except sqlglot.errors.SqlglotError as error:
        raise SQLError(f"the text is not SQL: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise SQLError("the text is nested too deeply") from None


def _check_size(text: str) -> None:
    """Refuse a text that is too long or too deep before it is parsed, as the parser's recursion has no bound."""
    if len(text) > TEXT_MAX:
        raise SQLError(f"the text has more than {TEXT_MAX} characters")
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    if deepest > DEPTH_MAX:
        raise SQLError(f"parentheses are nested more than {DEPTH_MAX} deep")


def _check_commas(kinds: Sequence[str]) -> None:
    """Refuse a comma with nothing before or after it, as sqlglot ignores such commas."""
    for before, kind, after in zip(["", *kinds], kinds, [*kinds[1:], ""], strict=False):
        if kind == "COMMA" and (before in _BEFORE_ITEMS or after in _AFTER_ITEMS):
            raise SQLError("the text is not SQL: a comma has nothing before or after it")


class _Translation:
    """The translation of one tree; `_used` has the nodes that are translated so far."""

    def __init__(self, key: str) -> None:
        """A translation for a table whose individuals are named by the column `key`, empty if unknown."""
        self._used: set[int] = set()
        self._table, self._key_column = "", key
        self._filters: list[dict[str, Any] | None] = []  # of each item

    def question(self, tree: "Expression") -> tuple[tuple[Item, ...], QueryRequest]:
        if kind_of(tree) != "Select":
            raise _refused(tree)
        parts = self._parts(tree, "expressions", "from_", "where", "group")
        self._table = self._from(parts["from_"])
        question: QueryRequest = {"from_": self._table}  # type: ignore[typeddict-item]  # the caller gives the dataset
        conditions = [] if parts["where"] is None else self._where(parts["where"])
        keys: list[tuple[str, str | Group]] = []
        if parts["group"] is not None:
            grouped = self._parts(parts["group"], "expressions")["expressions"]
            keys = [(text_of(key), self._key(key)) for key in grouped]
            question["group_by"] = [key for _, key in keys]
        items = self._items(parts["expressions"], [text for text, _ in keys])
        if not items:
            raise SQLError("select something beside the columns of GROUP BY, such as COUNT(*) or AVG(value)")
        conditions += self._filter()
        if conditions:
            question["where"] = Condition(conditions[0] if len(conditions) == 1 else {"and": conditions})
        left = [node for node in tree.walk() if id(node) not in self._used]
        if left:
            raise _refused(left[0])
        return tuple(items), question

    def _parts(self, node: "Expression", *names: str) -> dict[str, Any]:
        """The named parts of a node, None for absent ones. Raises SQLError if the node has any other part."""
        self._used.add(id(node))
        for name, part in node.args.items():
            if name not in names and part not in (None, False, [], ""):
                raise _refused(part if hasattr(part, "args") else node, name)
        return {name: node.args.get(name) for name in names}

    def _from(self, node: "Expression | None") -> str:
        if node is None:
            raise SQLError("name the table: FROM people")
        table = self._parts(node, "this")["this"]
        if kind_of(table) != "Table":
            raise _refused(table)
        return self._name(self._parts(table, "this")["this"])

    def _name(self, node: "Expression") -> str:
        if kind_of(node) != "Identifier":
            raise _refused(node)
        parts = self._parts(node, "this", "quoted")
        name = str(parts["this"])
        if name.upper() in WORDS and not parts["quoted"]:
            raise SQLError(f'{name} is a word of SQL: write a column of this name as "{name}"')
        return name

    def _items(self, nodes: Iterable["Expression"], grouped: Sequence[str]) -> list[Item]:
        items = []
        for node in nodes:
            if text_of(node) in grouped:
                self._used.update(id(each) for each in node.walk())  # the same text as a key, which was translated
                continue
            self._filters.append(None)
            items.append(self._item(node))
        return items

    def _filter(self) -> list[dict[str, Any]]:
        """The condition on rows that all items share, if any. Raises SQLError if their conditions differ."""
        first = self._filters[0]
        if any(each != first for each in self._filters):
            raise SQLError(
                "items that count different rows are queries of their own: ask for those of each FILTER, CASE or"
                " COUNT(column) by themselves"
            )
        return [] if first is None else [first]

    def _of_rows(self, condition: object) -> None:
        """Restrict the item in translation to the rows with this condition."""
        if not isinstance(condition, dict):
            raise SQLError("the condition of an item is a condition on columns")
        before = self._filters[-1]
        self._filters[-1] = condition if before is None else {"and": [before, condition]}

    def _item(self, node: "Expression") -> Item:
        kind = kind_of(node)
        if kind in {"Count", "Filter", "Sum"}:
            return self._added(node, kind)
        if kind in _AVERAGES:
            return Item({_AVERAGES[kind]: _of_value(self._value(self._parts(node, "this")["this"]))})
        if kind in {"ApproxQuantile", "Median"}:
            return self._quantile(node)
        name, arguments = self._called(node)
        if name == "COUNT_INDIVIDUALS" and not arguments:
            return Item({"count_individuals": {}})
        if name == "HISTOGRAM" and len(arguments) == 1:
            return Item({"histogram": {"column": self._column(arguments[0])}})
        if kind == "Column":
            raise SQLError(f"{text_of(node)} is neither counted nor in GROUP BY")
        raise _refused(node)

    def _added(self, node: "Expression", kind: str) -> Item:
        """A count or a sum, also one that FILTER or CASE restricts to some rows."""
        if kind == "Filter":
            parts = self._parts(node, "this", "expression")
            self._of_rows(self._condition(self._parts(parts["expression"], "this")["this"]))
            return self._item(parts["this"])
        if kind == "Count":
            counted = self._parts(node, "this", "big_int")["this"]
            if counted is None:
                raise _refused(node)
            return self._count(counted)
        summed = self._parts(node, "this")["this"]
        if kind_of(summed) == "Case":
            condition, summed, default = self._case(summed)
            if default not in (None, 0):
                raise _refused(node)
            self._of_rows(self._condition(condition))
            if _is_literal(summed):
                return self._sum_of_ones(summed)
        value = self._value(summed)
        return Item({"sum": _of_value(value)})

    def _sum_of_ones(self, node: "Expression") -> Item:
        if self._literal(node) != 1:
            raise SQLError(f"a sum of {text_of(node)} is no count: sum a column, or 1")
        return Item({"count": {}})

    def _count(self, node: "Expression") -> Item:
        """The count of rows, of those with a value, or of the individuals by their key."""
        kind = kind_of(node)
        if kind == "Distinct":
            listed = self._parts(node, "expressions")["expressions"]
            if len(listed) == 1 and kind_of(listed[0]) == "Column" and self._column(listed[0]) == self._key_column:
                return Item({"count_individuals": {}})
            raise SQLError("write COUNT_INDIVIDUALS() for the number of individuals; no other values are told apart")
        if kind == "Star":
            self._parts(node)
        elif kind == "Case":
            condition, then, default = self._case(node)
            if default is not None:
                raise _refused(node)
            self._literal(then)
            self._of_rows(self._condition(condition))
        elif _is_literal(node):
            self._literal(node)
        else:
            self._of_rows({"not": {"is_null": {"col": self._column(node)}}})
        return Item({"count": {}})

    def _case(self, node: "Expression") -> tuple["Expression", "Expression", object]:
        """The condition of `CASE WHEN condition THEN value ELSE literal END`, the value, and the literal or None."""
        parts = self._parts(node, "ifs", "default")
        if len(parts["ifs"]) != 1:
            raise SQLError("CASE takes one WHEN here; write the others as conditions")
        then = self._parts(parts["ifs"][0], "this", "true")
        default = parts["default"]
        if default is None or kind_of(default) == "Null":
            self._used.update([] if default is None else [id(default)])
            return then["this"], then["true"], None
        return then["this"], then["true"], self._literal(default)

    def _quantile(self, node: "Expression") -> Item:
        parts = self._parts(node, "this", "quantile")
        probability: Any = 0.5 if parts["quantile"] is None else self._literal(parts["quantile"])
        try:
            return quantile(Column(self._column(parts["this"])), probability)
        except ValueError as error:
            raise SQLError(str(error)) from None

    def _called(self, node: "Expression") -> tuple[str, list["Expression"]]:
        """The name in capitals and the arguments of a function that SQL does not know."""
        if kind_of(node) != "Anonymous":
            return "", []
        parts = self._parts(node, "this", "expressions")
        return str(parts["this"]).upper(), parts["expressions"]

    def _key(self, node: "Expression") -> str | Group:
        kind = kind_of(node)
        if kind == "Column":
            return self._column(node)
        if kind == "TimestampTrunc":
            parts = self._parts(node, "this", "unit")
            unit = str(self._parts(parts["unit"], "this", "is_string")["this"]).lower()
            if unit not in _UNITS:
                raise SQLError(f"DATE_TRUNC takes {', '.join(_UNITS)}, not {unit}")
            return Group({"bucket": {"column": self._column(parts["this"]), "by": unit}})
        if (calendar := self._calendar(node)) is not None:
            return Group({"bucket": {"column": calendar[1], "by": calendar[0]}})
        name, arguments = self._called(node)
        if name == "BINS" and len(arguments) > 1:
            column, cuts = self._column(arguments[0]), [self._literal(each) for each in arguments[1:]]
            return Group({"bin": {"column": column, **({"width": cuts[0]} if len(cuts) == 1 else {"edges": cuts})}})
        raise _refused(node)

    def _calendar(self, node: "Expression") -> tuple[str, str] | None:
        """The unit and the column of `EXTRACT(YEAR FROM at)` or `YEAR(at)`; None for anything else."""
        kind = kind_of(node)
        if kind == "Extract":
            parts = self._parts(node, "this", "expression")
            part, column = str(self._parts(parts["this"], "this", "is_string")["this"]).upper(), parts["expression"]
        elif kind in _PART_NAMES:
            part, column = _PART_NAMES[kind], self._parts(node, "this")["this"]
        else:
            return None
        if part in _OTHER_PARTS:
            raise SQLError(f"{part} in SQL is {_OTHER_PARTS[part]}")
        if part not in _PARTS:
            raise SQLError(f"EXTRACT takes {', '.join(_PARTS)}, not {part}")
        return _PARTS[part], self._column(column)

    def _where(self, node: "Expression") -> list[dict[str, Any]]:
        """The condition of WHERE as a list of one, or an empty list if it is always true."""
        (condition,) = self._parts(node, "this").values()
        found = self._condition(condition)
        if not isinstance(found, bool):
            return [found]
        columns = [each for each in condition.walk() if kind_of(each) == "Column"]
        if not (found or columns):
            raise SQLError("WHERE is never true, so that there is nothing to ask")
        return [] if found else [_never(self._column(columns[0]))]

    def _condition(self, node: "Expression") -> dict[str, Any] | bool:
        """A condition, or its truth value if it depends on no column."""
        constant = _constant(node)
        if constant is not None:
            self._used.update(id(each) for each in node.walk())
            return constant
        kind = kind_of(node)
        if kind == "Paren":
            return self._condition(self._parts(node, "this")["this"])
        if kind in {"And", "Or"}:
            joints, parts = _chain(node, kind)
            for each in joints:
                self._parts(each, "this", "expression")
            found = [self._condition(part) for part in parts]
            deciding = [part for part in found if not isinstance(part, bool)]
            return deciding[0] if len(deciding) == 1 else {kind.lower(): deciding}
        if kind == "Not":
            if any(kind_of(each) == "Case" for each in node.walk()):
                raise SQLError("CASE has no NOT before it here; write its condition")
            return {"not": self._condition(self._parts(node, "this")["this"])}
        if kind == "Column":
            return {"eq": [{"col": self._column(node)}, True]}
        if kind == "Case":
            return self._condition_of_case(node, is_true=True)
        return self._compared(node, kind)

    def _compared(self, node: "Expression", kind: str) -> dict[str, Any] | bool:
        """A condition on values."""
        if kind in COMPARISONS:
            return self._comparison(node, COMPARISONS[kind])
        if kind in {"In", "Between"}:
            return self._several(node, kind)
        if kind == "Is":
            parts = self._parts(node, "this", "expression", "negate")
            if kind_of(parts["expression"]) == "Boolean" and not parts["negate"]:
                value = self._value(parts["this"])
                return {"and": [{"not": {"is_null": value}}, {"eq": [value, self._literal(parts["expression"])]}]}
            if kind_of(parts["expression"]) != "Null":
                raise SQLError("write IS NULL, IS TRUE or IS FALSE, each also with NOT")
            self._parts(parts["expression"])
            is_null = {"is_null": self._year_of(parts["this"]) or self._value(parts["this"])}
            return {"not": is_null} if parts["negate"] else is_null
        raise _refused(node)

    def _several(self, node: "Expression", kind: str) -> dict[str, Any]:
        """The condition of IN with a list, or of BETWEEN with two literals."""
        if kind == "In":
            parts = self._parts(node, "this", "expressions")
            nodes = parts["expressions"] or []
            words = ["eq"] * len(nodes)
        else:
            parts = self._parts(node, "this", "low", "high")
            words, nodes = ["ge", "le"], [parts["low"], parts["high"]]
        literals = [self._literal(each) for each in nodes]
        literals = literals if kind == "In" else [_in_order(each) for each in literals]
        column = self._year_of(parts["this"])
        if column is not None:
            years = [_in_years(column, word, year) for word, year in zip(words, literals, strict=True)]
            return {"or" if kind == "In" else "and": years}
        value = self._value(parts["this"])
        return {"in": [value, literals]} if kind == "In" else {"between": [value, *literals]}

    def _condition_of_case(self, node: "Expression", *, is_true: object) -> dict[str, Any] | bool:
        """The condition under which a CASE has the value `is_true`; elsewhere it has another value."""
        condition, then, default = self._case(node)
        if self._literal(then) != is_true or default == is_true:
            raise _refused(node)
        return self._condition(condition)

    def _comparison(self, node: "Expression", word: str) -> dict[str, Any] | bool:
        left, right = self._parts(node, "this", "expression").values()
        if _is_literal(left) and not _is_literal(right):
            word, left, right = _FLIPPED[word], right, left
        if (column := self._year_of(left)) is not None:
            return _in_years(column, word, self._literal(right))
        if kind_of(left) == "Case" and word == "eq" and _is_literal(right):
            return self._condition_of_case(left, is_true=self._literal(right))
        operand = self._operand(right)
        return {word: [self._value(left), operand if word in {"eq", "ne"} else _in_order(operand)]}

    def _year_of(self, node: "Expression") -> dict[str, str] | None:
        """The column of whose values a condition compares the year; None for any other value."""
        while kind_of(node) == "Paren":
            node = self._parts(node, "this")["this"]
        calendar = self._calendar(node)
        if calendar is not None and calendar[0] != "year":
            raise SQLError(f"{text_of(node)} is for GROUP BY; of the calendar WHERE takes EXTRACT(YEAR FROM column)")
        return None if calendar is None else {"col": calendar[1]}

    def _operand(self, node: "Expression") -> object:
        return self._literal(node) if _is_literal(node) else self._value(node)

    def _value(self, node: "Expression") -> dict[str, Any]:
        kind = kind_of(node)
        if kind == "Paren":
            return self._value(self._parts(node, "this")["this"])
        if kind == "Column":
            return {"col": self._column(node)}
        if kind in _ARITHMETIC:
            left, right = self._parts(node, "this", "expression").values()
            return {_ARITHMETIC[kind]: [self._operand(left), self._operand(right)]}
        if kind == "Neg":
            return {"sub": [0, self._value(self._parts(node, "this")["this"])]}
        if kind == "Abs":
            return {"abs": self._value(self._parts(node, "this")["this"])}
        name, arguments = self._called(node)
        if name == "CLIP" and len(arguments) == 3:
            return {"clip": [self._value(arguments[0]), *(self._literal(each) for each in arguments[1:])]}
        raise _refused(node)

    def _column(self, node: "Expression") -> str:
        """A column of the table, or of the individuals as `people.town`."""
        if kind_of(node) != "Column":
            raise SQLError(f"{text_of(node)} must be a column")
        parts = self._parts(node, "this", "table")
        name = self._name(parts["this"])
        if parts["table"] is None:
            return name
        table = self._name(parts["table"])
        return name if table == self._table else f"{table}.{name}"

    def _literal(self, node: "Expression") -> object:
        kind = kind_of(node)
        if kind == "Paren":
            return self._literal(self._parts(node, "this")["this"])
        if kind == "Boolean":
            return bool(self._parts(node, "this")["this"])
        if kind == "Neg":
            number = self._literal(self._parts(node, "this")["this"])
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise _refused(node)
            return -number
        if kind == "Cast":
            return self._time(node)
        if kind == "Literal":
            parts = self._parts(node, "this", "is_string")
            return str(parts["this"]) if parts["is_string"] else _number(str(parts["this"]))
        raise SQLError(f"{text_of(node)} must be a literal")

    def _time(self, node: "Expression") -> object:
        """The literal of a text with a type, as in DATE '2026-03-31' or TIMESTAMP '...'."""
        parts = self._parts(node, "this", "to")
        kind = str(self._parts(parts["to"], "this")["this"]).rpartition(".")[2]
        if kind not in {"DATE", "TIMESTAMP", "TIMESTAMPTZ"} or not parts["this"].args.get("is_string"):
            raise _refused(node)
        return _in_order(self._literal(parts["this"]))


def _in_years(column: dict[str, str], word: str, year: object) -> dict[str, Any]:
    """A condition on the year of a date or time, as comparisons with the first days of years."""
    if isinstance(year, bool) or not isinstance(year, int) or not 1 <= year <= _YEAR_MAX:
        raise SQLError(f"a year is a whole number from 1 to {_YEAR_MAX}, not {year!r}")
    first, next_first = ([column, f"{each:04}-01-01"] for each in (year, year + 1))
    if word in {"eq", "ne"}:
        within = {"and": [{"ge": first}, {"lt": next_first}]}
        return within if word == "eq" else {"not": within}
    return {"lt": {"lt": first}, "ge": {"ge": first}, "le": {"lt": next_first}, "gt": {"ge": next_first}}[word]


def _never(column: str) -> dict[str, Any]:
    """A condition that no row fulfils."""
    is_null = {"is_null": {"col": column}}
    return {"and": [is_null, {"not": is_null}]}


def _constant(node: "Expression") -> bool | None:
    """The truth of a condition that no column decides on, such as `1 = 1`; None for any other."""
    kind = kind_of(node)
    if kind == "Boolean":
        return bool(node.this)
    if kind in {"Paren", "Not"}:
        inner = _constant(node.this)
        return inner if inner is None or kind == "Paren" else not inner
    if kind in {"And", "Or"}:
        decisive = kind == "Or"
        found = [_constant(part) for part in _chain(node, kind)[1]]
        return decisive if decisive in found else None if None in found else not decisive
    if kind in COMPARISONS and kind_of(node.this) == kind_of(node.expression) == "Literal":
        left, right = (each.this if each.args["is_string"] else _number(each.this) for each in node.args.values())
        if isinstance(left, str) == isinstance(right, str):
            return COMPARED[COMPARISONS[kind]](left, right)
    return None


def _chain(node: "Expression", kind: str) -> tuple[list["Expression"], list["Expression"]]:
    """The nodes of a chain of one operator, and the parts that it joins, in order."""
    joints: list[Expression] = []
    parts: list[Expression] = []
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if kind_of(each) == kind:
            joints.append(each)
            waiting += [each.expression, each.this]
        else:
            parts.append(each)
    return joints, parts


def _in_order(value: object) -> object:
    """A literal that an order or a type marks as a time, as the query language writes it; midnight becomes the day."""
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    day, time = found.groups()
    return f"{day}T{time}" if time.strip("0:.") else day


def _of_value(value: dict[str, Any]) -> dict[str, Any]:
    """A column's name, or a calculated value, as select items contain it."""
    return {"column": value["col"]} if "col" in value else {"of": value}


def _is_literal(node: "Expression") -> bool:
    inner: Any = node
    while kind_of(inner) in {"Paren", "Neg"}:
        inner = inner.args["this"]
    return kind_of(inner) in {"Literal", "Boolean", "Cast", "Null"}


def _number(text: str) -> int | float:
    try:
        number = int(text) if text.isdecimal() else float(Decimal(text))
    except (InvalidOperation, ValueError):
        raise SQLError(f"{text!r} is not a number") from None
    if math.isinf(number):
        raise SQLError(f"{text!r} is too large for a double")
    return number


def _refused(node: object, part: str = "") -> SQLError:
    shown = text_of(node) if hasattr(node, "sql") else str(node)  # type: ignore[arg-type]
    what = f"{part.rstrip('_').upper().replace('_', ' ')} in {shown}" if part else shown
    return SQLError(f"{what[:200]} is not supported. Supported are: {SUPPORTED}.")
