"""SQL without the library's parser: the words, names, literals and signs of a text, and its WHERE run by SQLite."""

import contextlib
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

Json = Any

TOKEN: Final = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)|(?P<text>'(?:[^']|'')*')|(?P<name>"(?:[^"]|"")*")
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<word>[^\W\d]\w*)|(?P<mark><>|!=|<=|>=|==|::|.)""",
    re.VERBOSE | re.DOTALL,
)
_TYPE: Final = r"(?:DATE|TIMESTAMPTZ|TIMESTAMP(?: WITH(?:OUT)? TIME ZONE)?)"
TYPED: Final = re.compile(rf"\bCAST \( '' AS {_TYPE} \)|\b{_TYPE} ''|'' :: {_TYPE}\b", re.IGNORECASE)
NOT_NULL: Final = re.compile(r"(?<!\bIS )\bNOT NULL\b", re.IGNORECASE)
SIGNS: Final = {"=": "eq", "==": "eq", "<>": "ne", "!=": "ne", "<": "lt", ">": "lt", "<=": "le", ">=": "le"}
NODES: Final = {
    "eq": "eq",
    "ne": "ne",
    "lt": "lt",
    "gt": "lt",
    "le": "le",
    "ge": "le",
    "add": "+",
    "mul": "*",
    "sub": "-",
}
WORDS: Final = {
    "not": "NOT",
    "in": "IN",
    "abs": "ABS",
    "clip": "CLIP",
    "sum": "SUM",
    "histogram": "HISTOGRAM",
    "bin": "BINS",
}
AVERAGES: Final = {"mean": "AVG", "variance": "VARIANCE", "stddev": "STDDEV", "quantile": "APPROX_QUANTILE"}
SPELLINGS: Final = {
    **dict.fromkeys(("VAR_POP", "VAR_SAMP", "VARIANCE_POP", "VARIANCE_SAMP"), "VARIANCE"),
    **dict.fromkeys(("STDDEV_POP", "STDDEV_SAMP", "STDEV"), "STDDEV"),
}
ITEMS: Final = {"COUNT", "SUM", "HISTOGRAM", "COUNT_INDIVIDUALS", "MEDIAN", *AVERAGES.values(), *SPELLINGS}
UNITS: Final = ("day", "week", "month", "quarter", "year")


class Token(NamedTuple):
    """A part of a text, and its kind: a text, a quoted name, a number, a word or a mark."""

    kind: str
    text: str

    @property
    def word(self) -> str:
        """In capitals; empty for what is no word."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def value(self) -> str:
        """A text or a name without its quotes."""
        quote = {"text": "'", "name": '"'}.get(self.kind)
        return self.text[1:-1].replace(quote * 2, quote) if quote else self.text


def tokens_of(text: str) -> list[Token]:
    """Without blanks, comments and the types of constants."""
    found = [(str(each.lastgroup), each[0]) for each in TOKEN.finditer(text) if each.lastgroup != "space"]
    texts = iter([part for kind, part in found if kind == "text"])
    joined = " ".join("''" if kind == "text" else part for kind, part in found)
    joined = NOT_NULL.sub("IS NOT NULL", TYPED.sub("''", joined))
    again = [Token(str(each.lastgroup), each[0]) for each in TOKEN.finditer(joined)]
    tokens = [Token("text", next(texts)) if each.kind == "text" else each for each in again if each.kind != "space"]
    table = next(_outer(tokens, {"FROM"}), -1) + 1
    named = {table, *(place + 1 for place, each in enumerate(tokens) if each.text == ".")}
    return [_named(each) if place in named else each for place, each in enumerate(tokens)]


def _named(token: Token) -> Token:
    """Sqlglot takes any text for the name of a table, and any mark behind a point for that of a column."""
    return Token("name", f'"{token.value}"') if token.kind in {"text", "mark"} else token


def told(text: str) -> Counter[tuple[str, Any]]:
    """The words, literals and signs of a text, without the grouping columns of its select list."""
    found: Counter[tuple[str, Any]] = Counter()
    for token in _unlabelled(tokens_of(text)):
        if token.kind == "text":
            unit = token.value.lower()
            found["literal", unit if unit in UNITS else token.value] += 1
        elif token.kind == "number":
            found["literal", float(token.text)] += 1
        elif token.kind == "mark" and token.text not in "(),.;":
            found["sign", SIGNS.get(token.text, token.text)] += 1
        elif token.word == "MEDIAN":
            found.update([("word", "APPROX_QUANTILE"), ("literal", 0.5)])
        elif token.kind != "mark":
            found.update(("word", SPELLINGS.get(part.upper(), part.upper())) for part in token.value.split("."))
    return found


def _unlabelled(tokens: Sequence[Token]) -> list[Token]:
    """The entries of the select list that count, and those that are not in GROUP BY."""
    begin, end = next(_outer(tokens, {"SELECT"}), 0) + 1, next(_outer(tokens, {"FROM"}), len(tokens))
    grouped = set(map(_folded, tokens[next(_outer(tokens, {"GROUP"}), len(tokens)) :]))
    cuts = [begin, *(begin + place + 1 for place in _outer(tokens[begin:end], {","})), end + 1]
    entries = [tokens[cut : following - 1] for cut, following in pairwise(cuts)]
    kept = [each for each in entries if not set(map(_folded, each)) <= grouped or (each and each[0].word in ITEMS)]
    return [*tokens[:begin], *(token for entry in kept for token in entry), *tokens[end:]]


def _folded(token: Token) -> str:
    return token.text.upper() if token.kind in {"word", "text"} else token.text


def _outer(tokens: Sequence[Token], wanted: set[str]) -> Iterator[int]:
    """The places of words or marks outside of parentheses."""
    level = 0
    for place, token in enumerate(tokens):
        level += (token.text == "(") - (token.text == ")")
        if level == 0 and (token.word or token.text) in wanted:
            yield place


def said(document: Json) -> Counter[tuple[str, Any]]:
    """The words, literals and signs of SQL that a document stands for."""
    found: Counter[tuple[str, Any]] = Counter({("word", "SELECT"): 1, ("word", "FROM"): 1})
    found.update(("word", word) for word in (["WHERE"] if "where" in document else []))
    found.update(("word", word) for word in (["GROUP", "BY"] if "group_by" in document else []))
    found.update(_names(document["from"]))
    for key in document.get("group_by", []):
        found.update(_names(key) if isinstance(key, str) else _said(key))
    found.update(each for part in (document["select"], document.get("where", [])) for each in _said(part))
    return found


def _said(node: Json) -> Iterator[tuple[str, Any]]:
    if isinstance(node, bool):
        yield "word", str(node).upper()
    elif isinstance(node, int | float):
        yield "literal", abs(float(node))
    elif isinstance(node, str):
        yield "literal", node
    elif isinstance(node, list):
        for each in node:
            yield from _said(each)
    else:
        for kind, body in node.items():
            yield from _said_by(kind, body)


def _said_by(kind: str, body: Json) -> Iterator[tuple[str, Any]]:
    if kind in {"col", "column"}:
        yield from _names(body)
    elif kind in AVERAGES:
        yield "word", AVERAGES[kind]
        yield from _said(body)
    elif kind == "by":
        spelt = {"hour": ["EXTRACT", "FROM", "HOUR"], "weekday": ["EXTRACT", "FROM", "ISODOW"]}
        yield from (("word", word) for word in spelt.get(body, ["DATE_TRUNC"]))
        yield from [("literal", body)] if body in UNITS else []
    elif kind in {"count", "count_individuals"}:
        yield "word", kind.upper()
        yield from [("sign", "*")] if kind == "count" else []
    else:
        words = {"between": ["BETWEEN", "AND"], "is_null": ["IS", "NULL"]}.get(
            kind, [WORDS[kind]] if kind in WORDS else []
        )
        words += [kind.upper()] * (len(body) - 1) if kind in {"and", "or"} else []
        yield from (("word", word) for word in words)
        yield from [("sign", NODES[kind])] if kind in NODES else []
        yield from _said(body)


def _names(name: str) -> list[tuple[str, str]]:
    return [("word", part.upper()) for part in name.split(".")]


def overlooked(text: str, document: Json) -> list[tuple[str, Any]]:
    """The words, literals and signs that one of the two has and the other has not.

    The table may stand before its columns, and + before anything. A minus is a difference, the sign of a literal, or
    before a value a difference from a zero that is not in the text. sqlglot overlooks ALL and an AS without a name, and
    that a BETWEEN has no AND.
    """
    asked, found = told(text), said(document)
    minus, differences = asked.pop(("sign", "-"), 0), found.pop(("sign", "-"), 0)
    signs = minus - differences - sum(number < 0 for number in _numbers(document))
    may_be_odd = asked["literal", 0.0] > 0
    zeros = Counter({("literal", 0.0): differences})
    free = {("sign", "+"), *(("word", word) for word in (document["from"].upper(), "ALL", "AS"))}
    ands = Counter({("word", "AND"): found["word", "BETWEEN"]})
    left = [each for each in asked - found if each not in free] + [*(found - asked - zeros - ands)]
    return left + ([("sign", "-")] if signs < 0 or (signs % 2 and not may_be_odd) else [])


def _numbers(node: Json) -> Iterator[float]:
    if isinstance(node, dict | list):
        for each in node.values() if isinstance(node, dict) else node:
            yield from _numbers(each)
    elif isinstance(node, int | float) and not isinstance(node, bool):
        yield node


# The rows that a WHERE selects


def truth(node: Json, row: dict[str, Any]) -> bool | None:
    """A condition of the query language, as its page says."""
    ((kind, body),) = node.items()
    if kind == "not":
        inner = truth(body, row)
        return None if inner is None else not inner
    if kind in {"and", "or"}:
        parts = [truth(part, row) for part in body]
        return (kind == "or") if (kind == "or") in parts else None if None in parts else kind == "and"
    if kind == "is_null":
        return value(body, row) is None
    left, *others = (value(each, row) for each in (body[:1] + body[1] if kind == "in" else body))
    if left is None or None in others:
        return None
    reading: dict[str, Callable[[], bool]] = {
        "in": lambda: left in others,
        "between": lambda: others[0] <= left <= others[1],
        "eq": lambda: left == others[0],
        "ne": lambda: left != others[0],
        "lt": lambda: left < others[0],
        "le": lambda: left <= others[0],
        "gt": lambda: left > others[0],
        "ge": lambda: left >= others[0],
    }
    return reading[kind]()


def value(node: Json, row: dict[str, Any]) -> Any:
    """A value of the query language."""
    if not isinstance(node, dict):
        return node
    ((kind, body),) = node.items()
    if kind == "col":
        return row[body]
    parts = [value(each, row) for each in (body if isinstance(body, list) else [body])]
    if None in parts:
        return None
    reading: dict[str, Callable[[], Any]] = {
        "add": lambda: parts[0] + parts[1],
        "sub": lambda: parts[0] - parts[1],
        "mul": lambda: parts[0] * parts[1],
        "abs": lambda: abs(parts[0]),
        "clip": lambda: _clipped(*parts),
    }
    return reading[kind]()


def _clipped(number: float, low: float, high: float) -> float:
    return min(max(number, low), high)


def selected_by_sqlite(text: str, rows: Sequence[dict[str, Any]]) -> list[bool | None]:
    """The truth of the WHERE of a text for each row; SQLite's own reading of its precedence and of NULL."""
    tokens = tokens_of(text)
    table = tokens[next(_outer(tokens, {"FROM"})) + 1].value
    begin = next(_outer(tokens, {"WHERE"})) + 1
    end = next(_outer(tokens, {"GROUP", ";"}), len(tokens))
    names = list(rows[0])
    condition = " ".join(_in_one_table(tokens[begin:end], table, names))
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.create_function("CLIP", 3, lambda *parts: None if None in parts else _clipped(*parts))
        database.execute(f"CREATE TABLE t ({', '.join(map(_quoted, names))})")
        places = ", ".join("?" * len(names))
        database.executemany(f"INSERT INTO t VALUES ({places})", map(list, map(dict.values, rows)))  # noqa: S608
        found = database.execute(f"SELECT {condition} FROM t ORDER BY rowid").fetchall()  # noqa: S608
    return [None if each is None else bool(each) for (each,) in found]


def _in_one_table(tokens: Sequence[Token], table: str, names: Sequence[str]) -> Iterator[str]:
    """The columns of the individuals are named as in the query language."""
    place = 0
    while place < len(tokens):
        if [each.text for each in tokens[place + 1 : place + 2]] == ["."]:
            first, last = tokens[place].value, tokens[place + 2].value
            yield _quoted(last if first == table else f"{first}.{last}")
            place += 3
        else:
            yield _quoted(tokens[place].text) if tokens[place].text in names else tokens[place].text
            place += 1


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
