"""One shape for every refusal, and validation errors placed in the caller's document."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from fastapi.exceptions import RequestValidationError
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from starlette.exceptions import HTTPException

from service.api.auth import COOKIE
from service.api.problems import PROBLEMS, STATUSES, Problem, field_errors, problem_bytes, problem_of
from service.ledger.model import errors
from service.ledger.model.errors import Busy, InvalidRequest, KeyConflict, NotFound, WorkflowError
from service.ledger.ports.store import CommitRejected, CommitUnclear, StoreUnavailable
from service.query.json_text import ERRORS_MAX
from service.query.problems import FieldError, QueryProblem
from sparing import APIStatusError
from sparing._testing_http import TITLES
from tests.api.problem_shape import check_shape
from tests.api.route_table import REGISTRATION
from tests.api.world import COUNT, World


def workflow_errors(kind: type[WorkflowError] = WorkflowError) -> Iterator[type[WorkflowError]]:
    """Every refusal that the workflows export."""
    exported = (each for name, each in vars(errors).items() if not name.startswith("_"))
    yield from (each for each in exported if isinstance(each, type) and issubclass(each, kind))


class TestMap:
    """From exceptions to problems."""

    def test_every_refusal_of_the_workflows_has_a_status(self) -> None:
        """A new one without a status would be answered as an incident."""
        assert set(STATUSES) == set(workflow_errors()) - {WorkflowError}

    def test_the_client_follows_the_list(self) -> None:
        """Its fake has the same statuses and titles; a caller can tell what to mend or repeat by an error's class.

        No class stands for a status that the service does not send, but for those of proxies.
        """
        own = {slug: kind for slug, kind in TITLES.items() if slug != "not-in-fake"}
        assert own == {slug: PROBLEMS[slug] for slug in own}
        plain = {slug for slug, kind in PROBLEMS.items() if kind.status not in APIStatusError.by_status}
        assert plain == {
            *("method-not-allowed", "request-timeout", "uri-too-long", "headers-too-large"),
            *("internal-error", "not-implemented", "http-version-unsupported"),
        }
        sent = {kind.status for kind in PROBLEMS.values()}
        assert set(APIStatusError.by_status) - sent == {502, 504}, "only a proxy sends these"

    def test_what_is_not_known_is_a_500_without_a_word_of_it(self) -> None:
        """Even a workflow's own error, if it was given no status."""
        strangers = ValueError, WorkflowError, CommitRejected
        for stranger in (*(kind("Kari, 42") for kind in strangers), HTTPException(418, "Kari, 42")):
            problem, headers = problem_of(stranger, "r")
            assert (problem.status, problem.type, headers) == (500, "urn:sparing:problem:internal-error", {})
            assert b"Kari" not in problem_bytes(problem)

    def test_a_store_that_is_away_is_unavailable(self) -> None:
        """The text of the error does not matter."""
        for fault in (StoreUnavailable("password=x"), CommitUnclear("password=x")):
            problem, headers = problem_of(fault, "r")
            assert (problem.status, problem.type) == (503, "urn:sparing:problem:unavailable")
            assert headers == {"Retry-After": "1"}
            assert b"password" not in problem_bytes(problem)

    def test_what_time_cures_says_when_to_come_back(self) -> None:
        """429 with Retry-After: the seconds until there may be room, at least one."""
        for given_s, stated_s in ((0, 1), (1, 1), (7, 7)):
            problem, headers = problem_of(Busy(given_s), "r")
            assert (problem.status, problem.type) == (429, "urn:sparing:problem:busy")
            assert headers == {"Retry-After": str(stated_s)}

    def test_a_query_problem_names_its_field(self) -> None:
        """The field is the one that the query room found."""
        problem, _ = problem_of(QueryProblem.of("where.and[0]", "is odd"), "r")
        assert problem.model_dump()["errors"] == [{"field": "where.and[0]", "message": "is odd"}]
        assert (problem.status, problem.type) == (422, "urn:sparing:problem:invalid-request")

    def test_a_reused_key_names_the_header(self) -> None:
        """Every 422 names something."""
        problem, _ = problem_of(KeyConflict(), "r")
        assert [each.field for each in problem.errors or []] == ["Idempotency-Key"]

    def test_a_bad_id_in_the_path_is_an_unknown_one(self) -> None:
        """Not a field to be mended."""
        located = RequestValidationError([{"loc": ("path", "query_id"), "type": "uuid_parsing", "msg": "no"}])
        assert problem_of(located, "r") == problem_of(NotFound(), "r")

    def test_a_name_that_utf8_cannot_hold_is_sent_back_all_the_same(self) -> None:
        """Half of a surrogate pair is legal in JSON text, so it may come."""
        problem, _ = problem_of(InvalidRequest.of("\ud800", "is odd"), "r")
        assert json.loads(problem_bytes(problem))["errors"][0]["field"] == "\ud800"

    def test_a_problem_cannot_be_built_crooked(self) -> None:
        """The members are these and no others."""
        with pytest.raises(ValidationError):
            Problem.model_validate({"type": "x", "extra": 1})


JSON = {"Content-Type": "application/json"}
ROWS_PATH = "/v1/datasets/care/tables/people/rows"
PACKED = {"Content-Type": "text/csv", "Content-Encoding": "br"}
FROM_ELSEWHERE = {"Cookie": f"{COOKIE}=x", "Sec-Fetch-Site": "cross-site"}
REFUSED = [
    (None, "GET", "/v1/datasets", {}, 401, "unauthorized"),
    ("analyst", "GET", "/v1/nothing", {}, 404, "not-found"),
    ("curator", "PUT", "/v1/datasets/care", {}, 405, "method-not-allowed"),
    ("curator", "POST", "/v1/datasets", {"content": b"{", "headers": JSON}, 422, "invalid-request"),
    ("curator", "POST", "/v1/datasets", {"content": b"x" * 300_000}, 413, "content-too-large"),
    ("curator", "POST", "/v1/datasets", {"json": {**REGISTRATION, "name": "care"}}, 409, "name-taken"),
    ("curator", "POST", ROWS_PATH, {"content": b"x", "headers": PACKED}, 415, "unsupported-media-type"),
    (None, "GET", "/v1/datasets", {"headers": FROM_ELSEWHERE}, 403, "cross-site-request"),
    ("analyst", "POST", "/v1/datasets/care/queries", {"content": COUNT}, 400, "idempotency-key-missing"),
    (
        "analyst",
        "POST",
        "/v1/datasets/care/queries",
        {"headers": {"Idempotency-Key": "é".encode()}},
        400,
        "idempotency-key-invalid",
    ),
    (
        "analyst",
        "POST",
        "/v1/datasets/care/queries",
        {"headers": {"Idempotency-Key": "first"}, "content": COUNT.replace(b"20", b"21")},
        422,
        "idempotency-key-reused",
    ),
    ("analyst", "GET", "/v1/queries/00000000-0000-0000-0000-000000000000", {}, 404, "not-found"),
    ("individual", "POST", "/v1/me/budgets/care/lower", {"json": {"limit_rho": "2"}}, 422, "invalid-request"),
    ("auditor", "GET", "/v1/datasets/care/budgets", {}, 403, "role-required"),
    ("auditor", "GET", "/v1/" + "x" * 3000, {}, 414, "uri-too-long"),
    ("auditor", "GET", "/v1/datasets", {"headers": {"X": "x" * 20_000}}, 431, "headers-too-large"),
]


@pytest.mark.parametrize(
    ("role", "method", "path", "options", "status", "slug"),
    REFUSED,
    ids=[f"{row[5]}-{i}" for i, row in enumerate(REFUSED)],
)
async def test_every_refusal_has_the_one_shape(
    world: World, role: str | None, method: str, path: str, options: dict[str, Any], status: int, slug: str
) -> None:
    """From a workflow, a validation, the router or a middleware."""
    problem = check_shape(await world.call(role, method, path, **options))
    assert (problem.status, problem.type) == (status, f"urn:sparing:problem:{slug}")
    assert problem.title == PROBLEMS[slug].title


async def test_a_wrong_method_is_told_all_the_right_ones(world: World) -> None:
    """Those of other routers too."""
    response = await world.call("curator", "PUT", "/v1/datasets")
    assert response.headers["allow"] == "GET, POST"
    assert (await world.call(None, "DELETE", "/openapi.json")).headers["allow"] == "GET, HEAD"


async def test_an_incident_has_it_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing of what happened."""

    def explode(*_: object, **__: object) -> list[str]:
        raise RuntimeError("Kari, 42")

    monkeypatch.setattr(world.replica.curators, "datasets", explode)
    response = await world.call("curator", "GET", "/v1/datasets")
    assert check_shape(response).status == 500
    assert b"Kari" not in response.content


class Cat(BaseModel):
    """One member of a union."""

    model_config = ConfigDict(extra="forbid")
    kind: Literal["cat"]
    lives: int
    names: list[str | int] = []


class Dog(BaseModel):
    """The other."""

    kind: Literal["dog"]
    tricks: dict[str, Annotated[int, Field(ge=0)]]

    @model_validator(mode="after")
    def _some(self) -> "Dog":
        if not self.tricks:
            raise ValueError("A dog knows something")
        return self


class Zoo(BaseModel):
    """A document with a union inside."""

    animals: list[Annotated[Cat | Dog, Field(discriminator="kind")]]
    open: bool


def places(document: object) -> list[str]:
    """The fields that are wrong in a document."""
    return [error.field for error in errors_of(document)]


def errors_of(document: object) -> list[FieldError]:
    """The field errors of a document, its locations prefixed as FastAPI does."""
    try:
        Zoo.model_validate(document)
    except ValidationError as error:
        located = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        return field_errors(located, document)
    return []


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"animals": [], "open": 7}, ["open"]),
        ({"open": True}, ["animals"]),
        ({}, ["animals", "open"]),
        ([], ["body"]),
        (None, ["body"]),
        ({"animals": {}, "open": True}, ["animals"]),
        ({"animals": [{"kind": "cat"}], "open": True}, ["animals[0].lives"]),
        ({"animals": [{"kind": "cow"}], "open": True}, ["animals[0]"]),
        ({"animals": [{"kind": "cat", "lives": 9, "wings": 2}], "open": True}, ["animals[0].wings"]),
        ({"animals": [{"kind": "cat", "lives": 9, "names": [1.5]}], "open": True}, ["animals[0].names[0]"] * 2),
        ({"animals": [{"kind": "dog", "tricks": {"sit": -1}}], "open": True}, ["animals[0].tricks.sit"]),
        ({"animals": [{"kind": "dog", "tricks": {}}], "open": True}, ["animals[0]"]),
    ],
)
def test_a_field_is_named_as_it_stands_in_the_document(document: object, expected: list[str]) -> None:
    """Members of unions and validators do not show."""
    assert places(document) == expected


def test_a_validators_sentence_is_the_message() -> None:
    """Without pydantic's prefix, and beginning as our own do."""
    document = {"animals": [{"kind": "dog", "tricks": {}}], "open": True}
    assert errors_of(document) == [FieldError(field="animals[0]", message="a dog knows something")]


def test_parameters_are_named_by_themselves() -> None:
    """A query parameter or header is its own field."""
    errors = [{"loc": ("query", "limit"), "type": "int_parsing", "msg": "Input should be a valid integer"}]
    assert field_errors(errors, None) == [FieldError(field="limit", message="input should be a valid integer")]


def test_text_that_is_no_json_is_the_body() -> None:
    """Its position is not a field."""
    errors = [{"loc": ("body", 3), "type": "json_invalid", "msg": "JSON decode error"}]
    assert field_errors(errors, None) == [FieldError(field="body", message="must be a JSON document in UTF-8")]


def test_no_more_than_a_screenful_is_reported() -> None:
    """The first twenty."""
    document = {"animals": [{"kind": "cow"}] + [{"kind": "cat"}] * 50, "open": True}
    assert len(errors_of(document)) == ERRORS_MAX


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["animals", "kind", "open"]), inner),
    max_leaves=8,
)


@given(document=DOCUMENTS)
def test_every_error_names_a_field(document: object) -> None:
    """No document makes the naming fail or leaves a field without a name."""
    assert all(error.field and error.message for error in errors_of(document))
