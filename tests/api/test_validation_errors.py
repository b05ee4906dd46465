"""Validation errors, placed in the caller's document."""

from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from service.api.problems import ERRORS_MAX, field_errors
from service.query.problems import FieldError


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


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["animals", "kind", "open"]), inner),
    max_leaves=8,
)


@given(document=JSON)
def test_every_error_names_a_field(document: object) -> None:
    """No document makes the naming fail or leaves a field without a name."""
    assert all(error.field and error.message for error in errors_of(document))
