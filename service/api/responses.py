"""A released answer as bytes: the JSON that was committed, or its values alone in a binary form.

Every form is made from the stored bytes, so that a release reads the same each time it is fetched.
"""

import io
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import numpy as np
from fastapi import Response
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from service.workflows.admission.admission import Ticket
from service.workflows.model.analyst_views import HALF_WIDTH, LARGEST_NORM, WARNINGS, WORST_CASE_SHARE, StoredAnswer

JSON = "application/json"
NPY = "application/x-npy"
ARROW = "application/vnd.apache.arrow.stream"

_SYNONYMS = {"*/*": JSON, "application/*": JSON}


class Answer(BaseModel):
    """A released answer. It describes the stored bytes, which are sent as they are and never built from this."""

    id: UUID
    sequence: int
    values: list[float]
    labels: Any
    axes: Any
    sigma: float
    grid: float
    dimension: int
    half_width_95: Annotated[float, Field(description=HALF_WIDTH)]
    worst_case_rho: str
    coverage_certified: bool
    reused: bool
    epoch: int
    released_at: datetime
    worst_case_share: Annotated[float | None, Field(description=WORST_CASE_SHARE)]
    largest_countable_norm: Annotated[float, Field(description=LARGEST_NORM)]
    warnings: Annotated[list[str], Field(description=WARNINGS)]


_BINARY = {"schema": {"type": "string", "format": "binary"}}
ANSWER: dict[int | str, dict[str, Any]] = {200: {"model": Answer, "content": {NPY: _BINARY, ARROW: _BINARY}}}


def respond(answer: StoredAnswer, accept: str | None, ticket: Ticket | None = None) -> Response:
    """The answer in the form the caller likes best; JSON when it asks for nothing that we know.

    With a `ticket`, headers say the query's public cost and the delay that its slots mean.
    """
    media_type = preferred(accept)
    body = answer.body if media_type == JSON else _ENCODERS[media_type](answer.values())
    return Released(body, media_type, answer.query_id, ticket)


class Released(Response):
    """A released answer on its way. What stands in its headers is known, so they are written as the bytes they are."""

    def __init__(  # not Response's, which finds out
        self, body: bytes, media_type: str, query_id: UUID, ticket: Ticket | None
    ) -> None:
        self.status_code, self.media_type, self.background = 200, media_type, None
        self.body = body
        self.raw_headers = [
            (b"x-query-id", str(query_id).encode()),
            (b"vary", b"Accept"),
            (b"content-length", b"%d" % len(body)),
            (b"content-type", media_type.encode()),
        ]
        if ticket is not None:
            self.raw_headers += [
                (b"public-cost-ms", b"%.3f" % (ticket.cost.time_ns / 1e6)),
                (b"public-cost-bytes", b"%d" % ticket.cost.memory_bytes),
                (b"public-delay-ms", b"%.3f" % ticket.delay_ms),
            ]


def preferred(accept: str | None) -> str:
    """The media type among ours that an Accept header ranks first; ties go to the one named first."""
    if not accept or _SYNONYMS.get(accept, accept) == JSON:
        return JSON  # nearly every request; no ranking needed
    ranked = sorted(_ranked(accept), key=lambda each: -each[1])
    return next((media_type for media_type, quality in ranked if quality > 0), JSON)


def _ranked(accept: str) -> Iterator[tuple[str, float]]:
    for part in accept.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        media_type = _SYNONYMS.get(name, name)
        if media_type == JSON or media_type in _ENCODERS:
            yield media_type, _quality(parameters)


def _quality(parameters: list[str]) -> float:
    stated = next((text[2:] for text in parameters if text.startswith("q=")), "1")
    try:
        return float(stated)
    except ValueError:
        return 0.0


def _npy(values: NDArray[np.float64]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, values, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def _arrow(values: NDArray[np.float64]) -> bytes:
    import pyarrow as pa  # noqa: PLC0415 - a start does not need it; `service.run.serve` imports it when it is over

    table = pa.table({"value": pa.array(values)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


_ENCODERS: Mapping[str, Callable[[NDArray[np.float64]], bytes]] = {NPY: _npy, ARROW: _arrow}
