"""Queries under the clip rule, one at a time and in batches: what their time tells of who has anything left.

Where nobody has anything left every vector is shortened to nothing, and where everybody can pay none is. The public
price covers both, and an answer leaves when the time of its price is over.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from loadtests.batches import BROAD, batch
from loadtests.neighbours import SUM
from loadtests.probes import Features, Probe, Side, answered, instants

_CLIP: Final[dict[str, Any]] = {"rule": "clip", "noise": {"sigma": 1e3}}  # its grid is fine, and has a largest sigma
_COUNT: Final[dict[str, Any]] = {**BROAD, **_CLIP}
_SUM: Final[dict[str, Any]] = {**SUM, **_CLIP}
QUERIES: Final = 24


def answering(question: dict[str, Any]) -> Callable[[Side], Features]:
    """A try of a single query. Raises Refused, since the time of a refusal would say nothing."""

    def attempt(side: Side) -> Features:
        (wire,) = side.wires(1)
        reply = wire.exchange(side.post(wire, question))
        answered(reply)
        return instants(side, reply)

    return attempt


SHORTENING: Sequence[Probe] = (
    Probe(name="clip count", attempt=answering(_COUNT)),
    Probe(name="clip sum", attempt=answering(_SUM)),
    Probe(name=f"{QUERIES} clip counts", attempt=batch(_COUNT, queries_max=QUERIES), is_batch=True),
    Probe(name=f"{QUERIES} clip sums", attempt=batch(_SUM, queries_max=QUERIES), is_batch=True),
)
