"""Cursors are opaque, and safe within an address."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.pagination import opaque, place_of
from service.workflows.model.errors import InvalidRequest
from service.workflows.model.views import Page

ASCII = st.text(alphabet=st.characters(max_codepoint=127), max_size=60)


@given(place=ASCII)
async def test_a_cursor_leads_back_to_its_place(place: str) -> None:
    """For every cursor of a workflow, without escaping."""
    cursor = opaque(Page(items=(1,), next=place)).next
    assert cursor is not None
    assert cursor == "".join(letter for letter in cursor if letter.isascii() and (letter.isalnum() or letter in "-_"))
    assert await place_of(cursor) == place


async def test_no_cursor_is_the_beginning_and_the_end() -> None:
    """None goes in and comes out."""
    last: Page[int] = Page(items=(), next=None)
    assert opaque(last) is last
    assert await place_of(None) is None


@pytest.mark.parametrize("cursor", ["x", "x=y", "a b", "é", "_w", "\0", "++++"])
async def test_anything_else_is_refused(cursor: str) -> None:
    """By the field's name."""
    with pytest.raises(InvalidRequest) as refused:
        await place_of(cursor)
    assert [error.field for error in refused.value.errors] == ["cursor"]
