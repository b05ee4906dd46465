"""SQL: every example of the page, a law between documents and texts, and everything else refused by name."""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.python.tests.sql_readings import selected_by_sqlite, truth
from sparing import Client, SQLError
from sparing._expressions import Condition
from sparing._sql import DEPTH_MAX, TEXT_MAX, question_of
from tests.rotation import times

PAGE = (Path(__file__).parents[3] / "docs" / "sql.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```sql\n(.*?)```\n\n```json\n(.*?)```", PAGE, re.DOTALL)


def translated(text: str, client: Client) -> dict[str, Any]:
    """The document of a text, without what every document has."""
    document = client.dataset("d").sql(text).noise(sigma=1).json
    return {name: value for name, value in document.items() if name not in {"version", "noise"}}


@pytest.mark.parametrize(("text", "document"), EXAMPLES)
def test_an_example_is_its_document(text: str, document: str, client: Client) -> None:
    """The page states it."""
    assert translated(text, client) == json.loads(document)


def test_every_block_of_the_page_is_tested() -> None:
    """No SQL without a document."""
    assert PAGE.count("```sql") == PAGE.count("```json") == len(EXAMPLES) > 2


def test_the_code_of_the_page_runs(script: Any, answer: Any, monkeypatch: Any, capsys: Any) -> None:
    """Executed as printed, against a fake service."""
    preview = {"dimension": 1, "grid": 1, "sigma": 20, "half_width_95": 39, "worst_case_rho": "0.1"}
    script.steps = [httpx.Response(200, json=answer), httpx.Response(200, json=preview | {"worst_case_share": 0.5})]
    script.steps += [httpx.Response(200, json=answer)] * 3
    monkeypatch.setenv("SPARING_URL", "https://sparing.test")
    monkeypatch.setenv("SPARING_API_KEY", "k")
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", lambda _, request: script(request))
    *blocks, _ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)  # test_sqlalchemy.py runs the last
    code = "\n".join(blocks)

    exec(compile(code, "sql.md", "exec"), {})  # noqa: S102 - our own page

    assert capsys.readouterr().out == "39.0\n"
    noise = [json.loads(body)["noise"] for body in script.bodies]
    assert noise[0] == {"sigma": 20}
    assert noise[3:] == [{"share": 0.05, "weights": [3, 1]}, {"half_width": [50, 25_000], "confidence": 0.95}]


def test_bounds_stand_beside_the_text(client: Client, script: Any, answer: Any) -> None:
    """And the key, as for every query."""
    script.steps = [httpx.Response(200, json=answer)]
    client.sql("SELECT COUNT(*) FROM b", dataset="d", l2_clip=3, rows=2, reuse=False, idempotency_key="k", share=0.5)
    assert json.loads(script.bodies[0]) == {
        "version": 1,
        "from": "b",
        "select": [{"count": {}}],
        "per_individual": {"l2_clip": 3, "rows": 2},
        "noise": {"share": 0.5},
        "reuse": False,
    }
    assert script.keys == ["k"]


COUNT = "SELECT COUNT(*) FROM p"
FROM = "FROM p"
SAME: list[tuple[str, str]] = [
    ("select count ( * ) from p -- a comment", "SELECT COUNT(*) FROM p"),
    ("SELECT COUNT(*) FROM p WHERE (((a = 1)))", "SELECT COUNT(*) FROM p WHERE a = 1"),
    ("SELECT COUNT(*) FROM p WHERE 1 < a", "SELECT COUNT(*) FROM p WHERE a > 1"),
    ("SELECT COUNT(*) FROM p WHERE a != -(1)", "SELECT COUNT(*) FROM p WHERE a <> -1"),
    ("SELECT COUNT(*) FROM p WHERE p.a = 1", "SELECT COUNT(*) FROM p WHERE a = 1"),
    ("SELECT COUNT(*) FROM p WHERE a NOT IN (1)", "SELECT COUNT(*) FROM p WHERE NOT a IN (1)"),
    ("SELECT COUNT(*) FROM p WHERE a IS NOT NULL", "SELECT COUNT(*) FROM p WHERE NOT a IS NULL"),
    ("SELECT COUNT(*) FROM p WHERE d < DATE '2026-01-31'", "SELECT COUNT(*) FROM p WHERE d < '2026-01-31'"),
    ("SELECT a, COUNT(*), b FROM p GROUP BY a, b", "SELECT COUNT(*) FROM p GROUP BY a, b"),
    ("SELECT BINS(a, 1), COUNT(*) FROM p GROUP BY BINS(a, 1);", "SELECT COUNT(*) FROM p GROUP BY BINS(a, 1)"),
    ("SELECT COUNT(*) FROM p WHERE 2024 < YEAR(d)", "SELECT COUNT(*) FROM p WHERE (EXTRACT(year FROM d)) > 2024"),
    ("SELECT COUNT(*) FROM p WHERE YEAR(d) IS NOT NULL", "SELECT COUNT(*) FROM p WHERE NOT d IS NULL"),
    (
        "SELECT YEAR(d), COUNT(*) FROM p GROUP BY YEAR(d), HOUR(t)",
        "SELECT COUNT(*) FROM p GROUP BY DATE_TRUNC('year', d), EXTRACT(HOUR FROM t)",
    ),
    *(
        (f"SELECT COUNT({counted}) {FROM}", f"{COUNT}{where}")
        for counted, where in (("1", ""), ("'x'", ""), ("a", " WHERE a IS NOT NULL"))
    ),
    ("SELECT q.a, COUNT(*) FROM p AS q WHERE P.b = 1 GROUP BY a", 'SELECT COUNT(*) FROM p WHERE b = 1 GROUP BY "a"'),
    *(
        (f"{COUNT} WHERE {one}", f"{COUNT}{other}")
        for one, other in (
            ("TRUE", ""),
            ("1 = 1 OR a = 1", ""),
            ("1 = 1 AND a > 5", " WHERE a > 5"),
            ("NOT (2 < 1) AND (a = 1 OR 'x' = 'y')", " WHERE a = 1"),
            ("a IN (NULL) AND (1 != 1)", " WHERE a IS NULL AND a IS NOT NULL"),
            ("a OR NOT b", " WHERE a = TRUE OR NOT b = TRUE"),
            ("a IS TRUE", " WHERE a IS NOT NULL AND a = TRUE"),
            ("CASE WHEN a = 1 THEN TRUE ELSE FALSE END", " WHERE a = 1"),
            ("CASE WHEN a = 1 THEN 'y' ELSE 'n' END = 'y'", " WHERE a = 1"),
            ("d < TIMESTAMP '2026-01-31 00:00:00'", " WHERE d < '2026-01-31'"),
            (
                "d BETWEEN '2026-01-31 00:00:00.000' AND '2026-02-01 12:30'",
                " WHERE d BETWEEN '2026-01-31' AND '2026-02-01T12:30'",
            ),
        )
    ),
    *(
        (f"SELECT {one} {FROM} WHERE b = 2", f"SELECT {other} {FROM} WHERE b = 2 AND a = 1")
        for one, other in (
            ("COUNT(*) FILTER (WHERE a = 1)", "COUNT(*)"),
            ("SUM(c) FILTER (WHERE a = 1), SUM(CASE WHEN a = 1 THEN d END)", "SUM(c), SUM(d)"),
            ("SUM(CASE WHEN a = 1 THEN 1 ELSE 0 END)", "COUNT(*)"),
            ("COUNT(CASE WHEN a = 1 THEN 'x' ELSE NULL END)", "COUNT(*)"),
        )
    ),
    (
        "SELECT COUNT(*) FROM p WHERE a = 1 AND b = 2 AND c = 3",
        "SELECT COUNT(*) FROM p WHERE a = 1 AND (b = 2) AND c = 3",
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_ways_to_write_one_query(one: str, other: str, client: Client) -> None:
    """Spelling, parentheses and sides make no difference."""
    assert translated(one, client) == translated(other, client)


@pytest.mark.parametrize(
    "where",
    [
        "a AND NOT b",
        "NOT (a OR 1 = 2)",
        "a IS TRUE OR b IS FALSE",
        "NOT a IS TRUE AND b IS NOT FALSE",
        "CASE WHEN a = 1 THEN TRUE ELSE FALSE END OR b",
        "1 = 0 OR a = b",
    ],
)
def test_a_condition_is_true_where_sqlite_says_so(where: str) -> None:
    """The values are NULL, true and false."""
    rows = [{"a": a, "b": b} for a in (None, 0, 1) for b in (None, 0, 1)]
    text = f"{COUNT} WHERE {where}"
    condition = question_of(text)[1]["where"]
    assert isinstance(condition, Condition)
    assert [truth(condition.json, row) is True for row in rows] == [
        found is True for found in selected_by_sqlite(text, rows)
    ]


SCHEMA: dict[str, Any] = {
    "People": {"kind": "individuals", "key": "id", "columns": {"Town": {}, "age": {}, "AGE": {}}},
    "buys": {"kind": "events", "key": "id", "columns": {"price": {}}},
}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT TOWN, COUNT(*) FROM people GROUP BY people.town", 'SELECT COUNT(*) FROM "People" GROUP BY "Town"'),
        ("SELECT COUNT(*) FROM people GROUP BY age", 'SELECT COUNT(*) FROM "People" GROUP BY "age"'),
        (
            "SELECT SUM(PRICE) FROM BUYS WHERE PEOPLE.TOWN = 'x'",
            'SELECT SUM(price) FROM buys WHERE "People"."Town" = \'x\'',
        ),
        ("SELECT COUNT(DISTINCT B.ID) FROM buys B", "SELECT COUNT_INDIVIDUALS() FROM buys"),
        ('SELECT COUNT(*) FROM "people" GROUP BY aGe', 'SELECT COUNT(*) FROM "people" GROUP BY "aGe"'),
    ],
)
def test_names_without_quotes_have_no_case(one: str, other: str) -> None:
    """The schema is known; a name in quotes, and one that fits none or several, stays as it is written."""
    found, expected = (question_of(text, tables=lambda: SCHEMA) for text in (one, other))
    assert found == expected


REFUSED = [
    "SELECT COUNT(*) FROM p WHERE a = 1e",
    "SELECT COUNT(*) FROM p WHERE a = .5.5",
    "SELECT COUNT(*) FROM p WHERE a = 1e99999999999999999999",
    "SELECT COUNT(*) FROM p WHERE a = 1e400",
    *(f"{COUNT} {rest}" for rest in ("q (b)", ", q", "JOIN q ON TRUE", "LIMIT 5", "OFFSET 1", "ORDER BY a")),
    *(
        f"{COUNT} {rest}"
        for rest in ("TABLESAMPLE (10)", "FOR UPDATE", "HAVING COUNT(*) > 1", "UNION SELECT COUNT(*) FROM q")
    ),
    *(
        f"{COUNT} {rest}"
        for rest in ("GROUP BY CUBE (a)", "GROUP BY ROLLUP (a)", "GROUP BY ALL", "GROUP BY a + 1", "GROUP BY 1")
    ),
    *(
        f"{COUNT} {rest}"
        for rest in ("GROUP BY BINS(a)", "GROUP BY DATE_TRUNC('hour', a)", "GROUP BY EXTRACT(DOW FROM a)")
    ),
    *(
        f"{COUNT} {rest}"
        for rest in ("WINDOW w AS (PARTITION BY a)", "FETCH FIRST 1 ROW ONLY", "; SELECT 1", "; DROP TABLE p")
    ),
    *(
        f"{COUNT} WHERE {where}"
        for where in ("1", "1 = 0", "1 = 'a'", "a IN (NULL)", "a = NULL", "a LIKE 'x%'", "a ILIKE 'x'", "a ~ 'x'")
    ),
    *(
        f"{COUNT} WHERE {where}"
        for where in ("a IN (SELECT 1)", "a IN (b)", "EXISTS (SELECT 1)", "a BETWEEN SYMMETRIC 5 AND 1")
    ),
    *(
        f"{COUNT} WHERE {where}"
        for where in ("a BETWEEN b AND c", "a / 2 = 1", "a % 2 = 1", "a || 'x' = 'y'", "f(a) = 1")
    ),
    *(f"{COUNT} WHERE {where}" for where in ("a::int = 1", "a = '1'::int", "CAST(a AS INT) = 1", 'a = 1 COLLATE "C"')),
    *(
        f"{COUNT} WHERE {where}"
        for where in ("a IS DISTINCT FROM 1", "a = ANY (ARRAY[1])", "CASE WHEN a THEN b END = 1")
    ),
    *(
        f"{COUNT} WHERE {where}"
        for where in ("x.y.a = 1", "a.b.c.d = 1", "(a, b) = (1, 2)", "a = $1", "a = ?", "a[1] = 1", "-'x' = a")
    ),
    *(
        f"{COUNT} WHERE {where}"
        for where in ("YEAR(a) = '2024'", "YEAR(a) = 2024.5", "YEAR(a) = 0", "YEAR(a) = 9999", "YEAR(a) > TRUE")
    ),
    *(
        f"{COUNT} WHERE {where}"
        for where in (
            "YEAR(a) = YEAR(b)",
            "YEAR(a) = b",
            "b = YEAR(a)",
            "YEAR(a) + 1 = 2",
            "HOUR(a) = 3",
            "YEAR(a, b) = 2",
        )
    ),
    *(
        f"{COUNT} GROUP BY {key}"
        for key in ("MONTH(a)", "EXTRACT(QUARTER FROM a)", "EXTRACT(SECOND FROM a)", "YEAR(a + 1)")
    ),
    "SELECT SUM(YEAR(a)) FROM p",
    "SELECT COUNT(*)",
    "SELECT 1",
    "SELECT * FROM p",
    "SELECT a FROM p",
    "SELECT a, COUNT(*) FROM p",
    "SELECT p.* FROM p",
    "SELECT COUNT(DISTINCT a) FROM p",
    "SELECT COUNT(NULL) FROM p",
    "SELECT COUNT(a + 1) FROM p",
    "SELECT COUNT(*), COUNT(a) FROM p",
    "SELECT SUM(a) FILTER (WHERE b = 1), SUM(a) FILTER (WHERE b = 2) FROM p",
    "SELECT COUNT(*) FILTER (WHERE TRUE) FROM p",
    "SELECT SUM(CASE WHEN a = 1 THEN 2 ELSE 0 END) FROM p",
    "SELECT SUM(CASE WHEN a = 1 THEN b ELSE 1 END) FROM p",
    "SELECT COUNT(CASE WHEN a = 1 THEN 1 ELSE 0 END) FROM p",
    "SELECT COUNT(*) FROM p WHERE CASE WHEN a = 1 THEN 1 WHEN a = 2 THEN 1 ELSE 0 END = 1",
    "SELECT COUNT(*) FROM p WHERE CASE WHEN a = 1 THEN 0 ELSE 1 END = 1",
    "SELECT COUNT(*) FROM p WHERE CASE a WHEN 1 THEN TRUE END",
    "SELECT COUNT(*) FROM p WHERE NOT CASE WHEN a = 1 THEN TRUE ELSE FALSE END",
    "SELECT COUNT(*) AS n FROM p",
    "SELECT COUNT(*) + 1 FROM p",
    "SELECT AVG(DISTINCT a) FROM p",
    "SELECT STDDEV(a) OVER () FROM p",
    "SELECT MEDIAN(a + 1) FROM p",
    "SELECT APPROX_QUANTILE(a, 2) FROM p",
    "SELECT APPROX_QUANTILE(a, b) FROM p",
    "SELECT APPROX_QUANTILE(a, 0.5, 100) FROM p",
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a) FROM p",
    "SELECT SUM(DISTINCT a) FROM p",
    "SELECT COUNT(*) FROM p WHERE GROUP + b < 5",
    "SELECT SUM(ORDER) FROM p",
    "SELECT SUM(a) OVER () FROM p",
    "SELECT HISTOGRAM(a, b) FROM p",
    "SELECT HISTOGRAM(a + 1) FROM p",
    "SELECT COUNT_INDIVIDUALS(a) FROM p",
    "SELECT DISTINCT COUNT(*) FROM p",
    "SELECT COUNT(*) INTO q FROM p",
    "SELECT COUNT(*) FROM ONLY p",
    "SELECT COUNT(*) FROM s.p",
    "SELECT COUNT(*) FROM (SELECT * FROM p) AS q",
    "SELECT COUNT(*) FROM p, LATERAL (SELECT 1) AS q",
    "WITH q AS (SELECT 1) SELECT COUNT(*) FROM q",
    "VALUES (1)",
    "TABLE p",
    "DELETE FROM p",
    "EXPLAIN SELECT COUNT(*) FROM p",
    "",
    "(",
    "'",
]


@pytest.mark.parametrize("text", REFUSED)
def test_everything_else_is_refused(text: str) -> None:
    """A part that was silently left out would answer another query."""
    with pytest.raises(SQLError):
        question_of(text)


@pytest.mark.parametrize(
    "text",
    [
        f"{COUNT} WHERE {'(' * 3000}a = 1{')' * 3000}",
        f"{COUNT} WHERE {'NOT ' * 5000}a = 1",
        f"{COUNT} WHERE a = {'-' * 3001}1",
        f"{COUNT} WHERE {' + '.join(['a'] * 6000)} = 1",
        f"{COUNT} WHERE a IN ({', '.join(['1'] * TEXT_MAX)})",
        f"{COUNT} WHERE {'(' * (DEPTH_MAX + 1)}a{')' * (DEPTH_MAX + 1)} = 1",
    ],
    ids=["parentheses", "not", "minus", "plus", "length", "depth"],
)
def test_size_and_depth_are_bounded(text: str) -> None:
    """Before anything recurses without end."""
    with pytest.raises(SQLError):
        question_of(text)


def test_a_refusal_names_the_part_and_what_there_is() -> None:
    """So that the next text is right."""
    with pytest.raises(
        SQLError, match=r"^LIMIT in LIMIT 5 is not supported\. Supported are: SELECT of grouping columns"
    ):
        question_of(f"{COUNT} LIMIT 5")


YEARS = ["<", "<=", "=", "<>", ">=", ">"]


@pytest.mark.parametrize(
    "where", [*(f"{{}} {sign} 2024" for sign in YEARS), "{} BETWEEN 2023 AND 2024", "{} IN (2023, 2025)"]
)
def test_a_condition_on_a_year_selects_its_dates(where: str) -> None:
    """Dates and times; a missing one has no year."""
    _, question = question_of(f"{COUNT} WHERE {where.format('YEAR(d)')}")
    rows = [
        "2022-12-31",
        "2023-01-01",
        "2023-12-31",
        "2024-01-01",
        "2024-12-31T23:59:59Z",
        "2025-01-01T00:00:00Z",
        None,
    ]
    assert question["where"] is not None
    found = [truth(question["where"].json, {"d": row}) for row in rows]
    wanted = selected_by_sqlite(f"{COUNT} WHERE {where.format('y')}", [{"y": row and int(row[:4])} for row in rows])

    assert found == wanted
    assert {True, False} <= set(found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("GROUP BY MONTH(d)", "MONTH in SQL is of all years together; write DATE_TRUNC('month', column)"),
        ("GROUP BY EXTRACT(DOW FROM d)", "DOW in SQL is from Sunday as 0; write ISODOW, which counts from Monday as 1"),
        ("GROUP BY EXTRACT(EPOCH FROM d)", "EXTRACT takes YEAR, HOUR, ISODOW, not EPOCH"),
        ("WHERE HOUR(d) = 3", "is for GROUP BY; of the calendar WHERE takes EXTRACT(YEAR FROM column)"),
        ("WHERE YEAR(d) = 0", "a year is a whole number from 1 to 9998, not 0"),
    ],
)
def test_a_part_of_the_calendar_that_is_not_there_names_another(text: str, said: str) -> None:
    """A text that would be grouped otherwise than it says is refused."""
    with pytest.raises(SQLError, match=re.escape(said)):
        question_of(f"{COUNT} {text}")


def test_sqlglot_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the refusal says what to install, which an index has and this distribution's extra names."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (needed,) = project["optional-dependencies"]["sql"]
    monkeypatch.setitem(__import__("sys").modules, "sqlglot", None)
    with pytest.raises(ImportError, match=re.escape(f"pip install '{needed}'")):
        question_of(COUNT)


# A printer, and the law that reading what it prints gives the document

NAMES = st.sampled_from(["age", "town", "select", "Order", "people.age", 'a"b', "é"])
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False, width=32)
LITERALS = NUMBERS | st.booleans() | st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=5)
COLUMNS = NAMES.map(lambda name: {"col": name})
VALUES = st.recursive(
    COLUMNS,
    lambda inner: st.one_of(
        st.builds(lambda word, a, b: {word: [a, b]}, st.sampled_from(["add", "sub", "mul"]), inner, inner | NUMBERS),
        inner.map(lambda value: {"abs": value}),
        st.builds(lambda value, a, b: {"clip": [value, a, b]}, inner, NUMBERS, NUMBERS),
    ),
    max_leaves=3,
)
CONDITIONS = st.recursive(
    st.one_of(
        st.builds(
            lambda word, a, b: {word: [a, b]},
            st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]),
            VALUES,
            VALUES | LITERALS,
        ),
        st.builds(lambda value, listed: {"in": [value, listed]}, VALUES, st.lists(LITERALS, min_size=1, max_size=3)),
        st.builds(lambda value, a, b: {"between": [value, a, b]}, VALUES, LITERALS, LITERALS),
        VALUES.map(lambda value: {"is_null": value}),
    ),
    lambda inner: (
        inner.map(lambda part: {"not": part})
        | st.builds(
            lambda word, parts: {word: parts}, st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3)
        )
    ),
    max_leaves=3,
)
SIGNS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "add": "+", "sub": "-", "mul": "*"}


def printed(node: Any) -> str:
    """A value or condition as SQL, every part in parentheses."""
    if isinstance(node, dict):
        ((kind, body),) = node.items()
        return PRINTERS.get(kind, _junction)(kind, body)
    if isinstance(node, str):
        return "'" + node.replace("'", "''") + "'"
    return str(node).upper() if isinstance(node, bool) else repr(node)


def _named(_: str, name: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


def _called(kind: str, body: Any) -> str:
    return f"{kind}({', '.join(map(printed, body)) if isinstance(body, list) else printed(body)})"


def _junction(kind: str, parts: Any) -> str:
    return "(" + f" {SIGNS.get(kind, kind)} ".join(map(printed, parts)) + ")"


def _between(_: str, body: Any) -> str:
    return f"({printed(body[0])} BETWEEN {printed(body[1])} AND {printed(body[2])})"


PRINTERS: dict[str, Callable[[str, Any], str]] = {
    "col": _named,
    **dict.fromkeys(("abs", "not", "clip"), _called),
    "between": _between,
    "in": lambda _, body: f"({printed(body[0])} IN ({', '.join(map(printed, body[1]))}))",
    "is_null": lambda _, body: f"({printed(body)} IS NULL)",
}


def flat(node: Any) -> Any:
    """A condition with chains of one junction as one list."""
    if not isinstance(node, dict) or next(iter(node)) not in {"and", "or", "not"}:
        return node
    ((kind, body),) = node.items()
    if kind == "not":
        return {"not": flat(body)}
    return {kind: [flat(part) for part in body]}


@settings(max_examples=times(100, 300))
@given(condition=CONDITIONS)
def test_a_condition_reads_as_it_was_printed(condition: dict[str, Any]) -> None:
    """Every node with every literal, at its place; nothing is left out and nothing turned round."""
    _, question = question_of(f"{COUNT} WHERE {printed(condition)}")
    found = question["where"]
    assert found is not None
    assert flat(found.json) == flat(condition)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM p WHERE a NOT IN (1, , 3)",
        "SELECT COUNT(*) FROM p WHERE a IN (,1)",
        "SELECT COUNT(*) FROM p WHERE a IN (1,)",
        "SELECT COUNT(*), FROM p",
        "SELECT a, COUNT(*) FROM p GROUP BY , a",
        "SELECT a, COUNT(*) FROM p GROUP BY a,",
    ],
)
def test_a_comma_beside_nothing_is_refused(text: str) -> None:
    """The parser would read a query that the text does not state."""
    with pytest.raises(SQLError, match="a comma has nothing before or after it"):
        question_of(text)
