"""The real service in memory and the client's fake, with the same datasets and rows, asked the same.

The real one has next to no noise: its first uniform number is so near to one that the Gaussian is below 0.004 sigma.
"""

import io
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from service.workflows.datasets import Registration
from service.workflows.replica import Replica
from sparing import APIStatusError, Client
from sparing._coordinates import by_coordinate
from sparing.testing import FakeService
from tests.api.world import answer_of, created_app, empty_replica

NOISE_MAX = 0.004
"""The largest noise of the quiet service, in sigma; and half a grid step for rounding."""
Rows = Mapping[str, list[dict[str, Any]]]
VOLATILE = {"id", "released_at", "request_id", "public_cost"}
"""Members that the fake makes up; of these the type is compared."""
_DAY = re.compile(r"released on \d{4}-\d\d-\d\d")


def quiet_entropy() -> Callable[[int], NDArray[np.uint64]]:
    """Words that differ, so that ids do, and are all next to 2^64 - 2^47."""
    counter = itertools.count()
    return lambda count: np.array([2**64 - 2**47 - 2**32 + next(counter) for _ in range(count)], dtype=np.uint64)


@dataclass(kw_only=True)
class Side:
    """One of the two services: its transport, its keys by name, and the documents of the last call."""

    transport: httpx.MockTransport
    keys: dict[str, str]
    replies: list[httpx.Response] = field(default_factory=list)

    def client(self, name: str) -> Client:
        """A client with one of the keys; it does not try again."""
        transport = httpx.MockTransport(self._recorded)
        return Client(
            base_url="http://sparing", api_key=self.keys[name], transport=transport, max_retries=0, environ={}
        )

    def raw(self, by: str, method: str, path: str, **options: Any) -> Any:
        """Status, media type and document of a request that the client would not send."""
        headers = {"Authorization": f"Bearer {self.keys[by]}", **options.pop("headers", {})}
        with httpx.Client(transport=self.transport, base_url="http://sparing") as client:
            reply = client.request(method, path, headers=headers, **options)
        return reply.status_code, reply.headers["Content-Type"], reply.json()

    def told(self, call: Callable[[Client], Any], *, by: str) -> list[Any]:
        """Status, media type and document of every reply that a call leads to."""
        self.replies.clear()
        with self.client(by) as client, suppress(APIStatusError):
            call(client)
        return [(each.status_code, each.headers["Content-Type"], each.json()) for each in self.replies]

    def _recorded(self, request: httpx.Request) -> httpx.Response:
        request.headers["Accept"] = "application/json"  # documents are compared, and not their binary forms
        reply = self.transport.handler(request)
        assert isinstance(reply, httpx.Response)
        self.replies.append(reply)
        return reply


@dataclass(frozen=True, kw_only=True)
class Twins:
    """Both services."""

    real: Side
    fake: Side
    service: FakeService

    def compare(self, call: Callable[[Client], Any], *, by: str = "analyst") -> list[Any]:
        """Ask both; their documents differ in what the fake makes up alone. Returns those of the fake."""
        real, fake = self.real.told(call, by=by), self.fake.told(call, by=by)
        assert len(real) > 0, "nothing was sent"
        found = [*differences(real, fake)]
        assert not found, found
        return fake

    def compare_raw(self, by: str, method: str, path: str, **options: Any) -> Any:
        """Compare both sides for a request that the client would not send."""
        real, fake = (side.raw(by, method, path, **options) for side in (self.real, self.fake))
        found = [*differences(real, fake)]
        assert not found, found
        return fake


@contextmanager
def twins(datasets: Mapping[str, tuple[Mapping[str, Any], Rows]], **guarantee: Any) -> Iterator[Twins]:
    """Both services with datasets of these tables and rows, a capacity of 1,000 and one guarantee.

    The keys are `analyst`, `one`, which is of the first dataset alone, `sparse`, with an allowance, and an unknown one.
    """
    replica = empty_replica(entropy=quiet_entropy())
    with FakeService() as service:
        for name, (tables, rows) in datasets.items():
            registered = {"name": name, "guarantee": guarantee, "capacity": 1000, "tables": tables}
            replica.curators.register(Registration.model_validate(registered))
            service.add_dataset(name, tables, rows=rows, capacity=1000, **guarantee)
            for table in sorted(rows, key=lambda each: tables[each]["kind"], reverse=True):  # individuals come first
                accept = tables[table]["columns"]
                replica.curators.append_rows(name, table, "application/x-ndjson", ndjson(rows[table]), accept=accept)
        first = next(iter(datasets))
        keys = {"analyst": service.api_key, "stranger": "no-key", "one": service.add_analyst(dataset=first)}
        keys["sparse"] = service.add_analyst(allowance_rho="0.002")
        app = created_app(replica)
        yield Twins(
            real=Side(
                transport=httpx.MockTransport(lambda request: answer_of(app, request)), keys=_keys(replica, first)
            ),
            fake=Side(transport=service.transport, keys=keys),
            service=service,
        )
    replica.close()


def ndjson(rows: list[dict[str, Any]]) -> io.BytesIO:
    """Rows as they are uploaded."""
    return io.BytesIO("\n".join(map(json.dumps, rows)).encode())


def differences(real: Any, fake: Any, place: str = "", *, spread: float = 0.0) -> Iterator[str]:
    """The places where two documents differ, but for ids, times and public costs; values but for quiet noise."""
    if isinstance(real, dict) and isinstance(fake, dict):
        yield from _of_members(real, fake, place)
    elif isinstance(real, list | tuple) and isinstance(fake, list | tuple):
        if len(real) != len(fake):
            yield f"{place}: {len(real)} are not {len(fake)}"
        for number, (one, other) in enumerate(zip(real, fake, strict=False)):
            yield from differences(one, other, f"{place}[{number}]", spread=spread)
    elif type(real) is not type(fake):
        yield f"{place}: {real!r} is of another type than {fake!r}"
    elif isinstance(real, str) and _DAY.sub("", real) == _DAY.sub("", fake):
        return
    elif real != fake and not (isinstance(real, int | float) and abs(real - fake) <= spread):
        yield f"{place}: {real!r} is not {fake!r}"


def _of_members(real: dict[str, Any], fake: dict[str, Any], place: str) -> Iterator[str]:
    if real.keys() != fake.keys():
        yield f"{place}: {sorted(real)} are not {sorted(fake)}"
    for name in real.keys() & fake.keys():
        one, other = (_types(each[name]) if name in VOLATILE else each[name] for each in (real, fake))
        if name == "values" and "axes" in real and len(one) == len(other):
            for number, noise in enumerate(_noise(real)):
                yield from differences(one[number], other[number], f"{place}.values[{number}]", spread=noise)
        elif name == "estimates" and "axes" in real:
            yield from differences(_unworked(one), _unworked(other), f"{place}.estimates")
        else:
            yield from differences(one, other, f"{place}.{name}")


def _unworked(estimates: dict[str, Any]) -> dict[str, Any]:
    """Estimates without the numbers, which are functions of the values."""
    return estimates | {"rows": [row["label"] for row in estimates["rows"]]}


def _noise(answer: dict[str, Any]) -> tuple[float, ...]:
    """The most quiet noise of each number, and half a step for rounding."""
    steps = [(sigma, grid) for sigma, grid in zip(_listed(answer["sigma"]), _listed(answer["grid"]), strict=True)]
    of_items = tuple(NOISE_MAX * sigma + grid / 2 for sigma, grid in steps)
    is_by_item = isinstance(answer["sigma"], list)
    return by_coordinate(of_items if is_by_item else of_items[0], answer["axes"], answer["dimension"])


def _listed(numbers: Any) -> list[float]:
    return numbers if isinstance(numbers, list) else [numbers]


def _types(value: Any) -> Any:
    """The names of the types in a member that is made up."""
    return (
        {name: type(each).__name__ for name, each in value.items()} if isinstance(value, dict) else [str(type(value))]
    )


def _keys(replica: Replica, first: str) -> dict[str, str]:
    keys = {"analyst": "", "one": first}
    made = {
        name: replica.principals.create(role="analyst", name=name, dataset=bound or None)[1]
        for name, bound in keys.items()
    }
    _, made["sparse"] = replica.principals.create(role="analyst", name="sparse", allowance_rho=Decimal("0.002"))
    return {**made, "stranger": "no-key"}
