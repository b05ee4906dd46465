"""Batches of one kind of query each: a batch multiplies the time that a single query would hide.

Each kind is asked of all people at once. Its time depends on who is touched, on who can pay, and on which way of the
engine the data admit.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from loadtests.neighbours import CODES, COUNT, HISTOGRAMS, SUM, SUMS, query
from loadtests.probes import Features, Probe, Side, answered, encoded, instants, sequence_of
from loadtests.wires import together

BATCH_MS = 2000.0
QUERIES_MAX = 256
LISTED_MAX = 20
"""How many queries with a list of half of CODES a batch has, so that its body is within the limit of 256 KiB."""

Query = dict[str, Any]
_COUNT_ITEM: list[Query] = [{"count": {}}]
_VISITS = {"from": "visits", "per_individual": {"l2_clip": 8.0}, "noise": {"sigma": 1e5}}
BROAD: Query = {"select": _COUNT_ITEM, "where": {"ge": [{"col": "age"}, 1]}}
LISTED: Query = {"select": _COUNT_ITEM, "where": {"in": [{"col": "code"}, list(range(0, CODES, 2))]}}
KINDS: Sequence[tuple[str, Query, int]] = (
    ("broad counts", BROAD, 40),
    ("broad counts", BROAD, 24),
    ("broad counts", BROAD, QUERIES_MAX),
    ("counts", COUNT, QUERIES_MAX),
    ("listed counts", LISTED, LISTED_MAX),
    ("sums", SUM, 24),
    ("sums of ages", {"select": [{"sum": {"column": "age"}}]}, 24),
    ("group counts", {"select": _COUNT_ITEM, "group_by": ["country"]}, 24),
    ("group sums", {"select": [{"sum": {"column": "age"}}], "group_by": ["country"]}, 24),
    ("histograms", {"select": [{"histogram": {"column": "age"}}]}, 24),
    ("event counts", {"select": _COUNT_ITEM, **_VISITS}, 24),
    ("event histograms", {"select": [{"histogram": {"column": "item"}}], **_VISITS}, 24),
    ("32 items", {**COUNT, "select": [*SUMS, *HISTOGRAMS[:5]]}, QUERIES_MAX),
    ("54 items", {**COUNT, "select": [*SUMS, *HISTOGRAMS]}, 160),
)


def batch(question: Query, *, queries_max: int) -> Callable[[Side], Features]:
    """A try of a batch of the same query, with a narrow count that is asked while the batch is worked on.

    The batch has `queries_max` queries, or fewer if these would take over BATCH_MS by their public cost.
    """
    document = query(question)

    def attempt(side: Side) -> Features:
        many, one = side.wires(2)
        queries = min(queries_max, side.affordable(document, BATCH_MS))
        entries = [{"idempotency_key": side.fresh_key(), "query": document} for _ in range(queries)]
        path = f"/v1/datasets/{side.dataset}/queries/batch"
        requests = [many.request("POST", path, encoded({"queries": entries})), side.post(one, COUNT)]
        whole, single = together([many, one], requests, pause_s=side.source.uniform(0.02, 0.2))
        answers = json.loads(answered(whole).body)["answers"]
        before = sum(answer.get("sequence", 0) < sequence_of(single) for answer in answers)
        refused = sum("sequence" not in answer for answer in answers)
        places = {"answers before the count": float(before), "refused": float(refused)}
        return {**_few(instants(side, whole), "answer"), **_few(instants(side, single, "count"), "count"), **places}

    return attempt


def _few(features: Features, name: str) -> Features:
    """The features that late work can shift. From a few features, a small number of tries chooses the right one."""
    kept = (f"{name} last ms", f"{name} slots", f"{name} phase ms")
    return {feature: features[feature] for feature in kept if feature in features}


BATCHES: Sequence[Probe] = tuple(
    Probe(name=f"{queries} {name}", attempt=batch(question, queries_max=queries), is_batch=True)
    for name, question, queries in KINDS
)
