"""Pages that name tests: sections of a page, and whether a test that it names is there."""

import ast
from functools import cache

from tests.architecture.source import ROOT, module


def section_of(page: str, title: str) -> str:
    """The text below a title of the second level."""
    _, begins, rest = page.partition(f"\n## {title}\n")
    assert begins, f"there is no section {title}"
    return rest.partition("\n## ")[0]


def exists(test: str) -> bool:
    """Tell whether a test, named as pytest names it, is a function of that file, or of that class in it."""
    path, *names = test.split("::")
    return bool(names) and path.endswith(".py") and tuple(names) in _tests_of(path)


@cache
def _tests_of(path: str) -> frozenset[tuple[str, ...]]:
    if not (ROOT / path).is_file():
        return frozenset()
    tree = module(path, (ROOT / path).read_text(encoding="utf-8")).tree
    classes = [each for each in tree.body if isinstance(each, ast.ClassDef) and each.name.startswith("Test")]
    within = {(each.name, name) for each in classes for name in _functions(each.body)}
    return frozenset({(name,) for name in _functions(tree.body)} | within)


def _functions(body: list[ast.stmt]) -> list[str]:
    functions = [each.name for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [name for name in functions if name.startswith("test_")]
