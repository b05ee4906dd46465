"""How every listing is asked for: an opaque cursor and a limit."""

from typing import Annotated

from fastapi import Query

Cursor = Annotated[str | None, Query(max_length=512, description="`next` of the page before; opaque.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="At most so many items.")]

LIMIT_DEFAULT = 100
