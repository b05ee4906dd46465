"""Damaged SQL is refused by an SQLError, or translated into a query that says every part of it and selects its rows.

The texts are those of docs/sql.md and more, after damage to their words and characters. The parts are counted by a
reader of our own; the rows that a WHERE selects are those of SQLite.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import pytest
import sqlglot
from hypothesis import HealthCheck, Phase, given, seed, settings
from sqlglot import expressions as exp

from clients.python.tests.damaged_sql import DAMAGES, TEXTS, damaged
from clients.python.tests.sql_readings import overlooked, selected_by_sqlite, truth
from service.query.parse import parse_query
from service.query.problems import QueryProblem
from sparing import SQLError, _sql
from sparing._query import question_json
from sparing._sql import question_of
from tests.rotation import times

Json = Any

LIMITS: Final = (
    "is nested more than 16 deep",  # a chain of NOT
    "must not be empty",  # IN (), and the name ""
    "must be true or false, a number, or text",  # texts as bounds of CLIP
    "must be a valid",  # the same of BINS
    "must be above 0",  # a width of BINS
    "must have at least",  # edges
    "must have at most",
)
"""The service's words on values that the dialect takes anywhere, with the field named; no form is refused."""


def outcome_of(text: str) -> str:
    """The outcome of a text: refused, or translated as it says; and the kind of run that its WHERE had."""
    try:
        items, found = question_of(text)
    except SQLError:
        return "refused"
    if is_rewritten(text):
        return "rewritten"
    document = question_json({**found, "dataset": "shop", "select": items, "sigma": 1})
    assert overlooked(text, document) == []
    try:
        parse_query(json.dumps(document).encode())
    except QueryProblem as problem:
        assert all(any(limit in error.message for limit in LIMITS) for error in problem.errors), problem  # noqa: PT017
        return "limited"
    rows = list(rows_for(document.get("where")))
    if not rows:
        return "translated"
    try:
        selected = selected_by_sqlite(text, rows)
    except sqlite3.OperationalError:
        return "lenient"
    assert [truth(document["where"], row) for row in rows] == selected
    return "selected"


def is_rewritten(text: str) -> bool:
    """Tell whether a text has a form that the language has in other words: test_sql.py shows those one by one."""
    for node in sqlglot.parse_one(text, read="postgres").walk():
        beside = list(node.args.values())
        is_alone = isinstance(_above(node), exp.And | exp.Or | exp.Not | exp.Where)
        if (
            isinstance(node, exp.Case | exp.Filter | exp.TableAlias)
            or (isinstance(node, exp.Count) and not isinstance(node.this, exp.Star))
            or (isinstance(node, exp.Column | exp.Boolean) and is_alone)
            or (isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean))
            or (isinstance(node, exp.Predicate) and all(isinstance(each, exp.Literal) for each in beside))
        ):
            return True
    return False


def _above(node: exp.Expr) -> object:
    """The node that has this one, parentheses aside."""
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    return above


def rows_for(where: Json | None) -> list[dict[str, Any]]:
    """Rows of values near the literals of a condition, NULL among them; none where a text stands beside a number."""
    leaves = [] if where is None else [set(parts(leaf)) for leaf in leaves_of(where)]
    columns = [{name for kind, name in leaf if kind == "column"} for leaf in leaves]
    literals = {each for leaf in leaves for kind, each in leaf if kind in {"text", "number"}}
    texts, numbers = (
        _joined(
            {name for leaf, own in zip(leaves, columns, strict=True) if kind in dict(leaf) for name in own}, columns
        )
        for kind in ("text", "number")
    )
    mixed = any({"text", "number"} <= dict(leaf).keys() for leaf in leaves)
    names = sorted(set().union(*columns))
    if mixed or texts & numbers or len({name.upper() for name in names}) < len(names):
        return []
    strings, floats = ([each for each in literals if isinstance(each, str) is is_text] for is_text in (True, False))
    pools = {
        name: [None, "", *sorted(strings)] if name in texts else [None, 0, 1, 2, *sorted(floats)] for name in names
    }
    return [
        {
            name: pool[(number * (2 * place + 3) + number // 5) % len(pool)]
            for place, (name, pool) in enumerate(pools.items())
        }
        for number in range(40 if names else 0)
    ]


def _joined(found: set[str], columns: list[set[str]]) -> set[str]:
    """With every column that stands beside one of these."""
    for _ in columns:
        found = found.union(*(own for own in columns if own & found))
    return found


def leaves_of(condition: Json) -> Iterator[Json]:
    """Its parts that are no and, or, not."""
    ((kind, body),) = condition.items()
    if kind in {"and", "or", "not"}:
        for part in body if isinstance(body, list) else [body]:
            yield from leaves_of(part)
    else:
        yield condition


def parts(node: Json) -> Iterator[tuple[str, Any]]:
    """The columns and the literals of a leaf; what is calculated is a number."""
    if isinstance(node, dict):
        ((kind, body),) = node.items()
        if kind == "col":
            yield "column", body
            return
        yield from [("number", 0)] if kind in {"add", "sub", "mul", "abs", "clip"} else []
        yield from parts(body)
    elif isinstance(node, list):
        for each in node:
            yield from parts(each)
    else:
        yield ("text" if isinstance(node, str) else "number"), node


@settings(max_examples=200)
@given(text=damaged(tuple(DAMAGES)))
def test_a_damaged_text_is_refused_or_says_all_of_itself(text: str) -> None:
    """And selects the rows that SQLite selects; nothing but an SQLError is raised."""
    assert outcome_of(text) in {"refused", "limited", "rewritten", "translated", "selected"}


@pytest.mark.parametrize("text", TEXTS)
def test_the_texts_are_supported(text: str) -> None:
    """Before any damage."""
    assert outcome_of(text) in {"translated", "selected"}


FIXED: Final = settings(
    max_examples=times(30, 60), database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)


@cache
def examples() -> list[str]:
    """Fixed ones of every kind of damage, and the texts themselves."""
    found = list(TEXTS)
    for number, damage in enumerate(DAMAGES):

        @seed(number)
        @FIXED
        @given(text=damaged((damage,)))
        def collect(text: str) -> None:
            found.append(text)

        collect()
    return found


def test_every_outcome_occurs() -> None:
    """Neither is all refused nor all translated."""
    found = Counter(map(outcome_of, examples()))

    assert min(found["refused"], found["selected"]) > len(examples()) // 20


def _everything_is_used(translation: Any, node: Any, *names: str) -> dict[str, Any]:
    translation._used.update(id(each) for each in node.walk())
    return {name: node.args.get(name) for name in names}


def _not_of_the_first(translation: Any, node: Any, right: Any = _sql._Translation._condition) -> dict[str, Any]:
    found: dict[str, Any] = right(translation, node)
    first, *others = found.get("not", {}).get("or", [None])
    return {"or": [{"not": first}, *others]} if others else found


MISTAKES: Final[dict[str, tuple[str, Any]]] = {
    "parts of a node are ignored": ("_Translation._parts", _everything_is_used),
    "a literal on the left does not turn the sign": (
        "_FLIPPED",
        {name: name for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    ),
    "numbers are whole": ("_number", lambda text: int(float(text))),
    "NOT is of the first part alone": ("_Translation._condition", _not_of_the_first),
    "the table of the individuals is forgotten": (
        "_Translation._column",
        lambda translation, node, column=_sql._Translation._column: column(translation, node).rpartition(".")[2],
    ),
}


WITH_OTHER_PARTS: Final = ("SELECT COUNT(*) FROM people LIMIT 5", "SELECT DISTINCT COUNT(*) FROM people")
"""Texts with parts that damage seldom makes."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistaken_translation_is_found(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the reader of our own, or by SQLite."""
    name, mistaken = MISTAKES[mistake]
    monkeypatch.setattr(f"sparing._sql.{name}", mistaken)

    assert any(fails(text) for text in [*examples(), *WITH_OTHER_PARTS])


def fails(text: str) -> bool:
    """The law does not hold for a text."""
    try:
        outcome_of(text)
    except AssertionError:
        return True
    return False
