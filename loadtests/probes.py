"""One try of an attacker, and its features: instants of answers, and their counts.

Released values are left out, because they are the mechanism's own output.
"""

import json
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loadtests.neighbours import COUNT, EVENTS, SUM, query
from loadtests.wires import PeerConnection, Reply, together

Features = Mapping[str, float]

CONNECTIONS = 4
CROWD = 64
LISTED = 20


@dataclass(kw_only=True)
class Side:
    """One world as the attacker sees it: a dataset, a key for it, and connections."""

    url: str
    dataset: str
    key: str
    slot_ms: float
    planted_ms: float = 0.0
    keys: Mapping[str, str] = field(default_factory=dict)  # of other roles, by role
    source: random.Random = field(default_factory=random.Random)
    _wires: list[PeerConnection] = field(default_factory=list)
    _asked: int = 0
    _affordable: dict[bytes, int] = field(default_factory=dict)

    def wires(self, count: int) -> list[PeerConnection]:
        """Take `count` connections of this side in random order.

        With several workers each connection belongs to one of them.
        """
        while len(self._wires) < max(count, CONNECTIONS):
            self._wires.append(PeerConnection(self.url, self.key))
        sample = self.source.sample(self._wires, count)
        for wire in sample:
            wire.refresh()
        return sample

    def close(self) -> None:
        """Disconnect."""
        for wire in self._wires:
            wire.close()

    def post(self, wire: PeerConnection, question: dict[str, Any], *, key: str | None = None) -> bytes:
        """The bytes of a request with a query, under a new idempotency key or `key`."""
        headers = {"Idempotency-Key": key or self.fresh_key()}
        return wire.request("POST", f"/v1/datasets/{self.dataset}/queries", encoded(query(question)), headers)

    def affordable(self, question: dict[str, Any], work_ms: float) -> int:
        """How many of these queries take `work_ms` together by their public cost, at least one."""
        known = encoded(question)
        if known not in self._affordable:
            (wire,) = self.wires(1)
            path = f"/v1/datasets/{self.dataset}/queries/preview"
            cost = json.loads(answered(wire.exchange(wire.request("POST", path, known))).body).get("public_cost", {})
            self._affordable[known] = max(int(work_ms / cost.get("time_ms", 1.0)), 1)
        return self._affordable[known]

    def fresh_key(self) -> str:
        """An unused idempotency key."""
        self._asked += 1
        return f"q{self._asked}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """The steps before all tries of a side, and the steps of each try."""

    name: str
    attempt: Callable[[Side], Features]
    prepare: Callable[[Side], None] = lambda _: None
    is_heavy: bool = False
    is_batch: bool = False


class Refused(Exception):
    """A query was refused. Durations of refusals would say nothing."""


def encoded(document: object) -> bytes:
    """Compact JSON."""
    return json.dumps(document, separators=(",", ":")).encode()


def instants(side: Side, reply: Reply, name: str = "answer") -> Features:
    """The features of one answer.

    After a few requests an attacker knows where slots begin on the server's clock; here both share a clock. So two
    features do not depend on the random phase: the number of slots from the request to its answer, and how far into a
    slot the answer comes, to a fraction of a millisecond.
    """
    first_ms, last_ms = reply.first_ms + side.planted_ms, reply.last_ms + side.planted_ms
    features = {f"{name} first ms": first_ms, f"{name} last ms": last_ms, f"{name} status": float(reply.status)}
    if side.slot_ms > 0:
        sent_ms = reply.sent_ns / 1e6
        features[f"{name} slots"] = (sent_ms + first_ms) // side.slot_ms - sent_ms // side.slot_ms
        features[f"{name} phase ms"] = (sent_ms + first_ms) % side.slot_ms
        features[f"{name} last phase ms"] = (sent_ms + last_ms) % side.slot_ms
    return features


def answered(reply: Reply) -> Reply:
    """The reply, if it is an answer. Raises Refused."""
    if reply.status != 200:
        raise Refused(f"{reply.status} {reply.body[:300].decode(errors='replace')}")
    return reply


def sequence_of(reply: Reply) -> int:
    """The sequence of the release that an answer shows."""
    return int(json.loads(answered(reply).body)["sequence"])


# One request


def asking(question: dict[str, Any]) -> Callable[[Side], Features]:
    """A try of a single query."""

    def attempt(side: Side) -> Features:
        (wire,) = side.wires(1)
        return instants(side, wire.exchange(side.post(wire, question)))

    return attempt


def reading(path: str) -> Callable[[Side], Features]:
    """A try of a free read."""

    def attempt(side: Side) -> Features:
        (wire,) = side.wires(1)
        reply = wire.exchange(wire.request("GET", path.format(dataset=side.dataset)))
        return instants(side, reply)

    return attempt


def preview(side: Side) -> Features:
    """Preview the sum."""
    (wire,) = side.wires(1)
    path = f"/v1/datasets/{side.dataset}/queries/preview"
    return instants(side, wire.exchange(wire.request("POST", path, encoded(query(SUM)))))


def ask_some(side: Side) -> None:
    """Ask as many queries as a listing shows, sums and counts of events in turn."""
    (wire,) = side.wires(1)
    for number in range(LISTED):
        answered(wire.exchange(side.post(wire, (SUM, EVENTS)[number % 2])))


def ask_once(side: Side) -> None:
    """Ask the query that will be repeated."""
    (wire,) = side.wires(1)
    answered(wire.exchange(side.post(wire, SUM, key="again")))


def retry(side: Side) -> Features:
    """Ask for the sum again under its first idempotency key."""
    (wire,) = side.wires(1)
    return instants(side, wire.exchange(side.post(wire, SUM, key="again")))


# Several


def beside(side: Side) -> Features:
    """Ask for a sum, and send a free read that arrives while the sum is worked on."""
    asker, reader = side.wires(2)
    requests = [side.post(asker, SUM), reader.request("GET", f"/v1/datasets/{side.dataset}")]
    answer, read = together([asker, reader], requests, pause_s=side.source.uniform(0, 0.005))
    return {**instants(side, answer), **instants(side, read, "read")}


def crowd(question: dict[str, Any]) -> Callable[[Side], Features]:
    """A try that asks one query on many connections at once."""

    def attempt(side: Side) -> Features:
        wires = side.wires(CROWD)
        replies = together(wires, [side.post(wire, question) for wire in wires])
        last = sorted(answered(reply).last_ms for reply in replies)
        each = [instants(side, reply) for reply in replies]
        means = {name: statistics.fmean(features[name] for features in each) for name in each[0]}
        return {
            **{f"mean {name}": value for name, value in means.items()},
            "first answer ms": last[0],
            "median answer ms": statistics.median(last),
            "last answer ms": last[-1],
            "distinct instants": float(len({round(each_ms / 2) for each_ms in last})),
        }

    return attempt


PROBES: Sequence[Probe] = (
    Probe(name="count", attempt=asking(COUNT)),
    Probe(name="sum", attempt=asking(SUM)),
    Probe(name="events", attempt=asking(EVENTS)),
    Probe(name="list", attempt=reading(f"/v1/queries?limit={LISTED}"), prepare=ask_some),
    Probe(name="retry", attempt=retry, prepare=ask_once),
    Probe(name="preview", attempt=preview),
    Probe(name="dataset", attempt=reading("/v1/datasets/{dataset}")),
    Probe(name="beside", attempt=beside),
    Probe(name="crowd", attempt=crowd(COUNT), is_heavy=True),
    Probe(name="crowd of sums", attempt=crowd(SUM), is_heavy=True),
)


def pause_before(source: random.Random, slot_ms: float) -> None:
    """Wait for a part of a slot that does not depend on the world."""
    time.sleep(source.uniform(0, max(slot_ms, 2.0)) / 1000)
