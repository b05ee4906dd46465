"""The cursor and the limit of every listing.

A cursor is opaque to its bearer, and goes into an address without escapes: it is the workflow's place in base64.
"""

from base64 import b64decode, urlsafe_b64encode
from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Query

from service.ledger.model.errors import InvalidRequest
from service.ledger.model.views import Page, Row
from service.numerals import INTEGER

LIMIT_DEFAULT = 100


async def place_of(
    cursor: Annotated[
        str | None, Query(max_length=512, description="`next` of the page before; opaque. Left out, the first page.")
    ] = None,
) -> str | None:
    """The workflow's own cursor. Raises InvalidRequest for a text that `opaque` cannot have made."""
    if cursor is None:
        return None
    try:
        return b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
    except ValueError:
        raise InvalidRequest.of("cursor", "not a cursor of this listing") from None


def opaque(page: Page[Row]) -> Page[Row]:
    """The page with its cursor as it is sent."""
    if page.next is None:
        return page
    return replace(page, next=urlsafe_b64encode(page.next.encode("ascii")).decode("ascii").rstrip("="))


Cursor = Annotated[str | None, Depends(place_of)]
Limit = Annotated[
    int, INTEGER, Query(ge=1, le=1000, description="At most so many items. A page may have fewer, and a next one.")
]
