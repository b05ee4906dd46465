"""The examples of the OpenAPI document: for each operation a request that works, and its response.

`openapi_examples.json` holds them by operation, in an order in which they can be sent one after the other;
`tests/api/test_openapi_examples.py` sends them, and compares the responses.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from service.api.openapi_schemas import Schema

__all__ = ["Example", "attach", "examples"]

Example = dict[str, Any]
"""The members, each where there is one: `parameters` by name, `request` and `response` by media type, `others`: further
requests, in JSON, by what they ask."""

_FILE: Final = Path(__file__).with_name("openapi_examples.json")
_JSON: Final = "application/json"


@cache
def examples() -> dict[str, Example]:
    """The examples by operation."""
    found: dict[str, Example] = json.loads(_FILE.read_text(encoding="utf-8"))
    return found


def attach(operation: Schema) -> None:
    """Add to an operation its example, if it has one."""
    example = examples().get(operation["operationId"], {})
    for parameter in operation.get("parameters", ()):
        if parameter["name"] in example.get("parameters", {}):
            parameter["example"] = example["parameters"][parameter["name"]]
    others = example.get("others", {})
    for media_type, value in example.get("request", {}).items():
        content = operation["requestBody"]["content"][media_type]
        if media_type == _JSON and others:
            content["examples"] = {summary: {"value": each} for summary, each in others.items()}
        else:
            content["example"] = value
    for media_type, value in example.get("response", {}).items():
        success(operation)["content"][media_type]["example"] = value


def success(operation: Schema) -> Schema:
    """The response of an operation that succeeds."""
    found: Schema = next(each for status, each in operation["responses"].items() if status.startswith("2"))
    return found
