"""The document that is the reference of the interface: whole, valid, true of what is sent, and full of examples."""

import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
import schemathesis

from service.api.openapi import examples
from service.api.openapi_schemas import nested
from service.api.responses import ENCODERS, JSON
from service.ledger.model.analyst_views import HALF_WIDTH
from tests.api.described import (
    Document,
    Operation,
    faults,
    operations,
    reached,
    references,
    resolved,
    the_document,
    undescribed,
)
from tests.api.route_table import COUNT_ITEM, CURATOR, INDIVIDUAL, PUBLIC, QUESTIONS, ROUTES
from tests.api.world import ROLES, TABLES, World, build_world

COUNTERS = ("queries_charged", "queries_left_out")
VERBS = """
append archive ask change check correct create delete end erase export extend list lower make open preview read register
replace revoke set sign verify watch cancel
""".split()


@pytest.fixture
def document() -> Document:
    """The document as it is made."""
    return the_document()


class TestWhole:
    """Everything is in it, and everything that has a name is described."""

    def test_every_route_is_in_it(self, document: Document) -> None:
        """With its method, and with a key or a cookie wherever one is needed."""
        told = {(each.method, each.path): each.body for each in operations(document)}
        assert told.keys() == {(each.method, each.template) for each in ROUTES} | {
            pair for pair in PUBLIC if pair[1] != "/openapi.json"
        }
        for each in ROUTES:
            assert told[each.method, each.template]["security"] == [{"api_key": []}, {"sign_in": []}]
        assert document["components"]["securitySchemes"].keys() == {"api_key", "sign_in"}

    def test_nothing_is_undescribed(self, document: Document) -> None:
        """No schema, property, operation, parameter, response, header or role."""
        assert list(undescribed(document)) == []

    @pytest.mark.parametrize(
        "place",
        [
            ("components", "schemas", "Query", "properties", "noise", "description"),
            ("components", "schemas", "BudgetRow", "description"),
            ("components", "headers", "Retry-After", "description"),
            ("paths", "/v1/datasets", "get", "summary"),
            ("paths", "/v1/datasets/{dataset}", "get", "parameters", 0, "description"),
            ("paths", "/v1/datasets/{dataset}", "get", "responses", "200", "description"),
            ("tags", 0, "description"),
        ],
    )
    def test_a_missing_description_is_found(self, document: Document, place: tuple[str | int, ...]) -> None:
        """One at each kind of place, which the walk must reach."""
        part: Any = document
        for step in place[:-1]:
            part = part[step]
        del part[place[-1]]
        assert len(list(undescribed(document))) == 1

    def test_a_role_is_a_tag(self, document: Document) -> None:
        """Each operation has the tags of the roles that it is for, and no other."""
        assert {each["name"] for each in document["tags"]} == {*ROLES, "ops"}
        told = {(each.method, each.path): set(each.body["tags"]) for each in operations(document)}
        assert all(told[each.method, each.template] == each.roles for each in ROUTES)

    def test_every_operation_has_the_name_of_a_method(self, document: Document) -> None:
        """Each name is unique and begins with a verb: it becomes a method in generated clients."""
        names = [each.name for each in operations(document)]
        assert len(set(names)) == len(names)
        assert [name for name in names if name.split("_")[0] not in VERBS or not re.fullmatch("[a-z_]+", name)] == []
        assert {"ask", "preview", "register_dataset", "list_my_budgets"} <= set(names)


class TestValid:
    """Tools that read such documents can read this one."""

    def test_it_is_valid(self, document: Document) -> None:
        """The document is valid OpenAPI 3.1."""
        assert document["openapi"].startswith("3.1")
        schemathesis.openapi.from_dict(document).validate()

    def test_the_validator_bites(self, document: Document) -> None:
        """A response without its description is not valid."""
        del document["paths"]["/livez"]["get"]["responses"]["200"]["description"]
        with pytest.raises(jsonschema_rs.ValidationError):
            schemathesis.openapi.from_dict(document).validate()

    def test_every_schema_is_a_json_schema(self, document: Document) -> None:
        """And a default is valid under its own schema."""
        for name, schema in document["components"]["schemas"].items():
            assert jsonschema_rs.meta.is_valid(schema), name
        for schema in nested([document["components"]["schemas"], document["paths"]]):
            if "default" in schema and "properties" not in schema and "type" in schema:
                assert faults(document, schema, schema["default"]) == [], schema

    def test_every_reference_leads_somewhere(self, document: Document) -> None:
        """And every component is referred to."""
        parts = {
            f"#/components/{kind}/{name}"
            for kind, found in document["components"].items()
            if kind != "securitySchemes"
            for name in found
        }
        assert references(document) == parts

    async def test_it_is_sent_as_it_is_made(self, world: World, document: Document) -> None:
        """Reading it twice gives the same bytes."""
        first, second = [await world.client.get("/openapi.json") for _ in range(2)]
        assert first.content == second.content
        assert first.json() == document


class TestAnswers:
    """Answers are as the document describes them."""

    def test_the_answer_describes_what_is_sent(self, document: Document) -> None:
        """Labels and axes are typed, down to the last member."""
        schemas = document["components"]["schemas"]
        wanted = {"CoordinateLabel", "GroupAxis", "SelectAxis", "SelectedItem", "EstimateRow", "EstimateItem"}
        assert wanted <= reached(document, schemas["Answer"])
        assert all(schemas[name]["additionalProperties"] is False for name in ("GroupAxis", "SelectAxis"))

    @pytest.mark.parametrize("name", ["Answer", "Preview"])
    def test_an_answer_is_valid(self, document: Document, name: str) -> None:
        """Answers and previews have exactly the members that the document promises, for all groups and items."""
        schema = document["components"]["schemas"][name]
        optional = {"estimates", "mechanism", "scale", "tick"}
        recorded = examples()[f"POST /v1/datasets/{{dataset}}/queries{'/preview' if name == 'Preview' else ''}"]
        assert len(recorded) > len(QUESTIONS)
        for each in recorded:
            assert faults(document, schema, each["body"]) == []
            if name == "Answer":
                required = {*schema["required"]}
                assert {*schema["properties"]} - optional == required == {*each["body"]} - {"estimates"}

    async def test_axes_of_dates_are_valid(self, world: World, document: Document) -> None:
        """Their bounds are texts; a bucket has its unit, and categories without names only their number."""
        columns = {
            "day": {"type": "date", "lower": "2026-01-01", "upper": "2026-02-28"},
            "at": {"type": "datetime", "lower": "2026-01-01T00:00:00Z", "upper": "2026-01-01T00:00:09Z"},
            "area": {"type": "category", "size": 3},
            "member": {"type": "boolean"},
        }
        tables = {"people": {**TABLES["people"], "columns": columns}}
        registration = {"name": "dates", "guarantee": {"rho": "9"}, "tables": tables}
        assert (await world.call("curator", "POST", "/v1/datasets", json=registration)).status_code == 201
        groups = ["at", "area", "member", {"bucket": {"column": "day", "by": "month"}}]
        query = {"version": 1, "select": [COUNT_ITEM], "group_by": groups, "noise": {"sigma": 20}}
        response = await world.call(
            "analyst", "POST", "/v1/datasets/dates/queries", json=query, headers={"Idempotency-Key": "d"}
        )
        assert [axis.get("column") for axis in response.json()["axes"]] == ["at", "area", "member", "day", None]
        assert faults(document, document["components"]["schemas"]["Answer"], response.json()) == []

    def test_an_axis_of_another_shape_is_not_valid(self, document: Document) -> None:
        """The check would see an axis that the document does not know."""
        axis = {"column": "age", "size": 2, "lower": 0, "upper": 1}
        schema = {"$ref": "#/components/schemas/GroupAxis"}
        assert faults(document, schema, axis) == []
        assert faults(document, schema, {**axis, "middle": 0}) != []
        assert faults(document, schema, {**axis, "lower": None}) != []

    @pytest.mark.parametrize("name", ["ask", "read_release"])
    def test_every_binary_form_is_listed(self, document: Document, name: str) -> None:
        """JSON first, then each media type in which an answer is sent."""
        (operation,) = [each for each in operations(document) if each.name == name]
        content = operation.body["responses"]["200"]["content"]
        assert next(iter(content)) == "application/json"
        assert content.keys() == {"application/json", *ENCODERS}

    def test_a_half_width_says_what_it_covers(self, document: Document) -> None:
        """An answer and a preview say it in the same words: it covers what was counted, and not the truth."""
        schemas = document["components"]["schemas"]
        told = {schemas[name]["properties"]["half_width_95"]["description"] for name in ("Answer", "Preview")}
        assert told == {HALF_WIDTH}
        assert "counted" in HALF_WIDTH
        assert "truth" in HALF_WIDTH

    def test_queries_are_counted_for_curators_and_the_individual_alone(self, document: Document) -> None:
        """No reply that analysts or auditors get has a field for how often an individual was charged or left out."""
        schemas = document["components"]["schemas"]
        telling = {name for name, schema in schemas.items() if {*COUNTERS} & schema.get("properties", {}).keys()}
        assert all(set(schemas[name]["required"]) >= {*COUNTERS} for name in telling)
        of_roles: dict[str, set[str]] = {}
        for each in ROUTES:
            responses = document["paths"][each.template][each.method.lower()]["responses"]
            for name in telling & reached(document, responses):
                of_roles.setdefault(name, set()).update(each.roles)
        assert of_roles == {"BudgetRow": {CURATOR}, "MyBudget": {INDIVIDUAL}}


class TestReference:
    """The copy that the page at /docs is drawn from."""

    async def test_it_is_the_document(self, world: World, document: Document) -> None:
        """Everyone gets the same bytes, packed if the caller takes that, and not again while they are the same."""
        headers = {"X-Request-Id": "one", "Accept-Encoding": "gzip"}
        sent = await world.client.get("/assets/openapi.json", headers=headers)
        assert (sent.status_code, sent.json()) == (200, document)
        assert (sent.headers["content-type"], sent.headers["content-encoding"]) == ("application/json", "gzip")
        for role in ROLES:
            own = await world.call(role, "GET", "/assets/openapi.json", headers=headers)
            assert (own.content, own.headers) == (sent.content, sent.headers)
        again = await world.client.get("/assets/openapi.json", headers={"If-None-Match": sent.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")

    async def test_another_process_sends_the_same(self, world: World) -> None:
        """Nothing in it depends on the process, or on what its datasets hold."""
        other = build_world(upload_bytes_max=17)
        await other.call("curator", "POST", "/v1/datasets/care/archive", json={"rows": "delete"})
        first, second = [await each.client.get("/assets/openapi.json") for each in (world, other)]
        assert (first.content, first.headers["etag"]) == (second.content, second.headers["etag"])
        await other.close()


TEXTUAL = (JSON, "text/", "application/x-ndjson", "application/problem+json")


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
    assert examples().keys() == {f"{each.method} {each.path}" for each in operations(document)}


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


def test_the_examples_ask_in_many_ways() -> None:
    """By most items, and every noise but those of other mechanisms."""
    kinds = {key for asked in QUESTIONS.values() for item in asked["select"] for key in item}
    assert kinds >= {"count", "count_individuals", "sum", "histogram", "linear", "active", "mean", "quantile", "ratio"}
    noises = {key for asked in QUESTIONS.values() for key in asked["noise"]}
    assert noises == {"sigma", "rho", "share", "half_width", "confidence"}
