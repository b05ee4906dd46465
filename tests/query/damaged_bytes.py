"""Valid queries as bytes, and every kind of damage to them: of tokens, of whole values and of single bytes."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.query.samples import body, queries, query

Tokens = list[str]
Damage = Callable[[Tokens, int, int, Tokens], Tokens]

TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9][0-9.eE+-]*|true|false|null|[][{}:,]')
ODD: Final = [
    *("0", "-0", "-0.0", "1.0", "2e0", "1e-400", "1e400", "-1e400", "1e308", "5e-324", "0.1", "1e100", "1e-30", "01"),
    *("9007199254740991", "9007199254740993", "1e21", "100000000000000000000", "123456789012345678901234567890", "1."),
    *("NaN", "Infinity", "-Infinity", "null", "true", "false", "//", "\ufeff"),
    *("{", "}", "[", "]", ",", ":", "{}", "[]"),
    *(
        '""',
        r'"\ud800"',
        r'"\udc00\ud800"',
        r'"\ud83d\ude00"',
        r'"\u0000"',
        '"\x00"',
        '"\x7f"',
        '"é"',
        f'"{"x" * 1001}"',
    ),
    *('"version"', '"2020-01-02"', '"2020-02-30"', '"people.age"', '"limit_rho"', '{"col": "age"}', '{"count": {}}'),
]


# Damage of the tokens `at` to `until`, with another query at hand


def deleted(tokens: Tokens, at: int, until: int, _: Tokens) -> Tokens:
    """Without them."""
    return tokens[:at] + tokens[until:]


def dropped(tokens: Tokens, at: int, _until: int, _: Tokens) -> Tokens:
    """Without an entry of a list or a member of an object, and the comma before it."""
    comma = place_of(tokens, at, {","})
    return tokens[:comma] + tokens[end_of_entry(tokens, comma + 1) :]


def repeated(tokens: Tokens, at: int, _until: int, _: Tokens) -> Tokens:
    """With an entry of a list or a member of an object twice, or in its place the comma alone."""
    comma = place_of(tokens, at, {","})
    end = end_of_entry(tokens, comma + 1)
    return tokens[:end] + tokens[comma:]


def swapped(tokens: Tokens, at: int, until: int, _: Tokens) -> Tokens:
    """Two tokens in each other's place, alike if there is a later one that is."""
    later = [place for place in range(at + 1, len(tokens)) if alike(tokens[place]) == alike(tokens[at])]
    there = later[until % len(later)] if later else until - 1
    found = list(tokens)
    found[at], found[there] = found[there], found[at]
    return found


def spliced(tokens: Tokens, at: int, until: int, other: Tokens) -> Tokens:
    """The tokens with the same places of the other query instead."""
    return tokens[:at] + other[at:until] + tokens[until:]


def grafted(tokens: Tokens, at: int, until: int, other: Tokens) -> Tokens:
    """A value of the other query in place of one, under the same key if it has that."""
    key = place_of(tokens, at, {":"}) - 1
    there = next((place for place, token in enumerate(other) if token == tokens[key]), until % len(other))
    return tokens[: key + 2] + other[there + 2 : end_of(other, there + 2)] + tokens[end_of(tokens, key + 2) :]


def made_odd(tokens: Tokens, at: int, until: int, _: Tokens) -> Tokens:
    """A token that one would not expect in place of a literal, alike or not."""
    place = next((place for place in range(at, len(tokens)) if alike(tokens[place]) != "mark"), at)
    odd = [each for each in ODD if alike(each) == alike(tokens[place])] if until % 2 else ODD
    return [*tokens[:place], odd[(at * 7 + until) % len(odd)], *tokens[place + 1 :]]


def nested(tokens: Tokens, at: int, until: int, _: Tokens) -> Tokens:
    """A value inside lists or negations, a few or up to twenty deep."""
    start = place_of(tokens, at, {"{"})
    times = (1, 2, 3, 11, 12, 13, 20)[until % 7]
    opened, closed = (["{", '"not"', ":"], ["}"]) if at % 4 else (["["], ["]"])
    end = end_of(tokens, start)
    return [*tokens[:start], *opened * times, *tokens[start:end], *closed * times, *tokens[end:]]


def given_twice(tokens: Tokens, at: int, until: int, _: Tokens) -> Tokens:
    """The first member of an object once more, with its own value or another."""
    start = place_of(tokens, at, {"{"})
    value = tokens[start + 3 : end_of(tokens, start + 3)] if until % 2 else ["0"]
    return [*tokens[: start + 1], *tokens[start + 1 : start + 3], *value, ",", *tokens[start + 1 :]]


def alike(token: str) -> str:
    """The kind of a token."""
    return "mark" if token in "{}[]:,/" else "text" if token[0] == '"' else "word" if token[0].isalpha() else "number"


def place_of(tokens: Tokens, at: int, wanted: set[str]) -> int:
    """The place of one of these tokens: at a place, after it, or before."""
    order = (*range(at, len(tokens)), *range(at))
    return next((place for place in order if tokens[place] in wanted), 0)


def end_of(tokens: Tokens, at: int) -> int:
    """The place after the value that begins at a place."""
    level = 0
    for place in range(at, len(tokens)):
        level += (tokens[place] in "[{") - (tokens[place] in "]}")
        if level <= 0:
            return place + 1
    return len(tokens)


def end_of_entry(tokens: Tokens, at: int) -> int:
    """The place after a member or an entry."""
    end = end_of(tokens, at)
    return end_of(tokens, end + 1) if tokens[end : end + 1] == [":"] else end


DAMAGES: Final[list[Damage]] = [*(deleted, dropped, repeated, swapped, spliced, grafted, made_odd, nested, given_twice)]


FIXED: Final = settings(database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))


def drawn(strategy: st.SearchStrategy[Any], number: int, count: int = 60) -> list[Any]:
    """`count` examples of a strategy, always the same for a number."""
    found: list[Any] = []

    @seed(number)
    @settings(FIXED, max_examples=count)
    @given(strategy)
    def collect(example: Any) -> None:
        found.append(example)

    collect()
    return found


def _examples() -> Iterator[bytes]:
    """The queries of docs/query-language.md, and its conditions as queries."""
    page = (Path(__file__).parents[2] / "docs" / "query-language.md").read_text(encoding="utf-8")
    for kind, text in re.findall(r"^```json (query|selection)\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL):
        document = json.loads(text)
        yield body(document if kind == "query" else query(where=document["where"], group_by=["country"]))


VALID: Final[list[Tokens]] = [
    TOKEN.findall(each.decode()) for each in (*_examples(), *map(body, drawn(queries(), 3, 20)))
]
"""Queries of the page, and some that are drawn for the schema of the samples."""


@st.composite
def damaged(draw: st.DrawFn, kinds: tuple[Damage, ...], valid: Sequence[Tokens] = VALID) -> bytes:
    """One of some valid queries after one damage or two, and now and then a few bytes that are any."""
    tokens, other = draw(st.sampled_from(valid)), draw(st.sampled_from(VALID))
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=2)):
        tokens = tokens or ["{", "}"]
        at = draw(st.sampled_from(range(len(tokens))))
        tokens = kind(tokens, at, min(at + draw(st.sampled_from(range(1, 8))), len(tokens)), other)
    raw = bytearray("".join(tokens).encode())
    is_any = draw(st.sampled_from([False] * 9 + [True]))
    for place in draw(st.lists(st.sampled_from(range(400)), max_size=2)) if is_any else ():
        raw[place % len(raw) : place % len(raw) + 1] = draw(st.binary(max_size=2))
        raw = raw or bytearray(b" ")
    return bytes(raw)
