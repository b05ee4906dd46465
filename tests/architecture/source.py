"""The files that the checks read: the repository's own, without asking git.

Git refuses to look into a clone of another account, and the suite must pass under every account.
So the tree is walked, and what tools leave behind is left out by name.
"""

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEFT_BY_TOOLS = {"__pycache__", "build", "dist", "htmlcov", "node_modules"}
HIDDEN_BUT_OURS = {".ci", ".github"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Module:
    """One Python file: its path from the root with forward slashes, its text, its syntax tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """The room of a file under service/: the folder's name, or the file's own for those at the top."""
        return self.path.split("/")[1].removesuffix(".py")


@cache
def module(path: str, text: str) -> Module:
    """Parse `text` as if it lay at `path`; a SyntaxError says that it is no Python."""
    return Module(path=path, text=text, tree=ast.parse(text))


@cache
def nodes(found: Module) -> tuple[ast.AST, ...]:
    """All nodes of a module, which are looked for once."""
    return tuple(ast.walk(found.tree))


@cache
def calls(found: Module) -> tuple[tuple[ast.Call, str], ...]:
    """Every call of a module, with the text of what is called."""
    return tuple((node, text_of(node.func)) for node in nodes(found) if isinstance(node, ast.Call))


def text_of(node: ast.AST) -> str:
    """The text of an expression; that of a dotted name is known without a parser."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name() | ast.Attribute() as value, attr=name):
            return f"{text_of(value)}.{name}"
    return ast.unparse(node)


@cache
def files() -> tuple[str, ...]:
    """Every file that is the repository's, as sorted paths from the root."""
    found: list[str] = []
    for folder, names, leaves in os.walk(ROOT):
        names[:] = [name for name in names if _is_ours(name)]
        ours = [leaf for leaf in leaves if not leaf.startswith(".coverage") and leaf != ".git"]  # a work tree's pointer
        found += [(Path(folder) / leaf).relative_to(ROOT).as_posix() for leaf in ours]
    return tuple(sorted(found))


def _is_ours(folder: str) -> bool:
    if folder.startswith("."):
        return folder in HIDDEN_BUT_OURS
    return folder not in LEFT_BY_TOOLS and not folder.endswith(".egg-info")


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """Path and text of every file that is text; pictures and data in binary are passed over."""
    return tuple(_texts())


def _texts() -> Iterator[tuple[str, str]]:
    for path in files():
        try:
            yield path, (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


@cache
def modules(*roots: str) -> tuple[Module, ...]:
    """The Python files under the given folders of the root, such as "service"."""
    wanted = tuple(f"{root}/" for root in roots)
    return tuple(module(path, text) for path, text in texts() if path.endswith(".py") and path.startswith(wanted))
