"""A released answer as bytes: the JSON that was committed, or a binary form of it.

Every form is made from the stored bytes, so that a release reads the same each time it is fetched. Npy has the values
alone. Npz and Arrow have everything in the JSON except the labels; in their place they have `axes`, which name a
million coordinates in a few lines.
"""

import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final
from uuid import UUID

import numpy as np
import orjson
from fastapi import Header, Response
from numpy.typing import NDArray
from pydantic import BaseModel

from service.api.models import CoordinateLabel, Estimates, GroupAxis, SelectAxis
from service.ledger.model.analyst_views import (
    COVERAGE_WORDS,
    HALF_WIDTH,
    LARGEST_NORM,
    NOTES,
    WARNINGS,
    WORST_CASE_SHARE,
    StoredAnswer,
)
from service.ledger.model.views import (
    AnswerDimension,
    AnswerGrid,
    EpochNumber,
    Id,
    IsCovered,
    LedgerSequence,
    NoiseSigma,
    ReleasedAt,
    WorstCaseRho,
)
from service.query.layout import LABELS_MAX
from service.query.noise_ast import MechanismWord
from service.query.schema import doc
from service.writer.admission.admission import Ticket

JSON: Final = "application/json"
NPY: Final = "application/x-npy"
NPZ: Final = "application/x-npz"
ARROW: Final = "application/vnd.apache.arrow.stream"

# What may be accepted stands with the responses; OpenAPI wants no parameter of that name.
Accept = Annotated[str | None, Header(include_in_schema=False)]

_SYNONYMS: Final = {"*/*": JSON, "application/*": JSON}
_VALUES: Final = b'"values":['
_NUMBERS: Final = ("sigma", "grid", "half_width_95")


class Answer(BaseModel):
    """A released answer: its numbers, the noise in them, and the public facts about both. It reads the same each time
    it is fetched.
    """  # noqa: D205 - one paragraph in the OpenAPI document

    # It describes the stored bytes, which are sent as they are and never built from it.
    id: Id
    sequence: LedgerSequence
    table: Annotated[str, doc("The table that was asked, whose columns labels and axes name.")]
    values: Annotated[list[float], doc("The numbers: what was counted plus noise, multiples of `grid`.")]
    labels: Annotated[
        list[CoordinateLabel],
        doc("The name of each number in the same order; empty above 10,000 numbers, where `axes` tells the order."),
    ]
    axes: Annotated[
        list[GroupAxis | SelectAxis],
        doc("The order of the numbers in a few lines: the groups from the outermost in, then the select items."),
    ]
    sigma: NoiseSigma
    grid: AnswerGrid
    dimension: AnswerDimension
    half_width_95: Annotated[float | tuple[float, ...], doc(HALF_WIDTH)]
    worst_case_rho: WorstCaseRho
    coverage_certified: IsCovered
    coverage_words: Annotated[str, doc(COVERAGE_WORDS)]
    reused: Annotated[bool, doc("Whether an earlier answer to the same query was returned, at no charge.")]
    epoch: EpochNumber
    released_at: ReleasedAt
    worst_case_share: Annotated[float | None, doc(WORST_CASE_SHARE)]
    largest_countable_norm: Annotated[float | tuple[float, ...], doc(LARGEST_NORM)]
    warnings: Annotated[list[str], doc(WARNINGS)]
    notes: Annotated[list[str], doc(NOTES)]
    estimates: Annotated[
        Estimates | None,
        doc("Means and other items that are worked out, up to 10,000 numbers; absent where all items are linear."),
    ] = None
    tick: Annotated[int | None, doc("The number of the monitor's tick that it is, from 1; absent of others.")] = None
    mechanism: Annotated[MechanismWord | None, doc("The law of the noise; absent of a Gaussian.")] = None
    scale: Annotated[float | None, doc("The scale of Laplace noise, in the query's unit; absent of a Gaussian.")] = None


def respond(answer: StoredAnswer, accept: str | None, ticket: Ticket | None = None) -> Response:
    """The answer in the form that the caller ranks first; JSON if it names no form that we know.

    Where the caller ranks JSON and a binary form alike, the binary form is sent above LABELS_MAX numbers, which have no
    labels. With a `ticket`, headers say the query's public cost and the delay that its slots mean.
    """
    media_type = preferred(accept, is_large=lambda: answer.values().size > LABELS_MAX)
    body = answer.body if media_type == JSON else ENCODERS[media_type](answer)
    return Released(body, media_type, answer.query_id, ticket)


class Released(Response):
    """A released answer on its way. Its headers are known in advance, so that they are written directly as bytes."""

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


def preferred(accept: str | None, *, is_large: Callable[[], bool]) -> str:
    """The media type among ours that an Accept header ranks first. Of several, the one that it names first.

    For a large answer, JSON comes after the others of its rank.
    """
    if not accept or _SYNONYMS.get(accept, accept) == JSON:
        return JSON  # nearly every request; no ranking needed
    ranked = [(media_type, quality) for media_type, quality in _ranked(accept) if quality > 0]
    best = max((quality for _, quality in ranked), default=0)
    first, *others = [media_type for media_type, quality in ranked if quality == best] or [JSON]
    return others[0] if first == JSON and others and is_large() else first


def _ranked(accept: str) -> Iterator[tuple[str, float]]:
    for part in accept.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        media_type = _SYNONYMS.get(name, name)
        if media_type == JSON or media_type in ENCODERS:
            yield media_type, _quality(parameters)


def _quality(parameters: list[str]) -> float:
    stated = next((text[2:] for text in parameters if text.startswith("q=")), "1")
    try:
        return float(stated)
    except ValueError:
        return 0.0


def _facts(body: bytes) -> dict[str, Any]:
    """The members of a stored answer except values and labels. The values are numbers, and end at the first bracket."""
    before, begin, after = body.partition(_VALUES)
    facts: dict[str, Any] = orjson.loads(before + begin + after[after.index(b"]") :])
    return {name: fact for name, fact in facts.items() if name not in {"values", "labels"}}


def _npz(answer: StoredAnswer) -> bytes:
    """An npz of `values`, of `sigma`, `grid` and `half_width_95` (scalars or by item), and of the facts as JSON."""
    facts = _facts(answer.body)
    members = {"values": answer.values(), **{name: np.array(facts[name], dtype=np.float64) for name in _NUMBERS}}
    return npz_of({**members, "answer": np.array(orjson.dumps(facts).decode())})


def npz_of(members: Mapping[str, NDArray[Any]]) -> bytes:
    """Arrays by name in one uncompressed body. The same arrays give the same bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:  # not np.savez, which writes the time of day into it
        for name, array in members.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), _array(np.asarray(array)))
    return file.getvalue()


def _array(values: NDArray[np.generic]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, values, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def _arrow(answer: StoredAnswer) -> bytes:
    """One column, `value`. The schema's metadata has the numbers and `axes` by name, and all facts as `answer`."""
    import pyarrow as pa  # noqa: PLC0415 - a start does not need it; `service.run.serve` imports it when it is over

    facts = _facts(answer.body)
    metadata = {name: orjson.dumps(facts[name]) for name in (*_NUMBERS, "axes")} | {"answer": orjson.dumps(facts)}
    table = pa.table({"value": pa.array(answer.values())}).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


ENCODERS: Final[Mapping[str, Callable[[StoredAnswer], bytes]]] = {
    NPY: lambda answer: _array(answer.values()),
    NPZ: _npz,
    ARROW: _arrow,
}
"""By media type."""

BINARY: Final = {"schema": {"type": "string", "format": "binary"}}
ANSWER: dict[int | str, dict[str, Any]] = {200: {"model": Answer, "content": dict.fromkeys(ENCODERS, BINARY)}}
