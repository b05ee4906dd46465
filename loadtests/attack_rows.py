"""Attacks on what principals share, each at full size: work that begins before it is admitted, and shared places."""

import asyncio
import gzip
import io
import json
import zipfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Final
from uuid import uuid4

import httpx
import numpy as np

from loadtests.others import NUMBER
from loadtests.raw_http import Address, Cut, Wire, request_of
from loadtests.rig import Rig, arrow_bytes, client, people

ATTACKED: Final = "d"
OTHER: Final = "other"
CROWD: Final = "crowd"
MODELS: Final = "models"
CROWD_PEOPLE: Final = 2_000_000
CLASSES: Final = 200
LEDGER_ENTRIES: Final = 20_000
_BATCH: Final = 100
_WITHIN_S: Final = 120.0
_REFUSED: Final = frozenset({"413", "422", "429", "507"})
_FINE: Final = frozenset({"200", "201", "202", "204", "401"})


@dataclass(kw_only=True, eq=False)
class Ground:
    """A service with an attacked dataset, another one, and the principals of both."""

    rig: Rig
    address: Address
    size: float
    """The size of the attacks as a share of the full size."""
    told: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Make the datasets, and the principals."""
        for name in (ATTACKED, OTHER):
            self.register(name, {"age": {"type": "integer", "lower": 0, "upper": 120}})
            rows = "id,age\n" + "".join(f"p{n},{n}\n" for n in range(100))
            self.upload(name, rows.encode(), "text/csv")
        self.curator = self.key("curator", ATTACKED)
        self.other_curator = self.key("curator", OTHER)
        self.analyst = self.key("analyst", ATTACKED)
        self.other_analyst = self.key("analyst", OTHER)
        self.individual = self.key("individual", ATTACKED, individual="p7")

    def register(self, name: str, columns: dict[str, Any], *, rho: str = "1000", capacity: int = 100_000) -> None:
        """Make a dataset that has only a table of individuals."""
        tables = {"people": {"kind": "individuals", "key": "id", "columns": columns}}
        body = {"name": name, "guarantee": {"rho": rho}, "capacity": capacity, "tables": tables}
        self.rig.curator.post("/v1/datasets", json=body).raise_for_status()

    def upload(self, name: str, rows: bytes, content_type: str) -> None:
        """Append rows."""
        path = f"/v1/datasets/{name}/tables/people/rows"
        self.rig.curator.post(path, content=rows, headers={"Content-Type": content_type}).raise_for_status()

    def key(self, role: str, dataset: str, **more: str) -> str:
        """A new principal's key."""
        wish = {"role": role, "name": f"{role}-{dataset}", "dataset": dataset, **more}
        made = self.rig.curator.post("/v1/principals", json=wish).raise_for_status()
        return str(made.json()["key"])

    def scaled(self, number: int) -> int:
        """A number at this size, given its value at full size; 1 at least."""
        return max(int(number * self.size), 1)

    async def at_once(self, requests: Iterable[bytes]) -> None:
        """Send these requests together, each on its own connection, and note the replies."""
        async with asyncio.TaskGroup() as group:
            for request in requests:
                group.create_task(self._send(request))

    async def _send(self, request: bytes) -> None:
        try:
            wire = await Wire.to(self.address)
        except Cut:
            self.told["no connection"] += 1
            return
        try:
            reply = await wire.ask(request, within_s=_WITHIN_S)
        except Cut:
            self.told["cut"] += 1
        else:
            self.note(reply.status, reply.body)
        wire.reset()

    def note(self, status: int, body: bytes) -> None:
        """Note a status, and the slug of a problem."""
        slug = ""
        if status >= httpx.codes.BAD_REQUEST and body.startswith(b"{"):
            slug = " " + str(json.loads(body).get("type", "")).rpartition(":")[2]
        self.told[f"{status}{slug}"] += 1

    @cached_property
    def crowd(self) -> str:
        """The key of a curator of a dataset of many people, which is made at the first use."""
        count = self.scaled(CROWD_PEOPLE)
        columns = {"age": {"type": "integer", "lower": 0, "upper": 120}, "country": {"type": "category", "size": 50}}
        tables = {"people": {"kind": "individuals", "key": "person_id", "columns": columns}}
        body = {"name": CROWD, "guarantee": {"rho": "1000"}, "capacity": 2 * count, "tables": tables}
        self.rig.curator.post("/v1/datasets", json=body).raise_for_status()
        self.upload(CROWD, arrow_bytes(people(count // 2)), "application/vnd.apache.arrow.stream")
        return self.key("curator", CROWD)

    @cached_property
    def long_ledger(self) -> str:
        """The key of an auditor of the attacked dataset, whose ledger is made long at the first use."""
        query = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 5000}, "reuse": False}
        with client(self.rig.url, self.analyst) as analyst:
            for first in range(0, self.scaled(LEDGER_ENTRIES), _BATCH):
                keys = [f"ledger-{number}" for number in range(first, first + _BATCH)]
                entries = [{"idempotency_key": key, "query": query} for key in keys]
                path = f"/v1/datasets/{ATTACKED}/queries/batch"
                analyst.post(path, json={"queries": entries}).raise_for_status()
        return self.key("auditor", ATTACKED)

    @cached_property
    def models(self) -> str:
        """The key of an analyst of a dataset whose gradients have many parameters, made at the first use."""
        classes = {"type": "category", "size": CLASSES}
        self.register(MODELS, {"label": classes, "item": classes}, capacity=100)
        rows = "id,label,item\n" + "".join(f"p{n},{n % CLASSES},{n % CLASSES}\n" for n in range(50))
        self.upload(MODELS, rows.encode(), "text/csv")
        return self.key("analyst", MODELS)


Attack = Callable[[Ground], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One attack, the preparation that it needs, and the refusals that it must get."""

    attack: Attack
    prepare: Callable[[Ground], object] = lambda _: None
    must_refuse: bool = True
    """Some of the attack must be refused. The rest may be done, as long as others do not wait for it."""
    is_repeated: bool = True
    may_grow: bool = False
    """The attack stores rows, which stay in memory."""

    def complaints(self, told: Counter[str]) -> list[str]:
        """Replies that the attacker must not get."""
        wrong = [f"{number} told {text}" for text, number in told.items() if text[:3] not in _REFUSED | _FINE]
        if self.must_refuse and not any(text[:3] in _REFUSED for text in told):
            wrong.append("nothing was refused")
        return wrong


def _repeated(item: bytes, size: int) -> bytes:
    return b"[" + b",".join([item] * size) + b"]"


async def _ones(ground: Ground) -> None:
    """Send a list of numbers, 4 MB, where keys of individuals are expected."""
    body = _repeated(b"1", ground.scaled(2**21))
    path = f"/v1/datasets/{ATTACKED}/individuals/keys"
    await ground.at_once([request_of("POST", path, ground.curator, body=body)])


async def _unknown_items(ground: Ground) -> None:
    """Send a query of 252 KB with 28,000 unknown items, over 40 connections."""
    query = {"version": 1, "select": [{"x": {}}] * 28_000, "noise": {"sigma": 20}}
    body, path = json.dumps(query, separators=(",", ":")).encode(), f"/v1/datasets/{ATTACKED}/queries"
    keys = [f"Idempotency-Key: unknown-{number}\r\n" for number in range(ground.scaled(40))]
    await ground.at_once(request_of("POST", path, ground.analyst, body=body, more=key) for key in keys)


async def _unknown_previews(ground: Ground) -> None:
    """Ask for previews of a query with 28,000 unknown items, and as a curator for forecasts of it."""
    query = {"version": 1, "select": [{"x": {}}] * 28_000, "noise": {"sigma": 20}}
    body, base = json.dumps(query, separators=(",", ":")).encode(), f"/v1/datasets/{ATTACKED}"
    preview = request_of("POST", f"{base}/queries/preview", ground.analyst, body=body)
    forecast = request_of("POST", f"{base}/forecast", ground.curator, body=body)
    await ground.at_once([preview, forecast] * ground.scaled(20))


async def _unknown_members(ground: Ground) -> None:
    """Send 24,500 unknown members, 240 KB, as an individual over 8 connections, five times."""
    body = json.dumps({f"k{number}": 1 for number in range(20_000)}, separators=(",", ":")).encode()
    request = request_of("POST", f"/v1/me/budgets/{ATTACKED}/lower", ground.individual, body=body)
    for _ in range(ground.scaled(5)):
        await ground.at_once([request] * 8)


async def _resumes(ground: Ground) -> None:
    """Send 1,500 acts of one individual at once, which change nothing."""
    request = request_of("POST", f"/v1/me/budgets/{ATTACKED}/resume", ground.individual)
    await ground.at_once([request] * ground.scaled(1500))


async def _corrections(ground: Ground) -> None:
    """Upload 2,000,000 rows, and send 45 corrections that wait for the upload."""
    sending = asyncio.create_task(ground.at_once([_crowd_upload(ground)]))
    await asyncio.sleep(1.0)
    corrections = [correction(CROWD, ground.crowd, "p9", number) for number in range(45)]
    await asyncio.gather(sending, ground.at_once(corrections))


@cache
def _crowd_upload(ground: Ground) -> bytes:
    count = ground.scaled(CROWD_PEOPLE)
    rows = arrow_bytes(people(2 * count).slice(count, count))
    path = f"/v1/datasets/{CROWD}/tables/people/rows"
    request = request_of("POST", path, ground.crowd, body=rows)
    return request.replace(b"application/json", b"application/vnd.apache.arrow.stream")


def correction(dataset: str, key: str, individual: str, age: int) -> bytes:
    """The request for a correction of one record."""
    body = json.dumps({"age": age}).encode()
    return request_of("PATCH", f"/v1/datasets/{dataset}/individual?individual={individual}", key, body=body)


async def _many_keys(ground: Ground) -> None:
    """Send 8 requests for the keys of 59,000 individuals each."""
    count = ground.scaled(59_000)
    bodies = [json.dumps([f"p{n}" for n in range(at * count, (at + 1) * count)]).encode() for at in range(8)]
    path = f"/v1/datasets/{CROWD}/individuals/keys"
    await ground.at_once(request_of("POST", path, ground.crowd, body=body) for body in bodies)


async def _searches(ground: Ground) -> None:
    """Search a long ledger 40 times as one auditor, for words that match nothing."""
    path = f"/v1/datasets/{ATTACKED}/ledger?search=nothing%20has%20these%20words"
    await ground.at_once([request_of("GET", path, ground.long_ledger)] * 40)


async def _bombs(ground: Ground) -> None:
    """Send 8 uploads of 1 MB of gzip, each of which unpacks to 1 GB."""
    await ground.at_once([_bomb(ground)] * 8)


@cache
def _bomb(ground: Ground) -> bytes:
    body = gzip.compress(b"id,age\n" + b"\n" * ground.scaled(10**9), compresslevel=6)
    path = f"/v1/datasets/{ATTACKED}/tables/people/rows"
    request = request_of("POST", path, ground.curator, body=body, more="Content-Encoding: gzip\r\n")
    return request.replace(b"application/json", b"text/csv")


async def _parameters(ground: Ground) -> None:
    """Ask for 200 gradients, each at 320 KB of new parameters and with so much noise that it costs nothing."""
    model = {"loss": "softmax", "target": "label", "features": [{"one_hot": "item"}], "parameters": "@theta"}
    query = {"version": 1, "select": [{"gradient": model}], "noise": {"sigma": 8000}}
    for number in range(ground.scaled(200)):
        theta = np.full((CLASSES, CLASSES), float(number + 1))
        sink = io.BytesIO()
        np.savez(sink, query=np.array(json.dumps(query)), theta=theta)
        key = f"Idempotency-Key: gradient-{number}\r\n"
        path = f"/v1/datasets/{MODELS}/queries"
        request = request_of("POST", path, ground.models, body=sink.getvalue(), more=key)
        await ground.at_once([request.replace(b"application/json", b"application/x-npz")])


async def _directories(ground: Ground) -> None:
    """Send 16 npz with directories of 80,000 entries, the most for which their bytes have room."""
    body, path = _directory(ground), f"/v1/datasets/{ATTACKED}/queries"
    keys = [f"Idempotency-Key: directory-{number}\r\n" for number in range(16)]
    requests = [request_of("POST", path, ground.analyst, body=body, more=key) for key in keys]
    await ground.at_once(request.replace(b"application/json", b"application/x-npz") for request in requests)


@cache
def _directory(ground: Ground) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for number in range(ground.scaled(80_000)):
            archive.writestr(f"{number:x}", b"")
    return sink.getvalue()


async def _unknown_keys(ground: Ground) -> None:
    """Open 3,000 connections, each with a key of valid form and a wrong secret."""
    known = ground.analyst[:-6]
    wrong = [f"{known}{number:06d}" for number in range(ground.scaled(3000))]
    await ground.at_once(request_of("GET", "/v1/session", key) for key in wrong)


async def _descriptions(ground: Ground) -> None:
    """Ask as strangers over 20 connections for the description of the API, ten times."""
    for _ in range(ground.scaled(10)):
        await ground.at_once([request_of("GET", "/openapi.json", None)] * 20)


async def _streams(ground: Ground) -> None:
    """Open 32 event streams of one curator together, then a stream of another curator, which must bring an event."""
    wires = [await _stream(ground, ATTACKED, ground.curator) for _ in range(32)]
    other = await _stream(ground, OTHER, ground.other_curator, is_attacker=False)
    for wire in (*wires, other):
        wire.reset()


async def _stream(ground: Ground, dataset: str, key: str, *, is_attacker: bool = True) -> Wire:
    wire = await Wire.to(ground.address)
    wire.writer.write(request_of("GET", f"/v1/datasets/{dataset}/events?seconds=30", key))
    came = b""
    try:
        async with asyncio.timeout(10):
            came = await wire.reader.readuntil(b"\r\n\r\n")
            came += await wire.reader.read(2**12)
    except (OSError, EOFError, TimeoutError):
        ground.told["cut"] += 1
        return wire
    status = int(came[9:12])
    if is_attacker:
        ground.note(status, came.partition(b"\r\n\r\n")[2])
    elif b"sequence" not in came:
        ground.told["500 another curator got no event"] += 1
    return wire


ROWS: Final[dict[str, Row]] = {
    "ones": Row(attack=_ones),
    "unknown-items": Row(attack=_unknown_items),
    "unknown-previews": Row(attack=_unknown_previews),
    "unknown-members": Row(attack=_unknown_members),
    "resumes": Row(attack=_resumes),
    "corrections": Row(attack=_corrections, prepare=_crowd_upload, must_refuse=False, is_repeated=False, may_grow=True),
    "many-keys": Row(attack=_many_keys, prepare=lambda ground: ground.crowd, must_refuse=False),
    "searches": Row(attack=_searches, prepare=lambda ground: ground.long_ledger, must_refuse=False),
    "bombs": Row(attack=_bombs, prepare=_bomb),
    "parameters": Row(attack=_parameters, prepare=lambda ground: ground.models),
    "directories": Row(attack=_directories, prepare=_directory),
    "unknown-keys": Row(attack=_unknown_keys, must_refuse=False),
    "descriptions": Row(attack=_descriptions, must_refuse=False),
    "streams": Row(attack=_streams),
}


def requests_of_others(ground: Ground) -> dict[str, bytes]:
    """Ordinary requests of others: an analyst of another dataset, probes, and the sign-in page."""
    query = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 5000}, "reuse": False}
    query |= {"where": {"eq": [{"col": "age"}, 7]}}
    body, path = json.dumps(query).encode(), f"/v1/datasets/{OTHER}/queries"

    key = f"Idempotency-Key: {uuid4().hex}-{NUMBER.decode()}\r\n"
    count = request_of("POST", path, ground.other_analyst, body=body, more=key)
    plain: Sequence[str] = ("/livez", "/readyz", "/sign-in")
    return {"another analyst": count} | {each: request_of("GET", each, None) for each in plain}
