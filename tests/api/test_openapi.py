"""The document that is the reference of the interface: whole, valid, true of what is sent, and full of examples."""

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
import schemathesis

from service.api.openapi import examples
from service.api.openapi_schemas import nested
from service.api.responses import ENCODERS
from service.ledger.model.analyst_views import HALF_WIDTH
from service.query.parse import parse_query
from service.query.plan import compile_query
from service.query.schema import Schema
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
from tests.api.example_story import JSON, WITHOUT_EFFECT, Story, agree, body_of, empty_world, media_type_of
from tests.api.route_table import CURATOR, INDIVIDUAL, PUBLIC, ROUTES
from tests.api.world import ROLES, TABLES, World, build_world

COUNTERS = ("queries_charged", "queries_left_out")
VERBS = """
append archive ask change check correct create delete end erase export extend list lower make open preview read register
replace revoke set sign verify watch cancel
""".split()


@pytest.fixture
def document() -> Document:
    """As it is made."""
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
        """Of its own, and beginning with a verb: it becomes a method in generated clients."""
        names = [each.name for each in operations(document)]
        assert len(set(names)) == len(names)
        assert [name for name in names if name.split("_")[0] not in VERBS or not re.fullmatch("[a-z_]+", name)] == []
        assert {"ask", "preview", "register_dataset", "list_my_budgets"} <= set(names)


class TestValid:
    """Tools that read such documents can read this one."""

    def test_it_is_valid(self, document: Document) -> None:
        """As OpenAPI 3.1."""
        assert document["openapi"].startswith("3.1")
        schemathesis.openapi.from_dict(document).validate()

    @pytest.mark.slow
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


COUNT: dict[str, Any] = {"count": {}}
ASKED: list[dict[str, Any]] = [
    {"select": [COUNT], "group_by": ["country", "age"]},
    {"select": [COUNT, {"histogram": {"column": "age"}}], "group_by": ["country"]},
    {"select": [{"histogram": {"column": "country"}}]},
    {"select": [{"sum": {"of": {"abs": {"sub": [{"col": "age"}, 40]}}}}]},
    {"select": [COUNT], "group_by": [{"bin": {"column": "age", "edges": [0, 18.5, 65]}}]},
    {"select": [COUNT], "group_by": [{"bin": {"column": "age", "width": 10}}]},
    {"select": [{"linear": {"column": "country", "weights": {"indices": ["NO"], "values": [2]}}}]},
    {"from": "visits", "select": [{"count_individuals": {}}], "per_individual": {"rows": 2}},
    {"from": "visits", "select": [COUNT], "group_by": ["people.country"], "per_individual": {"rows": 2}},
    {
        "select": [
            COUNT,
            *({kind: {"column": "age"}} for kind in ("mean", "variance", "stddev")),
            {"quantile": {"column": "age", "probability": 0.5, "bins": 2}},
            {"ratio": {"of": {"sum": {"column": "age"}}, "to": COUNT}},
            {"difference": {"of": {"mean": {"column": "age"}}, "by": "country", "from": "NO", "to": "SE"}},
        ],
        "group_by": ["country"],
        "noise": {"share": 0.1},
    },
]


class TestAnswers:
    """Answers are as the document describes them."""

    def test_the_answer_describes_what_is_sent(self, document: Document) -> None:
        """Labels and axes are typed, down to the last member."""
        schemas = document["components"]["schemas"]
        wanted = {"CoordinateLabel", "GroupAxis", "SelectAxis", "SelectedItem", "EstimateRow", "EstimateItem"}
        assert wanted <= reached(document, schemas["Answer"])
        assert all(schemas[name]["additionalProperties"] is False for name in ("GroupAxis", "SelectAxis"))

    @pytest.mark.parametrize("asked", ASKED, ids=range(len(ASKED)))
    async def test_an_answer_is_valid(self, world: World, document: Document, asked: dict[str, Any]) -> None:
        """The stored bytes have exactly the members that the document promises, for all groups and items."""
        body = json.dumps({"version": 1, "noise": {"sigma": 500}, **asked}).encode()
        response = await world.ask("k", body)
        assert response.status_code == 200, response.text
        answer, schema = response.json(), document["components"]["schemas"]["Answer"]
        optional = {"estimates", "mechanism", "scale", "tick"}
        assert set(schema["properties"]) - optional == set(schema["required"]) == set(answer) - {"estimates"}
        assert faults(document, schema, answer) == []

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
        query = {"version": 1, "select": [COUNT], "group_by": groups, "noise": {"sigma": 20}}
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
        """Of an answer and of a preview in the same words: what was counted, and not the truth."""
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
        """The same bytes for everyone, packed where that is taken, and not again while they are the same."""
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
    assert kinds == {"count", "count_individuals", "sum", "histogram", "linear", "active"}
    assert {key for body in asked for key in body["noise"]} == {"sigma", "rho", "share", "half_width", "confidence"}


@pytest.mark.slow
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
    await world.close()
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
