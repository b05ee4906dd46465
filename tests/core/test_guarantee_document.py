"""The page that states the guarantee names functions and tests that exist."""

import ast
import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantee.md").read_text(encoding="utf-8")
FUNCTIONS = sorted(set(re.findall(r"`(service\.[\w.]+)`", PAGE)))
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))


def test_the_page_names_some() -> None:
    """Otherwise the tests below would hold for want of anything to check."""
    assert len(FUNCTIONS) > 5
    assert len(TESTS) > 10


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_of_the_guarantee_exists(name: str) -> None:
    """By its full path, methods included."""
    assert callable(resolve_name(name))


@pytest.mark.parametrize(("path", "name"), TESTS)
def test_each_test_of_the_guarantee_exists(path: str, name: str) -> None:
    """Each is a function of the file named."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))

    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
