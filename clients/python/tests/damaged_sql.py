"""Texts of the dialect of SQL, and every kind of damage to their words and characters."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from hypothesis import strategies as st

from clients.python.tests.sql_readings import TOKEN

Words = list[str]
Damage = Callable[[Words, int, int, Words], Words]

PAGE: Final = (Path(__file__).parents[3] / "docs" / "sql.md").read_text(encoding="utf-8")
# A year in WHERE becomes other words and literals: `test_sql.py` compares it with SQLite.
TEXTS: Final = [
    *(text for text in re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL) if "YEAR" not in text),
    "SELECT town, COUNT(*) FROM people WHERE age >= 40 GROUP BY town",
    "SELECT SUM(price) FROM buys WHERE NOT (price BETWEEN -1 AND 2.5 OR NOT paid IS NULL) AND paid <> 10",
    "SELECT BINS(a, 1), COUNT(*) FROM p WHERE a NOT IN (1, -2, 3) GROUP BY BINS(a, 1), DATE_TRUNC('week', d)",
    "SELECT HISTOGRAM(h) FROM p WHERE p.a = b * (c - 2) OR people.a < 0",
    "SELECT MEDIAN(a), APPROX_QUANTILE(people.b, 0.9) FROM p WHERE a > 1",
    "SELECT AVG(a - b * 2), VARIANCE(a), STDDEV(ABS(b)), SUM(a) FROM p WHERE a IN (1, 3)",
    "SELECT SUM(CLIP(a + b, 0, 10)) FROM p WHERE a + b * 2 < 5 AND a = TRUE OR NOT b <= c - 1 - 2",
    "SELECT COUNT(*) FROM p WHERE 5 > ABS(a) AND -a <> 2 AND (a = 1 OR b = 1) -- a comment",
    "SELECT COUNT(*) FROM p WHERE \"a\"\"b\" = 'it''s' OR x IN ('u', 'v') AND NOT NOT y = 1",
    "SELECT COUNT(*) FROM p WHERE t >= TIMESTAMP '2026-01-01' OR d BETWEEN DATE '2026-01-01' AND '2026-02-01'::date",
]
ODD: Final = [
    *"DISTINCT ALL AS LIMIT OFFSET HAVING ORDER JOIN UNION OVER FILTER LIKE ILIKE ESCAPE ANY SOME EXISTS CASE".split(),
    *"WHEN THEN ELSE END INTERVAL NULLS FIRST DESC FOR UPDATE ONLY LATERAL WITH SYMMETRIC COLLATE CAST DIV MOD".split(),
    *"IS NULL TRUE FALSE NOT AND OR IN BETWEEN TIMESTAMP COUNT SUM ABS CLIP BINS HISTOGRAM AVG".split(),
    *"COUNT_INDIVIDUALS DATE_TRUNC EXTRACT CURRENT_DATE COALESCE SELECT FROM WHERE GROUP BY DATE HOUR".split(),
    *"ISODOW q n 0 1 -1 1.5 .5 5. 1e3 1e-3 00 0x1F '' 'x' E'x' N'x' B'1' U&'x' $$x$$ 'month' 'hour' é".split(),
    *"( ) , . ; * + - / % ^ | || & ~ @ # $1 ? [ ] { } : :: ::int ::date = == <> != < > <= >= => :=".split(),
    *('"q"', "/*", "*/", "--", "/**/", "\\", "- -", ", ,"),
]


# Damage of the words `at` to `until`, with another text at hand


def deleted(words: Words, at: int, until: int, _: Words) -> Words:
    """Without them."""
    return words[:at] + words[until:]


def doubled(words: Words, at: int, until: int, _: Words) -> Words:
    """With them twice."""
    return words[:until] + words[at:]


def swapped(words: Words, at: int, until: int, _: Words) -> Words:
    """Two words in each other's place."""
    found = list(words)
    found[at], found[until - 1] = found[until - 1], found[at]
    return found


def spliced(words: Words, at: int, until: int, other: Words) -> Words:
    """Some words of the other text instead."""
    return words[:at] + other[at:until] + words[until:]


def replaced(words: Words, at: int, until: int, _: Words) -> Words:
    """An odd word instead of one."""
    return [*words[:at], ODD[(at * 13 + until * 29) % len(ODD)], *words[at + 1 :]]


def inserted(words: Words, at: int, until: int, _: Words) -> Words:
    """An odd word before one."""
    return [*words[:at], ODD[(at * 17 + until * 31) % len(ODD)], *words[at:]]


def retyped(words: Words, at: int, until: int, other: Words) -> Words:
    """A letter of a word left out, or one of the other text's put in; numbers stay numbers."""
    word, letters = words[at], "".join(filter(str.isalpha, other))
    if word[0].isdigit():
        return [*words[:at], f"{until}{word}", *words[at + 1 :]]
    place = until % (len(word) + 1)
    put = letters[at % len(letters)] if until % 2 and letters else ""
    return [*words[:at], word[:place] + put + word[place + 1 :], *words[at + 1 :]]


DAMAGES: Final[list[Damage]] = [deleted, doubled, swapped, spliced, replaced, inserted, retyped]


def words_of(text: str) -> Words:
    """The tokens of a text."""
    return [each[0] for each in TOKEN.finditer(text) if each.lastgroup != "space"]


@st.composite
def damaged(draw: st.DrawFn, kinds: tuple[Damage, ...]) -> str:
    """A supported text after one damage or two."""
    words, other = (words_of(draw(st.sampled_from(TEXTS))) for _ in range(2))
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=2)):
        at = draw(st.sampled_from(range(len(words))))
        until = min(at + draw(st.sampled_from(range(1, 9))), len(words))
        words = [word for word in kind(words, at, until, other) if word] or ["SELECT"]
    return " ".join(words)
