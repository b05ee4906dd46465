"""Every node of the query language means what docs/query-language.md says, from the Python client to the integers.

A query is written in steps of the client's builder, sent as JSON, read, brought to its canonical form and evaluated by
the engine over a small crowd. Its JSON alone is evaluated in fractions, row by row. Both agree for every query, and
they disagree as soon as a mistake is planted in either, within the examples that are drawn here.
"""

import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, assume, given, settings

from service.engine.sparse_vectors import BrokenInvariant
from service.query.composite_item import CompositeItem
from service.query.expressions_ast import (
    NumberFeature,
    OneHotFeature,
    Own,
    OwnEvents,
    Predict,
    Prediction,
    Unit,
    VectorFeature,
)
from service.query.items.difference import OfGroups
from service.query.items.gradient import Gradient, GradientItem
from service.query.items.mean import CentredItem
from service.query.items.moments import Moments, MomentsItem
from service.query.items.quantile import OfRank
from service.query.items.ratio import OfTwo
from service.query.literals_ast import Closed
from service.query.parameters_ast import HashedParameters
from tests.engine.worlds import PRODUCTS
from tests.laws.every_node import COMPARISONS, COUNTABLE, LEAVES, documents
from tests.laws.fraction_evaluator import FractionEvaluator
from tests.laws.fraction_values import Unsure
from tests.laws.node_examples import fixed, is_wrong, outcomes
from tests.laws.node_law import answered, check_canonical, differences, sent
from tests.laws.node_world import COLUMNS
from tests.laws.planted_mistakes import IN_THE_BUILDER, IN_THE_ENGINE, IN_THE_REFERENCE

Json = dict[str, Any]


def ordered(document: Json) -> str:
    """A document as text, in which 1 and true differ."""
    return json.dumps(document, sort_keys=True)


def written(document: Json) -> str:
    """The document that the builder writes, as text in which 1 and true differ."""
    return ordered(json.loads(sent(document)))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(document=documents())
def test_a_query_of_any_nodes_is_what_the_page_says(document: Json) -> None:
    """The builder's document, its canonical form, each individual's integers and their sum."""
    assert written(document) == ordered(document)
    outcome = answered(document)
    assume(outcome is not None)
    assert outcome is not None
    check_canonical(outcome)
    try:
        assert list(differences(outcome)) == []
    except Unsure:
        assume(condition=False)


@pytest.mark.parametrize("item", PRODUCTS, ids=str)
def test_the_builder_writes_moments_and_gradients(item: Json) -> None:
    """Every kind of feature, target and loss; the numbers have a reference of their own."""
    document: Json = {"version": 1, "select": [item], "noise": {"sigma": 30.0}, "rule": "clip"}
    assert written(document) == ordered(document)


# The examples hold every node


ELSEWHERE = {Moments, MomentsItem, Gradient, GradientItem, HashedParameters, Predict, Prediction}
ELSEWHERE |= {CompositeItem, CentredItem, OfGroups, OfRank, OfTwo}
ELSEWHERE |= {NumberFeature, OneHotFeature, VectorFeature, Own, OwnEvents}


def language() -> set[str]:
    """Every name that the models of the language declare, but for models, their features, own events and composites.

    These have references of their own (tests/engine/test_products.py, test_predictions.py and test_own_events.py), and
    a composite item is a query of linear ones (tests/query/test_linear_query.py).
    """
    waiting, found = [Closed], set[str]()
    while waiting:
        model = waiting.pop()
        waiting += set(model.__subclasses__()) - ELSEWHERE
        found.update(field.alias or name for name, field in model.model_fields.items())
    return found


NO_HOURS = ("date", "hour")
WANTED = {
    *(f"{kind} of {of} beside {beside}" for kind, of, beside in LEAVES),
    *(f"{kind} of {of}" for kind in ("histogram", "linear") for of in COUNTABLE),
    "histogram of parts",
    *(f"bin of {of}" for of in ("integer", "real", "date", "datetime")),
    *(f"bucket of {of} by {unit}" for of in ("date", "datetime") for unit in get_args(Unit) if (of, unit) != NO_HOURS),
    *(f"people. in {part}" for part in ("select", "where", "group_by")),
    *(f"{count} items" for count in (1, 2, 3)),
}


def told(document: Json) -> Iterator[str]:
    """The nodes of a document, and the types of the values that they are about."""
    yield f"{len(document['select'])} items"
    yield from (f"people. in {part}" for part in document if "people." in json.dumps(document[part]))
    yield from _told(document, COLUMNS[document.get("from", "people")])


def _told(node: Any, columns: Json) -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from _told(each, columns)
    for kind, body in node.items() if isinstance(node, dict) else ():
        yield kind
        if kind in COMPARISONS:
            right = "a value" if isinstance(body[1], dict) else "a literal"
            yield f"{kind} of {_type(body[0], columns)} beside {right}"
        elif kind in {"between", "in", "is_null"}:
            yield f"{kind} of {_type(body if kind == 'is_null' else body[0], columns)} beside literals"
        elif kind in {"histogram", "linear", "bin", "bucket"}:
            part = f" by {body['by']}" if kind == "bucket" else ""
            yield f"{kind} of {columns[body['column']]['type']}{part}" if "column" in body else f"{kind} of parts"
        yield from _told(body, columns)


def _type(value: Json, columns: Json) -> str:
    return str(columns[value["col"]]["type"]) if "col" in value else "calculated"


def test_the_examples_hold_every_node() -> None:
    """Every name of the language, beside every type of column that it goes with.

    But for `rule`, which has one value, `fold` (tests/engine/test_folds.py), ticks, which read accounts
    (tests/engine/test_ticks.py), and what changes no vector, as Laplace noise and `reduce`.
    """
    found = {name for document in fixed() for name in told(document)}

    elsewhere = {"rule", "fold", "seed", "mechanism", "scale", "reduce", "exhausted", "prepaid"}
    assert (language() - elsewhere) - found == set()
    assert WANTED - found == set()
    assert {outcome.plan.scale.clip_binds for outcome in outcomes()} == {False, True}
    assert len(outcomes()) > len(fixed()) * 9 // 10


# Mistakes are found within the examples


def test_nothing_is_found_where_nothing_is_planted() -> None:
    """The fixed examples keep the law, so that whatever is found below is the mistake."""
    assert [outcome.document for outcome in outcomes() if is_wrong(outcome, FractionEvaluator)] == []


@pytest.mark.parametrize("mistake", IN_THE_REFERENCE)
def test_a_mistake_in_the_reference_is_found(mistake: str) -> None:
    """An example tells the two apart; it would tell an engine with the same mistake from the right reference."""
    mistaken = type("Mistaken", (FractionEvaluator,), IN_THE_REFERENCE[mistake])

    assert any(is_wrong(outcome, mistaken) for outcome in outcomes())


def is_answered_wrongly(document: Json) -> bool:
    """Tell whether the engine, with a mistake in it, differs from the reference or refuses itself."""
    try:
        outcome = answered(document)
    except (BrokenInvariant, ValueError):
        return True
    return outcome is not None and is_wrong(outcome, FractionEvaluator)


@pytest.mark.parametrize("mistake", IN_THE_ENGINE)
def test_a_mistake_in_the_engine_is_found(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the law, or by the engine's own checks."""
    monkeypatch.setattr(*IN_THE_ENGINE[mistake])

    assert any(is_answered_wrongly(document) for document in fixed())


@pytest.mark.parametrize("mistake", IN_THE_BUILDER)
def test_a_mistake_in_the_builder_is_found(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps write another document."""
    monkeypatch.setattr(*IN_THE_BUILDER[mistake])

    assert any(written(document) != ordered(document) for document in fixed())
