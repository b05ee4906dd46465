"""Bodies of JSON: one strict reader for every route, in a place of the principal, with bounds that are counted."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, TypeVar

import pytest
from fastapi import APIRouter, Body, Depends
from fastapi.routing import APIRoute, iter_route_contexts
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.api.auth import GuardedRoute, RouteGuard
from service.api.bodies import ESCAPES_MAX, VALUES_MAX, read_model
from service.api.body_length import SMALL_BODY_BYTES
from service.api.place import PlacesByName
from service.api.problems import body_errors
from service.api.routes.curator import IndividualKeys
from service.ledger.model.errors import InvalidRequest
from service.query.json_text import ERRORS_MAX
from service.query.schema import COLUMNS_MAX
from service.workflows.datasets import Registration
from service.workflows.principals import INDIVIDUALS_MAX
from tests.api.route_table import ROUTES, Route
from tests.api.world import TABLES, World

T = TypeVar("T")
READ_AS_MODELS = [each for each in ROUTES if "json" in each.options]
"""The routes whose body is a document of their own; queries and batches have a test file each."""
WITH_BODIES = [each for each in ROUTES if each.options.keys() & {"json", "content"}]


async def sent(world: World, route: Route, body: bytes, **headers: str) -> tuple[int, list[str]]:
    """The status of a body at a route, and the fields that are named."""
    role = min(route.roles)
    headers = {"Content-Type": "application/json", **route.headers, **headers}
    params = {"individual": "ed"} if "individual" in str(route.options.get("params")) else None
    reply = await world.call(role, route.method, route.path(world), content=body, headers=headers, params=params)
    problem = reply.json() if reply.status_code >= 400 else {}
    return reply.status_code, [each["field"] for each in problem.get("errors", ())]


def ids(route: Route) -> str:
    """The name of a case."""
    return str(route)


async def test_no_route_reads_a_body_leniently(world: World) -> None:
    """Repeated members, U+0000, half of a surrogate pair, a byte order mark, UTF-16, NaN and no body at all."""
    for route in READ_AS_MODELS:
        valid = json.dumps(route.options["json"]).encode()
        member = b'"x\\u0000":1' if valid.startswith(b"{") else b'"x\\u0000"'
        ends = valid[:-1], valid[-1:]
        for body in (
            ends[0] + b"," + member + ends[1],
            ends[0] + b"," + member.replace(b"\\u0000", b"\\ud800") + ends[1],
            b"\xef\xbb\xbf" + valid,
            valid.decode().encode("utf-16"),
            ends[0] + (b',"n":NaN' if valid.startswith(b"{") else b",NaN") + ends[1],
            b"",
        ):
            status, (field, *_) = await sent(world, route, body)
            assert status == 422, (route, body)
            assert field in {"body", "n", "[2]"}, route


async def test_a_repeated_member_is_refused(world: World) -> None:
    """The last one would win, and a filter on the way may have looked at the first."""
    for route in READ_AS_MODELS:
        if isinstance(route.options["json"], dict):
            ((name, value), *_) = route.options["json"].items()
            twice = json.dumps({name: value})[1:-1].encode()
            assert await sent(world, route, b"{%s,%s}" % (twice, twice)) == (422, ["body"]), route


async def test_the_zero_byte_in_a_category_is_named(world: World) -> None:
    """The database can hold no such name."""
    columns = {"t": {"type": "category", "categories": ["a", "b\0"]}}
    tables = {"people": {"kind": "individuals", "key": "id", "columns": columns}}
    route = next(each for each in READ_AS_MODELS if each.template == "/v1/datasets")
    body = json.dumps({"name": "n", "guarantee": {"rho": 1}, "tables": tables}).encode()
    assert await sent(world, route, body) == (422, ["tables.people.columns.t.categories[1]"])


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
async def test_a_document_says_that_it_is_json(world: World, content_type: str) -> None:
    """A form of another site cannot."""
    route = READ_AS_MODELS[0]
    body = json.dumps(route.options["json"]).encode()
    assert await sent(world, route, body, **{"Content-Type": content_type}) == (422, ["body"])


class CountedPlaces(PlacesByName):
    """Places that note whose work they do."""

    def __init__(self) -> None:
        super().__init__("a body", waiting_max=1)
        self.owners: list[object] = []

    async def run(self, which: str, owner: Any, work: Callable[[], T]) -> T:
        """Note the owner."""
        self.owners.append(owner)
        return await super().run(which, owner, work)


@pytest.mark.parametrize("route", [each for each in WITH_BODIES if "rows" not in each.template], ids=ids)
async def test_a_large_body_is_read_in_a_place_of_its_principal(world: World, route: Route) -> None:
    """And a small one at once; strangers have no body read at all."""
    if route.template.endswith("preview") and "files" in route.template:
        return  # a file is spooled, not read
    place = world.app.state.places.here().bodies = CountedPlaces()
    content = route.options.get("content") or json.dumps(route.options["json"]).encode()
    role = min(route.roles)
    await sent(world, route, content)
    assert place.owners == []
    await sent(world, route, content + b" " * SMALL_BODY_BYTES)
    principal = world.replica.principals.authenticate_all([world.keys[role]])[0]
    assert principal is not None
    assert place.owners == [principal.id]
    reply = await world.call(None, route.method, route.path(world), content=content + b" " * SMALL_BODY_BYTES)
    assert reply.status_code == 401
    assert place.owners == [principal.id]


async def test_memory_is_held_for_a_body_on_its_way(world: World) -> None:
    """The memory is of the share that one principal's requests have together; a small body takes none."""
    route = next(each for each in READ_AS_MODELS if each.template.endswith("/keys"))
    world.replica.admission.memory.bytes_max = 1
    assert await sent(world, route, b'["bo"]') == (201, [])
    assert await sent(world, route, b'["cy"]' + b" " * 100_000) == (422, ["body"])
    world.replica.admission.memory.bytes_max = 2**30
    assert await sent(world, route, b'["cy"]' + b" " * 100_000) == (201, [])


def refused(model: type[BaseModel], body: bytes) -> list[str]:
    """The fields that a body is refused for."""
    with pytest.raises(InvalidRequest) as refusal:
        read_model(model, body)
    return [error.field for error in refusal.value.errors]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"[" + b"1," * 200_000 + b"1]", "[0]"),
        (b"[" + b'"a",' * INDIVIDUALS_MAX + b'"a"]', "body"),
        (b"[" + b"1," * VALUES_MAX + b",1]", "body"),
        (b'["' + rb"\n" * ESCAPES_MAX + rb'\n"]', "body"),
        (b"[" * 1000, "body"),
        (b'["' + b"[{" * (VALUES_MAX // 2) + b'"]', "body"),
    ],
)
def test_keys_of_individuals_end_at_the_first_that_is_wrong(body: bytes, field: str) -> None:
    """Half a million errors took fifteen seconds, and gigabytes."""
    assert refused(IndividualKeys, body) == [field]


class Columns(BaseModel):
    """Members without a bound of their own."""

    model_config = ConfigDict(extra="forbid")


def test_unknown_members_are_told_up_to_twenty() -> None:
    """An object of more members than a table may have is not made at all."""
    few = {f"k{number}": 1 for number in range(COLUMNS_MAX)}
    assert refused(Columns, json.dumps(few).encode()) == [f"k{number}" for number in range(ERRORS_MAX)]
    assert refused(Columns, json.dumps({f"k{number}": 1 for number in range(24_500)}).encode()) == ["body"]


def test_a_registration_tells_of_few_columns_at_once() -> None:
    """A hundred tables of two hundred wrong columns: the errors made are of twenty columns of one table."""
    wrong = {"type": "integer", "lower": 0, "upper": 1, "x": 1}
    columns = {f"c{number}": wrong for number in range(COLUMNS_MAX)}
    tables = {f"t{number}": {"kind": "events", "key": "id", "columns": columns} for number in range(100)}
    document = {"name": "n", "guarantee": {"rho": 1}, "tables": tables}
    with pytest.raises(ValidationError) as error:
        Registration.model_validate(document)
    assert error.value.error_count() == ERRORS_MAX
    assert [each.field for each in body_errors(error.value, document)] == [
        f"tables.t0.columns.c{number}.x" for number in range(ERRORS_MAX)
    ]


def test_columns_in_pieces_are_the_columns_in_their_order() -> None:
    """A table may have COLUMNS_MAX of them, and not one more."""
    columns = {f"c{number}": {"type": "boolean"} for number in range(COLUMNS_MAX)}
    document: dict[str, Any] = {"name": "n", "guarantee": {"rho": 1}, "tables": {"t": {**TABLES["people"]}}}
    document["tables"]["t"]["columns"] = columns
    assert list(Registration.model_validate(document).tables.root["t"].columns) == list(columns)
    columns["more"] = {"type": "boolean"}
    with pytest.raises(ValidationError, match="at most 200 items"):
        Registration.model_validate(document)


BOUNDED_TEXT = {"max_length", "pattern"}
ANY_LENGTH = {"literal", "enum", "date", "datetime", "decimal"}


def parts_of(schema: Any) -> Iterator[dict[str, Any]]:
    """Every part of a schema of pydantic's that reads a list, an object of any names, or text."""
    if isinstance(schema, dict):
        if str(schema.get("type")) in {"list", "tuple", "dict", "str", "set"}:
            yield schema
        for name, each in schema.items():
            if name not in {"serialization", "metadata", "default"}:
                yield from parts_of(each)
    elif isinstance(schema, list | tuple):
        for each in schema:
            yield from parts_of(each)


def unbounded(model: type[BaseModel]) -> list[str]:
    """The lists, objects and texts of a model that may be of any length."""
    found = []
    for part in parts_of(model.__pydantic_core_schema__):
        is_fixed = part["type"] == "tuple" and "variadic_item_index" not in part
        if not is_fixed and not part.keys() & BOUNDED_TEXT:
            found.append(f"{model.__name__}: {part['type']} {str(part)[:200]}")
    return found


def slow_to_fail(model: type[BaseModel]) -> list[str]:
    """The long lists of a model that would gather an error for each wrong part."""
    return [
        f"{model.__name__}: {str(part)[:200]}"
        for part in parts_of(model.__pydantic_core_schema__)
        if part["type"] in {"list", "tuple", "set"} and part.get("max_length", 0) > 64 and not part.get("fail_fast")
    ]


def models_of(world: World) -> list[type[BaseModel]]:
    """The models of the bodies of all guarded routes."""
    routes = [context.original_route for context in iter_route_contexts(world.app.routes)]
    return [model for route in routes if isinstance(route, GuardedRoute) and (model := route.body_model()) is not None]


async def test_every_list_object_and_text_of_a_body_has_a_length(world: World) -> None:
    """So that what a body may cost is public, whatever is in it."""
    models = models_of(world)
    assert len(models) == len(READ_AS_MODELS)
    assert [each for model in models for each in unbounded(model)] == []
    assert [each for model in models for each in slow_to_fail(model)] == []


class Unbounded(BaseModel):
    """A model of each fault."""

    texts: Annotated[list[Annotated[str, Field(max_length=1)]], Field(max_length=1000)]
    names: dict[str, int]


async def test_a_route_of_strangers_takes_no_body(world: World) -> None:
    """A sign-in, its way back and the pages: nothing that a stranger sends is parsed beyond its head."""
    routes = [context.original_route for context in iter_route_contexts(world.app.routes)]
    open_to_all = [route for route in routes if isinstance(route, APIRoute) and not isinstance(route, GuardedRoute)]
    assert len(open_to_all) > 5
    assert [route.path for route in open_to_all if route.body_field is not None] == []


def test_a_part_without_a_length_is_found() -> None:
    """The rule can fail."""
    assert [each.split(" ")[1] for each in unbounded(Unbounded)] == ["dict", "str"]
    assert len(slow_to_fail(Unbounded)) == 1


def test_a_body_that_is_no_model_cannot_be_declared() -> None:
    """FastAPI would validate it once more, in the event loop."""
    router = APIRouter(route_class=GuardedRoute)
    with pytest.raises(TypeError, match="must be one model"):
        router.post("/x", dependencies=[Depends(RouteGuard("analyst"))])(partial(_takes_a_list))


def _takes_a_list(listed: Annotated[list[int], Body()]) -> None:
    """An endpoint."""
