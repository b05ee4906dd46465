"""The OpenAPI document: FastAPI writes it; here is added what the routes read and answer by themselves."""

from functools import cache
from typing import Any

from fastapi import FastAPI

from service.api.problems import MEDIA_TYPE
from service.query.language import Query

_SCHEMAS = "#/components/schemas/{model}"

REFUSED: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A refusal (RFC 9457).",
        "content": {MEDIA_TYPE: {"schema": {"$ref": _SCHEMAS.format(model="Problem")}}},
    }
}


def describe(app: FastAPI) -> None:
    """Make `app.openapi` name the query language too, whose bodies FastAPI does not read."""
    generated = app.openapi

    @cache
    def described() -> dict[str, Any]:
        document = generated()
        query = Query.model_json_schema(by_alias=True, ref_template=_SCHEMAS)
        schemas = document["components"]["schemas"]
        for name, schema in {**query.pop("$defs", {}), "Query": query}.items():
            schemas.setdefault(name, schema)
        return document

    app.openapi = described  # type: ignore[method-assign]  # FastAPI's own way to extend the document
