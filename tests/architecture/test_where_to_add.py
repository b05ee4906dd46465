"""The rows of docs/architecture.md that say what a new kind changes name every module that names a kind of today."""

import ast
import re
from collections.abc import Collection

import pytest

from service.accounting.accountings import PureAccounting
from service.core.laws import Laplace
from service.query.items import ITEMS
from service.query.noise_ast import LaplaceScale
from service.query.reduction import REDUCTIONS
from tests.architecture.source import ROOT, modules

MAP = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def row_of(kind: str) -> set[str]:
    """The paths that the row of a kind says a new one changes."""
    (changes,) = re.findall(rf"^\| {kind} \| ([^|]+) \|", MAP, re.MULTILINE)
    return set(re.findall(r"`(service/[\w/.]+)`", changes))


def naming(names: Collection[str] = (), texts: Collection[str] = ()) -> set[str]:
    """The modules of the service that use one of the names, or have one of the texts."""
    return {
        module.path
        for module in modules("service")
        if any(_is_one(node, names, texts) for node in ast.walk(module.tree))
    }


def _is_one(node: ast.AST, names: Collection[str], texts: Collection[str]) -> bool:
    match node:
        case ast.Name(id=name) | ast.alias(name=name) | ast.ClassDef(name=name) | ast.Attribute(attr=name):
            return name in names
        case ast.Constant(value=str(text)):
            return text in texts
    return False


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.KIND)
def test_an_item_is_named_where_its_row_says(item: type) -> None:
    """In its own module and the list of items, and by items that are made of it."""
    found = naming({item.__name__})
    assert all(path.startswith("service/query/items/") for path in found)
    assert "service/query/items/" in row_of("a select item")
    assert len(found) >= 2


def test_a_noise_is_named_where_its_row_says() -> None:
    """By its law, its mechanism, its form and its word; prices are those of an accounting."""
    mechanism = type(PureAccounting().mechanisms[Laplace.word])
    found = naming({Laplace.__name__, mechanism.__name__, LaplaceScale.__name__}, {Laplace.word})
    assert found == {path for path in row_of("a noise") if path.endswith(".py")}


def test_a_reduction_is_named_where_its_row_says() -> None:
    """By its word."""
    assert naming(texts=REDUCTIONS) == row_of("a number that a sum is reduced to")


def test_a_rule_of_a_dataset_is_decided_where_its_row_says() -> None:
    """By the counters that a round reads."""
    readers = naming({"have_been_left_out"})
    assert readers
    assert readers <= row_of("a rule")


def test_a_rule_of_a_query_is_named_where_its_row_says() -> None:
    """By its flag, apart from what states, prices and refuses a plan."""
    named = {path for path in row_of("a rule") if path.startswith("service/query/")}
    assert len(named) >= 2
    assert named <= naming({"shortens"}, {"clip"})
