"""The examples of the document: there is one everywhere, and each is what the service takes and gives."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from service.api.openapi import examples
from service.query.parse import parse_query
from service.query.plan import compile_query
from service.query.schema import Schema
from tests.api.described import Document, Operation, faults, operations, resolved, the_document
from tests.api.example_story import JSON, WITHOUT_EFFECT, Story, agree, body_of, empty_world, media_type_of

TEXTUAL = (JSON, "text/", "application/x-ndjson", "application/problem+json")


@pytest.fixture
def document() -> Document:
    """As it is made."""
    return the_document()


def contents(document: Document, operation: Operation) -> Iterator[tuple[str, str, Document]]:
    """(place, media type, content) of every body that an operation takes or gives."""
    for media_type, content in operation.body.get("requestBody", {}).get("content", {}).items():
        yield f"{operation.name} request", media_type, content
    for status, response in operation.body["responses"].items():
        for media_type, content in resolved(document, response).get("content", {}).items():
            yield f"{operation.name} {status}", media_type, content


def values(document: Document, content: Document) -> list[Any]:
    """Every example of a content."""
    several = [resolved(document, each)["value"] for each in content.get("examples", {}).values()]
    return [*several, *([content["example"]] if "example" in content else [])]


def test_there_is_an_example_everywhere(document: Document) -> None:
    """For every body that is text, and every refusal but those of no known kind; binary bodies have none."""
    missing = [
        (place, media_type)
        for operation in operations(document)
        for place, media_type, content in contents(document, operation)
        if media_type.startswith(TEXTUAL) and not place.endswith("default") and not values(document, content)
    ]
    assert missing == []
    assert examples().keys() == {each.name for each in operations(document)}


def test_every_required_parameter_has_an_example(document: Document) -> None:
    """With which the request of the example is sent."""
    missing = [
        (operation.name, parameter["name"])
        for operation in operations(document)
        for parameter in operation.body.get("parameters", ())
        if parameter["required"] and "example" not in parameter
    ]
    assert missing == []


def test_every_example_is_valid(document: Document) -> None:
    """Under the schema beside it."""
    found = [
        (place, media_type, fault)
        for operation in operations(document)
        for place, media_type, content in contents(document, operation)
        for value in values(document, content)
        for fault in faults(document, content["schema"], value)
    ]
    parameters = [
        (operation.name, parameter["name"], fault)
        for operation in operations(document)
        for parameter in operation.body.get("parameters", ())
        if "example" in parameter
        for fault in faults(document, parameter["schema"], parameter["example"])
    ]
    assert found + parameters == []


def test_every_query_compiles() -> None:
    """By the service's own reader, against the schema of the example's registration."""
    registration = examples()["register_dataset"]["request"][JSON]
    schema = Schema.model_validate(registration["tables"])
    asked = [body for name in ("ask", "preview") for body in examples()[name]["others"].values()]
    asked += [examples()[name]["request"][JSON] for name in ("ask", "preview", "make_forecast")]
    for body in asked:
        query = parse_query(json.dumps(body).encode())
        plan = compile_query(query, schema, capacity=registration["capacity"], budget_units=2**40)
        assert plan.dimension >= 1
    kinds = {key for body in asked for item in body["select"] for key in item}
    assert kinds == {"count", "count_individuals", "sum", "histogram", "linear"}
    assert {key for body in asked for key in body["noise"]} == {"sigma", "rho", "share", "half_width", "confidence"}


async def test_the_service_answers_as_the_examples_say() -> None:
    """Sent one after the other to an empty service, each gets the shown response but for ids, times and noise."""
    world = empty_world()
    differing, told = [], set()
    async for name, example, response in Story(world).told():
        told.add(name)
        if name in WITHOUT_EFFECT:
            assert response.status_code == WITHOUT_EFFECT[name]
            continue
        assert response.is_success, (name, response.text)
        shown = example.get("response", {}).get(media_type_of(response))
        if not agree(shown, body_of(response) if response.content else None):
            differing.append(name)
    await world.client.aclose()
    world.replica.close()
    assert told == examples().keys()
    assert differing == [], "python -m tests.api.record_examples writes them anew"


def test_the_examples_name_the_same_things() -> None:
    """The principal that is changed is the one that was made, the answer that is read the one that was asked for."""
    made = examples()["create_principal"]["response"][JSON]["id"]
    asked = examples()["ask"]["response"][JSON]["id"]
    for name in ("change_principal", "replace_key", "revoke_principal"):
        assert examples()[name]["parameters"]["principal"] == made
    assert examples()["read_release"]["parameters"]["query_id"] == asked
    assert examples()["read_release"]["response"] == examples()["ask"]["response"]


@pytest.mark.parametrize(
    ("shown", "true", "expected"),
    [
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1, 2], [1], False),
        ("2026-03-31T10:36:05Z", "2027-01-01T00:00:00Z", True),
        ("2026-03-31T10:36:05Z", "yesterday", False),
        ("ef9dd298-7f47-4ff9-93d3-a63035d8292c", "00000000-7f47-4ff9-93d3-a63035d8292c", True),
        (
            {"coverage_certified": True, "dimension": 1, "values": [1]},
            {"coverage_certified": True, "dimension": 1, "values": [2]},
            True,
        ),
        (
            {"coverage_certified": True, "dimension": 1, "values": [1]},
            {"coverage_certified": True, "dimension": 2, "values": [2, 3]},
            False,
        ),
        ({"values": [1]}, {"values": [2]}, False),
    ],
)
def test_responses_are_compared(shown: Any, true: Any, expected: bool) -> None:
    """A member that is missing, new, or of another value or type is seen."""
    assert agree(shown, true) is expected
