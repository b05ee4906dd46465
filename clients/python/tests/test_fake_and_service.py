"""The fake and the service: the same queries, and the same refusals, warnings and public facts from both."""

import asyncio
import json
from collections import Counter
from typing import Any, Final

import httpx

from service.api.app import create_app
from service.workflows.datasets import Registration
from sparing.testing import FakeService
from tests.api.world import client_of, empty_replica
from tests.golden.drawing import MONITORED, PURE, drawn
from tests.golden.queries import ACCOUNTINGS
from tests.laws.node_world import TABLES

QUERIES: Final = 240
CAPACITY: Final = 2**16
BUDGET: Final = {name: ({"epsilon": 3} if name == PURE else {"rho": "0.05"}) for name in ACCOUNTINGS}
MONITOR: Final = {"rho": "0.001", "ticks": 64, "share": 0.1}
JSON: Final = {"Content-Type": "application/json"}
"""Small enough for the longest vectors of many queries to be beyond the smallest limit."""
OF_ONE_MACHINE: Final = ("public_cost", "request_id")


async def of_the_service(queries: list[tuple[str, bytes]]) -> list[tuple[int, Any]]:
    """Status and body of each preview by the service."""
    replica = empty_replica()
    app = create_app(replica, upload_bytes_max=0)
    for name, accounting in ACCOUNTINGS.items():
        stated = {"name": slug(name), "guarantee": BUDGET[name], "capacity": CAPACITY, "tables": TABLES}
        stated |= {"accounting": accounting, "limit_floor_rho": "0.04"} | monitor_of(name)
        replica.curators.register(Registration.model_validate(stated))
    _, key = replica.principals.create(role="analyst", name="ana")
    headers = JSON | {"Authorization": f"Bearer {key}"}
    async with client_of(app) as client:
        found = [await client.post(path_of(name), content=body, headers=headers) for name, body in queries]
    replica.close()
    return [(each.status_code, each.json()) for each in found]


def of_the_fake(queries: list[tuple[str, bytes]]) -> list[tuple[int, Any]]:
    """Status and body of each preview by the fake."""
    fake = FakeService()
    for name, accounting in ACCOUNTINGS.items():
        stated: dict[str, Any] = {"accounting": accounting, "limit_floor_rho": "0.04"} | monitor_of(name)
        fake.add_dataset(slug(name), TABLES, capacity=CAPACITY, **BUDGET[name], **stated)
    headers = JSON | {"Authorization": f"Bearer {fake.api_key}"}
    with httpx.Client(transport=fake.transport, base_url="http://fake") as client:
        found = [client.post(path_of(name), content=body, headers=headers) for name, body in queries]
    return [(each.status_code, each.json()) for each in found]


def slug(name: str) -> str:
    """The name of a dataset."""
    return name.replace(" ", "-")


def monitor_of(name: str) -> dict[str, Any]:
    """The monitor of a dataset, if it has one."""
    return {"monitor": MONITOR} if name == MONITORED else {}


def path_of(name: str) -> str:
    """The address of a preview."""
    return f"/v1/datasets/{slug(name)}/queries/preview"


def compared(outcome: tuple[int, Any]) -> tuple[int, Any]:
    """The outcome without what is of one machine or of an account."""
    status, body = outcome
    return status, {name: fact for name, fact in body.items() if name not in OF_ONE_MACHINE}


def test_the_fake_answers_what_the_service_answers() -> None:
    """For every item, noise and accounting both refuse alike, in the same words, warn alike, and state the same."""
    queries = [(name, json.dumps(document).encode()) for name, document in map(drawn, range(QUERIES))]
    real, fake = asyncio.run(of_the_service(queries)), of_the_fake(queries)
    for asked, one, other in zip(queries, real, fake, strict=True):
        assert compared(one) == compared(other), asked
    seen = Counter(status for status, _ in real)
    warned = sum(bool(body.get("warnings")) for _, body in real)
    assert min(seen[200], seen[422]) > QUERIES // 5
    assert warned > QUERIES // 20
