"""The document that is the reference of the interface."""

from typing import Any

from service.workflows.model.analyst_views import HALF_WIDTH
from tests.api.route_table import CURATOR, INDIVIDUAL, PUBLIC, ROUTES
from tests.api.world import World

COUNTERS = ("queries_charged", "queries_left_out")


async def _document(world: World) -> dict[str, Any]:
    response = await world.client.get("/openapi.json")
    assert response.status_code == 200
    document: dict[str, Any] = response.json()
    return document


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        found = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return found.union(*map(_references, value.values()))
    return set().union(*map(_references, value)) if isinstance(value, list) else set()


async def test_every_route_is_in_it(world: World) -> None:
    """With its method, and with a key wherever one is needed."""
    paths = (await _document(world))["paths"]
    told = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert told == {(each.method, each.template) for each in ROUTES} | {
        pair for pair in PUBLIC if pair[1] != "/openapi.json"
    }
    for each in ROUTES:
        assert paths[each.template][each.method.lower()]["security"] == [{"api_key": []}]


async def test_every_reference_leads_somewhere(world: World) -> None:
    """Those to the query language too, which the framework does not know."""
    document = await _document(world)
    schemas = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert _references(document) <= schemas
    assert "#/components/schemas/Query" in _references(document)


async def test_every_operation_tells_how_it_refuses(world: World) -> None:
    """In the one shape, and in no shape of the framework's own."""
    document = await _document(world)
    for methods in document["paths"].values():
        for operation in methods.values():
            refusal = operation["responses"]["default"]["content"]["application/problem+json"]["schema"]
            assert refusal == {"$ref": "#/components/schemas/Problem"}
    assert "HTTPValidationError" not in document["components"]["schemas"]


async def test_the_key_of_a_query_is_required(world: World) -> None:
    """A generated client must make one."""
    operation = (await _document(world))["paths"]["/v1/datasets/{dataset}/queries"]["post"]
    (header,) = [each for each in operation["parameters"] if each["in"] == "header"]
    assert (header["name"], header["required"]) == ("Idempotency-Key", True)


async def test_the_answer_describes_what_is_sent(world: World) -> None:
    """The stored bytes have exactly the members that the document promises."""
    schema = (await _document(world))["components"]["schemas"]["Answer"]
    answer = (await world.ask("k")).json()
    assert set(schema["properties"]) == set(answer)
    assert set(schema["required"]) == set(answer)


async def test_a_half_width_says_what_it_covers(world: World) -> None:
    """Of an answer and of a preview in the same words: what was counted, and not the truth."""
    schemas = (await _document(world))["components"]["schemas"]
    told = {schemas[name]["properties"]["half_width_95"]["description"] for name in ("Answer", "Preview")}
    assert told == {HALF_WIDTH}
    assert "counted" in HALF_WIDTH
    assert "truth" in HALF_WIDTH


async def test_queries_are_counted_for_curators_and_the_individual_alone(world: World) -> None:
    """No reply that analysts or auditors get has a field for how often an individual was charged or left out."""
    document = await _document(world)
    schemas = document["components"]["schemas"]
    telling = {name for name, schema in schemas.items() if {*COUNTERS} & schema.get("properties", {}).keys()}
    assert all(set(schemas[name]["required"]) >= {*COUNTERS} for name in telling)
    of_roles: dict[str, set[str]] = {}
    for each in ROUTES:
        told = _references(document["paths"][each.template][each.method.lower()]["responses"])
        while more := set().union(*(_references(schemas[name.split("/")[-1]]) for name in told)) - told:
            told |= more
        for name in telling & {reference.split("/")[-1] for reference in told}:
            of_roles.setdefault(name, set()).update(each.roles)
    assert of_roles == {"BudgetRow": {CURATOR}, "MyBudget": {INDIVIDUAL}}


async def test_every_operation_has_a_short_name_of_its_own(world: World) -> None:
    """It becomes the name of a method in generated clients."""
    paths = (await _document(world))["paths"]
    names = [operation["operationId"] for methods in paths.values() for operation in methods.values()]
    assert len(set(names)) == len(names)
    assert {"ask", "preview", "register", "my_budgets"} <= set(names)


async def test_it_is_made_once(world: World) -> None:
    """Reading it twice gives the same bytes."""
    first, second = [await world.client.get("/openapi.json") for _ in range(2)]
    assert first.content == second.content
