"""The OpenAPI document against the service, by a tool of others: every operation, as every role and without a key."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.world import ROLES, World, build_world
from tests.rotation import TURN, times

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ALLOWED, STRANGE, FORBIDDEN = times(2, 12), 2, times(1, 2)
"""The number of requests of an operation: as a role that it is for, without a key, and as another role."""
UNHURRIED = settings(
    deadline=None, database=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
STREAM = "/v1/datasets/{dataset}/events"
"""Events without an end, or for so many seconds; the tool checks them by a keyword that OpenAPI 3.1 does not have."""

for media_type in ("application/vnd.apache.parquet", "application/vnd.apache.arrow.stream"):
    schemathesis.serializer.alias(media_type, "application/octet-stream")


@pytest.fixture(params=[*ROLES, "nobody"])
def asker(request: pytest.FixtureRequest) -> Iterator[tuple[World, str]]:
    """A world for each role, since requests change it."""
    world = build_world()
    yield world, request.param
    world.replica.close()


def test_every_operation_keeps_to_the_document(asker: tuple[World, str]) -> None:
    """No 5xx, and no status, media type, header or body that the document does not have, whatever is sent."""
    world, role = asker
    headers = {"Authorization": f"Bearer {world.keys[role]}"} if role != "nobody" else {}
    schema = schemathesis.openapi.from_asgi("/openapi.json", world.app)
    statuses: Counter[int] = Counter()
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        is_allowed = role in (operation.tags or [])
        count = ALLOWED if is_allowed else STRANGE if role == "nobody" else FORBIDDEN

        @seed(TURN)
        @settings(UNHURRIED, max_examples=count)
        @given(case=operation.as_strategy())
        def send(case: Any) -> None:
            is_stream = case.path == STREAM
            case.query = {**(case.query or {}), "seconds": 0} if is_stream else case.query
            response = case.call(headers=headers)
            statuses[response.status_code] += 1
            checks = [check for check in CHECKS if not is_stream or check is not response_schema_conformance]
            case.validate_response(response, checks=checks, headers=headers)

        send()
    assert statuses[401 if role == "nobody" else 403] > 0
    assert role == "nobody" or statuses[200] > 0
    assert sum(statuses.values()) > len(list(schema.get_all_operations()))
