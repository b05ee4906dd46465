"""Uploads with options, to a replica with a table of visits."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any
from uuid import UUID

from service.ledger.model.journal import UploadRequest
from service.ledger.model.views import UploadReport
from service.workflows.replica import Replica
from tests.factories import PEOPLE, VISITS
from tests.memory.store import MemoryStore
from tests.workflows.surveys import surveyed


@contextmanager
def visited(
    store: MemoryStore | None = None,
    people: Sequence[Sequence[object]] = (),
    unknown_individuals: str = "create",
    *,
    capacity: int = 100_000,
    **visits: Any,
) -> Iterator[Replica]:
    """A replica whose table of visits declares these facts."""
    declared = VISITS | {"unknown_individuals": unknown_individuals} | visits
    with surveyed(store, people, tables={"people": PEOPLE, "visits": declared}, capacity=capacity) as replica:
        yield replica


def send(replica: Replica, rows: str, *, table: str = "visits", key: str | None = None, **options: Any) -> UploadReport:
    """Rows of visits with options."""
    address = None if key is None else (UUID(int=1), key)
    request = UploadRequest(table=table, content_type="text/csv", address=address, **options)
    return replica.curators.upload("survey", request, BytesIO(rows.encode())).report
