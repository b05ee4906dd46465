"""Places in a Python module that survive moves and formatting: a definition by its name, a statement by its tokens."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from typing import NamedTuple

LAYOUT = {tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT}
END_OF_STATEMENT = {"", "\n", "\r\n", ":"}
OPENING, CLOSING = {"(", "[", "{"}, {")", "]", "}"}
BEFORE_A_WHOLE_EXPRESSION = {"=", "+=", "-=", "*=", "&=", "|=", "return", "in", "if", "elif", "while", "with", "assert"}


class Span(NamedTuple):
    """The characters from `start` up to `end`."""

    start: int
    end: int


class Token(NamedTuple):
    """A token and its characters; `is_optional` is a comma or a parenthesis that a formatter adds and takes away."""

    text: str
    span: Span
    is_optional: bool


class NotPython(Exception):
    """The text has no Python tokens; it is from the middle of a string literal."""


@cache
def definitions(text: str) -> dict[str, tuple[Span, ...]]:
    """The places of each function, class and module-level name, by qualified name; a property has several."""
    lines = _line_starts(text)
    found: dict[str, tuple[Span, ...]] = {}
    for name, node in _named(ast.parse(text), ""):
        first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
        found[name] = (*found.get(name, ()), Span(lines[first - 1], lines[node.end_lineno or first]))
    return found


def statements(text: str, within: Span, find: str) -> list[Span]:
    """The places of these tokens within a definition, however they are wrapped; none if they are no Python."""
    try:
        known, wanted = tokens(text), tokens(find)
    except NotPython:
        return []
    return [
        Span(token.span.start, end)
        for at, token in enumerate(known)
        if within.start <= token.span.start < within.end and (end := _end(known, at, wanted)) is not None
    ]


def occurrences(text: str, within: Span, find: str) -> list[Span]:
    """The places of this text within a definition, in a string literal for example."""
    found = (match.span() for match in re.finditer(re.escape(find), text[within.start : within.end]))
    return [Span(within.start + start, within.start + end) for start, end in found]


@cache
def tokens(text: str) -> tuple[Token, ...]:
    """The tokens of a module or of a piece of it, without comments, newlines and indentation. Raises NotPython."""
    try:  # a piece may begin anywhere and leave brackets open: its indentation says nothing
        ast.parse(text)
    except SyntaxError:
        text = "\n".join(line.strip() for line in text.splitlines())
    starts = _line_starts(text)
    found: list[tuple[str, Span]] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.ERRORTOKEN:
                raise NotPython(text)
            if token.type not in LAYOUT:
                (first, begin), (last, end) = token.start, token.end
                found.append((token.string, Span(starts[first - 1] + begin, starts[last - 1] + end)))
    except tokenize.TokenError as error:
        if "multi-line statement" not in str(error):  # an open bracket is all right, an open string is not
            raise NotPython(text) from error
    optional = set(_optional([text for text, _ in found]))
    return tuple(Token(text, span, at in optional) for at, (text, span) in enumerate(found) if text.strip())


def indentation(text: str, at: int) -> str:
    """The white space before the line of this character."""
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" "))]


def _end(known: tuple[Token, ...], begin: int, wanted: tuple[Token, ...]) -> int | None:
    """The end of these tokens if they begin here, else None; they leave as many brackets open as the wanted ones."""
    if not wanted or known[begin].text != wanted[0].text:
        return None
    reached = {begin + 1}
    for token in wanted[1:]:
        before = _with_optional(known, reached)
        here = {at for at in before if at < len(known) and known[at].text == token.text}
        reached = {at + 1 for at in here} | (before if token.is_optional else set())
    ends = (at for at in sorted(_with_optional(known, reached)) if _depth(known[begin:at]) == _depth(wanted))
    return next((known[at - 1].span.end for at in ends), None)


def _with_optional(known: tuple[Token, ...], reached: set[int]) -> set[int]:
    """These positions, and those behind the optional tokens that follow them."""
    found = set(reached)
    for at in reached:
        for after in range(at, len(known)):
            if not known[after].is_optional:
                break
            found.add(after + 1)
    return found


def _depth(piece: tuple[Token, ...]) -> int:
    return sum((token.text in OPENING) - (token.text in CLOSING) for token in piece)


def _optional(texts: list[str]) -> Iterator[int]:
    """The commas before closing brackets, and the parentheses around the whole of an expression."""
    opened: list[int] = []
    for at, text in enumerate(texts):
        if text in OPENING:
            opened.append(at)
        elif text in CLOSING:
            if texts[at - 1] == ",":
                yield at - 1
            begin = opened.pop() if opened else 0
            after = texts[at + 1] if at + 1 < len(texts) else ""
            is_empty = at == begin + 1
            if begin and not is_empty and texts[begin - 1] in BEFORE_A_WHOLE_EXPRESSION and after in END_OF_STATEMENT:
                yield from (begin, at)


def _named(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.stmt]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield prefix + child.name, child
            yield from _named(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.Assign | ast.AnnAssign) and not prefix:
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            yield from ((target.id, child) for target in targets if isinstance(target, ast.Name))
        elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _named(child, prefix)


def _line_starts(text: str) -> list[int]:
    return list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
