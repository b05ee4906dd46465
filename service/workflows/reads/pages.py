"""The end of a page of a listing: after `limit` items, or earlier, so that its memory has a public bound.

An item is on a page if the items before it on the page have fewer than PAGE_BYTES_MAX bytes together. Counted is only
the part of an item without a close bound: the canonical query, or an individual's key.
"""

from collections.abc import Sequence
from typing import Final

from service.workflows.model.errors import InvalidRequest

PAGE_BYTES_MAX: Final = 2**20


def is_full(sizes: Sequence[int], *, limit: int) -> bool:
    """Whether a page of items of these sizes, in bytes, may have a next one."""
    return len(sizes) == limit or sum(sizes) >= PAGE_BYTES_MAX


def number_of(cursor: str | None, *, default: int) -> int:
    """The number in a cursor. Raises InvalidRequest."""
    if cursor is None:
        return default
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 18:
        raise unknown_cursor()
    return int(cursor)


def unknown_cursor() -> InvalidRequest:
    """The refusal of a cursor that this kind of listing has not returned."""
    return InvalidRequest.of("cursor", "not a cursor of this listing")
