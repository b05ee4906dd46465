"""The quick canonical form against the library of the scheme: the same bytes, the same refusals."""

import enum
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from service.query.canonical import canonical_json

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"))
)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


class Colour(enum.StrEnum):
    """A string that is not quite one."""

    RED = "red"


@given(DOCUMENTS)
def test_the_bytes_are_those_of_the_scheme(document: Any) -> None:
    """Keys of any script, floats of any size, tuples, text with every escape."""
    try:
        expected = rfc8785.dumps(document)
    except rfc8785.CanonicalizationError as refusal:
        with pytest.raises(type(refusal)):
            canonical_json(document)
    else:
        assert canonical_json(document) == expected


@pytest.mark.parametrize("text", ["\x00\x08\x09\x0a\x0b\x0c\x0d\x1f", '"\\/', "\x7f\x80\u2028", "\U0001f600"])
def test_escapes_are_those_of_the_scheme(text: str) -> None:
    """Short ones, long ones, and none where none is needed."""
    assert canonical_json({text: text}) == rfc8785.dumps({text: text})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53, {1: 2}, {"a": b"x"}, object()])
def test_what_has_no_canonical_form_is_refused_as_the_library_refuses_it(value: Any) -> None:
    """One kind of error for every caller."""
    with pytest.raises(rfc8785.CanonicalizationError):
        canonical_json(value)


def test_a_kind_of_its_own_is_left_to_the_library() -> None:
    """Nothing is guessed about subclasses."""
    assert canonical_json([Colour.RED]) == rfc8785.dumps([Colour.RED])
