"""The forecast for curators: how many more queries of one kind until the individuals it touches drop out.

Theory: each query of the kind charges individual i the same c_i, so that i takes part in floor(remaining_i / c_i) more
of them. The active share after k queries is the share of touched individuals for whom this number is above k. Other
queries in between make the number smaller. A query that counts individuals with at least r left takes in i only while i
has r left before the query, so that r - c_i stay unspent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np

from service.arrays import Integers
from service.core.charge import rho_of_units
from service.ledger.model.views import LedgerSequence, NoiseSigma, QueryWords, WorstCaseRho
from service.query.plan import Plan
from service.query.schema import doc
from service.reads.budget_summary import AllAccounts

DROPPED_SHARES: Final = (0.01, 0.1, 0.5)
QUERIES_MAX: Final = 1000
_EACH_MAX: Final = 20
_POINTS: Final = 40
"""The curve has a point for each number of queries below _EACH_MAX, and this many points beyond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveShare:
    """After `queries` more queries of the kind, `share` of the touched individuals can still pay for the next."""

    queries: Annotated[int, doc("How many more queries of the kind.")]
    share: Annotated[float, doc("The share of the touched individuals that can pay for one more, from 0 to 1.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedAfter:
    """How many more queries of the kind a share of the touched individuals can pay for at most."""

    share: Annotated[float, doc("The share of the touched individuals that has dropped out, from 0 to 1.")]
    queries: Annotated[int | None, doc("After how many more queries; null where that is beyond 1,000.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The future of one kind of query, if no other is asked."""

    sequence: LedgerSequence
    words: QueryWords
    sigma: NoiseSigma
    worst_case_rho: WorstCaseRho
    touched: Annotated[int, doc("How many individuals such a query touches: their vectors are not zero.")]
    active: Annotated[int, doc("How many of the touched individuals can pay for one such query now.")]
    curve: Annotated[
        tuple[ActiveShare, ...], doc("The share that can still pay, after 0, 1, 2 and up to 1,000 more such queries.")
    ]
    dropped_after: Annotated[
        tuple[DroppedAfter, ...], doc("After how many such queries 1, 10 and 50 % have dropped out.")
    ]


def forecast(plan: Plan, words: str, charges: tuple[Integers, Integers], taken: AllAccounts) -> Forecast:
    """The forecast for a query, from all accounts and the `charges` of one such query: slots (k,) and units (k,)."""
    is_known = charges[0] < taken.present.size  # an upload between the two copies adds slots
    slots, units = (each[is_known] for each in charges)
    unspent = 0 if plan.layout.items[0].room_units is None else plan.layout.items[0].room_units - units
    payable = np.maximum(taken.remaining[slots] - unspent, 0)
    times = np.where((taken.paused | taken.dropped)[slots], 0, payable // np.maximum(units, 1))
    times = np.sort(np.minimum(times, QUERIES_MAX + 1))
    steps = np.union1d(np.arange(1, _EACH_MAX), np.geomspace(_EACH_MAX, QUERIES_MAX, _POINTS).astype(np.int64))
    # After k queries, those with times > k can pay for one more.
    shares = [(0, _share(times, 0)), *((int(step), _share(times, int(step))) for step in steps)]
    return Forecast(
        sequence=taken.seq,
        words=words,
        sigma=plan.noise.sigma,
        worst_case_rho=str(rho_of_units(plan.scale.worst_case_units)),
        touched=times.size,
        active=int(np.count_nonzero(times > 0)),
        curve=tuple(ActiveShare(queries=queries, share=share) for queries, share in shares if times.size),
        dropped_after=tuple(
            DroppedAfter(share=share, queries=_dropped_after(times, share)) for share in DROPPED_SHARES
        ),
    )


def _share(times: Integers, queries: int) -> float:
    """The share of individuals that can pay for more than `queries`; `times` (k,) ascending."""
    return 0.0 if times.size == 0 else float(1 - np.searchsorted(times, queries, side="right") / times.size)


def _dropped_after(times: Sequence[int] | Integers, share: float) -> int | None:
    """The least k such that at least `share` of the individuals cannot pay for more than k queries."""
    if len(times) == 0:
        return None
    place = max(int(np.ceil(share * len(times))) - 1, 0)
    return int(times[place]) if times[place] <= QUERIES_MAX else None
