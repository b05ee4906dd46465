"""Reads of every role while the analyst's own batch is worked on: do they tell when that work ends?

The end of the work depends on data, the slots of the batch do not. So the batch is priced far above its work
(`loadtests.leaky_service`), and no answer is late. Only another clock could then tell of the work: a read that finds
the writer busy, or shares the processor with it.
"""

import selectors
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from statistics import fmean

from loadtests.batches import BROAD
from loadtests.neighbours import query
from loadtests.probes import Features, Probe, Side, encoded
from loadtests.wires import PeerConnection, Reply

QUERIES = 24
READS: dict[str, Sequence[str]] = {
    "stranger": ("/no-such-page", "/", "/openapi.json"),
    "analyst": ("/v1/datasets/{dataset}", "/v1/queries?limit=5"),
    "refused": ("/v1/me/budgets", "/v1/datasets/{dataset}/ledger"),
    "individual": ("/v1/me/budgets", "/v1/me/receipts?limit=5", "/v1/me/record/{dataset}"),
    "auditor": ("/v1/datasets/{dataset}/ledger?limit=5",),
}
"""Paths to read, by role. An analyst's reads have slots, unless they are refused."""

ANSWERED = {200, 303, 403, 404}


def reading_as(role: str) -> Callable[[Side], Features]:
    """A try: a batch, and until it is answered one read after the other by this role, of all its paths in turn."""

    def attempt(side: Side) -> Features:
        (asker,) = side.wires(1)
        reader = PeerConnection(side.url, side.keys[role])
        try:
            return _features(side, _beside(side, asker, reader, READS[role]))
        finally:
            reader.close()

    return attempt


def _beside(side: Side, asker: PeerConnection, reader: PeerConnection, paths: Sequence[str]) -> list[Reply]:
    """The answers to the reads that were sent before the batch was answered, in order."""
    entries = [{"idempotency_key": side.fresh_key(), "query": query(BROAD)} for _ in range(QUERIES)]
    path = f"/v1/datasets/{side.dataset}/queries/batch"
    turns = cycle(paths)
    replies: list[Reply] = []

    def read() -> None:
        reader.begin(reader.request("GET", next(turns).format(dataset=side.dataset)))

    with selectors.DefaultSelector() as selector:
        for wire in (asker, reader):
            selector.register(wire, selectors.EVENT_READ, wire)
        asker.begin(asker.request("POST", path, encoded({"queries": entries})))
        time.sleep(side.source.uniform(0, 0.01))
        read()
        while selector.get_map():
            for key, _ in selector.select():
                reply = key.data.advance()
                if reply is None:
                    continue
                if key.data is reader:
                    replies.append(reply)
                if key.data is reader and len(selector.get_map()) > 1:
                    read()
                else:
                    selector.unregister(key.data)
                if reply.status not in ANSWERED:
                    raise ValueError(f"{reply.status} {reply.body[:300].decode(errors='replace')}")
    return replies


def _features(side: Side, replies: Sequence[Reply]) -> Features:
    """The number of reads, their durations, and when the first slow and the first quick read ended."""
    took = [reply.last_ms for reply in replies]
    ended = [reply.sent_ns / 1e6 + reply.last_ms - replies[0].sent_ns / 1e6 for reply in replies]
    phases = [(reply.sent_ns / 1e6 + reply.first_ms) % max(side.slot_ms, 1) for reply in replies]
    usual = sorted(took)[len(took) // 2]
    return {
        "reads": float(len(took)),
        "first read ms": took[0],
        "mean read ms": fmean(took),
        "slowest read ms": max(took),
        "quickest read ms": min(took),
        "slow reads": float(sum(each > 1.5 * usual for each in took)),
        "last slow read ended ms": max(
            (end for end, each in zip(ended, took, strict=True) if each > usual), default=0.0
        ),
        "mean phase ms": fmean(phases),
        "largest phase ms": max(phases),
    }


SECOND_CLOCKS: Sequence[Probe] = tuple(
    Probe(name=f"reads as {role}", attempt=reading_as(role), is_batch=True) for role in READS
)
