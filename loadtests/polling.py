"""An analyst polls while an individual acts, or does not. With several workers the act reaches the others later.

In the world without the act, the client requests the liveness page at the same moment, so that the request alone makes
no difference.
"""

import random
import selectors
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import httpx

from loadtests.neighbours import COUNT, PEOPLE_TYPE, Person, individual_key, people
from loadtests.probes import Features, Side, instants
from loadtests.rig import Rig, arrow_bytes
from loadtests.wires import PeerConnection, Reply

WINDOW_S = 0.6
ACT_WITHIN_S = (0.05, 0.2)
SETTLING_S = 0.05

Attempt = Callable[[Side, bool], Features]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """The request of one person's try: its API key, and everything but its head."""

    key: str
    method: str
    path: str
    body: bytes = b""
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """One kind of act. `deeds` makes a number of them, each by another person."""

    name: str
    deeds: Callable[[Rig, str, int], Sequence[Deed]]


def pausing(rig: Rig, dataset: str, count: int) -> Sequence[Deed]:
    """Make requests by which each of `count` persons pauses once."""
    path = f"/v1/me/budgets/{dataset}/lower"
    keys = [individual_key(rig, dataset, f"p{n}") for n in range(count)]
    return [Deed(key=key, method="POST", path=path, body=b'{"pause":true}') for key in keys]


def joining(rig: Rig, dataset: str, count: int) -> Sequence[Deed]:
    """Make requests by which each of `count` persons joins by an upload of one row."""
    path, key = f"/v1/datasets/{dataset}/tables/people/rows", key_of(rig.curator)
    row = people(0, Person())
    others = [row.set_column(0, "person_id", [[f"new{n}"]]) for n in range(count)]
    return [
        Deed(key=key, method="POST", path=path, body=arrow_bytes(each), content_type=PEOPLE_TYPE) for each in others
    ]


def erasing(rig: Rig, dataset: str, count: int) -> Sequence[Deed]:
    """Make requests by which the curator erases each of `count` persons."""
    path, key = f"/v1/datasets/{dataset}/individuals", key_of(rig.curator)
    return [Deed(key=key, method="DELETE", path=f"{path}/p{count + n}") for n in range(count)]


ACTS: Sequence[Acting] = (
    Acting(name="pausing", deeds=pausing),
    Acting(name="joining", deeds=joining),
    Acting(name="erasing", deeds=erasing),
)


def polled(deeds: Sequence[Deed]) -> Attempt:
    """A try: poll for a while, and let the next person act meanwhile, or not."""
    left = list(deeds)

    def attempt(side: Side, is_acting: bool) -> Features:  # noqa: FBT001 - the world
        deed = left.pop() if is_acting else None
        with_key = PeerConnection(side.url, deeds[0].key if deed is None else deed.key)
        if deed is None:
            request = with_key.request("GET", "/livez")
        else:
            request = with_key.request(deed.method, deed.path, deed.body, {"Content-Type": deed.content_type})
        try:
            return _watched(side, with_key, request, side.source)
        finally:
            with_key.close()
            time.sleep(SETTLING_S)

    return attempt


def _watched(side: Side, other: PeerConnection, deed: bytes, source: random.Random) -> Features:
    """Poll on four connections, two with counts and two with free reads, and send the deed on another one."""
    wires = side.wires(4)
    counts = wires[:2]
    taken: dict[str, list[Reply]] = {"count": [], "read": []}

    def poll(wire: PeerConnection) -> bytes:
        is_count = wire in counts
        return side.post(wire, COUNT) if is_count else wire.request("GET", f"/v1/datasets/{side.dataset}")

    started = time.monotonic()
    act_at, until = started + source.uniform(*ACT_WITHIN_S), started + WINDOW_S
    is_sent = False
    with selectors.DefaultSelector() as selector:
        for wire in wires:
            wire.begin(poll(wire))
            selector.register(wire, selectors.EVENT_READ, wire)
        while selector.get_map():
            now = time.monotonic()
            if not is_sent and now >= act_at:
                other.begin(deed)
                selector.register(other, selectors.EVENT_READ, other)
                is_sent = True
            for key, _ in selector.select(None if is_sent else act_at - now):
                reply = key.data.advance()
                if reply is None:
                    continue
                if key.data is not other:
                    taken["count" if key.data in counts else "read"].append(reply)
                if key.data is not other and time.monotonic() < until:
                    key.data.begin(poll(key.data))
                else:
                    selector.unregister(key.data)
                _refuse_refusals(reply)
    return _features(side, taken)


def _features(side: Side, taken: Mapping[str, Sequence[Reply]]) -> Features:
    features: dict[str, float] = {}
    for name, replies in taken.items():
        ordered = sorted(reply.last_ms for reply in replies)
        each = [instants(side, reply, name) for reply in replies]
        features |= {
            f"{name}s polled": float(len(ordered)),
            f"slowest {name} ms": ordered[-1],
            f"second slowest {name} ms": ordered[-2],
            **{f"mean {feature}": fmean(one[feature] for one in each) for feature in each[0]},
            **{f"largest {feature}": max(one[feature] for one in each) for feature in each[0]},
        }
    return features


def _refuse_refusals(reply: Reply) -> None:
    if reply.status not in {200, 204}:
        raise ValueError(f"{reply.status} {reply.body[:300].decode(errors='replace')}")


def key_of(client: httpx.Client) -> str:
    """The API key of a client."""
    return str(client.headers["Authorization"]).removeprefix("Bearer ")
