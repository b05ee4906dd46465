"""The reference of the HTTP interface and of the query language, from the document that the service itself serves."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any, Final, cast

from clients.guide.schemas import Words, anchor_of, left_out, table, types_within
from service.api.app import create_app
from service.workflows.replica import Replica

__all__ = ["PARTS", "document"]

Part = dict[str, Any]

_LANGUAGE: Final = ("Query", "Schema")
_TITLES: Final = {
    "curator": "Curators",
    "analyst": "Analysts",
    "individual": "Individuals",
    "auditor": "Auditors",
    "ops": "Probes",
}
_PLACES: Final = {"path": "path", "query": "query string", "header": "header"}
_REFUSED: Final = 400


@cache
def document() -> Part:
    """The OpenAPI document of this version. It depends on the code alone, so that no running replica is needed."""
    replica = cast("Replica", SimpleNamespace(ownership=None))
    return create_app(replica, upload_bytes_max=0).openapi()


def _schemas() -> Part:
    found: Part = document()["components"]["schemas"]
    return found


@cache
def _words() -> Words:
    language = types_within(_schemas(), *_LANGUAGE)
    return Words({name: "query-language.md" if name in language else "http.md" for name in _schemas()})


def _language() -> str:
    """The types of the query language and of schemas, each with its members."""
    return _types(types_within(_schemas(), *_LANGUAGE))


def _others() -> str:
    """All other types."""
    language = types_within(_schemas(), *_LANGUAGE)
    return _types(name for name in _schemas() if name not in language)


def _types(names: Iterable[str]) -> str:
    parts: list[str] = []
    for name in names:
        schema = _schemas()[name]
        parts += [f"### {name} {{ #{anchor_of(name)} }}", schema.get("description", "")]
        members = _words().members_of(schema)
        if members:
            parts.append(table(["Member", "Type", "Left out", "Meaning"], members))
        elif "properties" not in schema:
            parts.append(f"Type: {_words().type_of(schema)}.")
    return "\n\n".join(parts)


def _operations() -> str:
    """Every operation, in groups: those for everyone first, then each under the last of the roles that may call it."""
    told = document()
    parts = [told["info"]["description"], "## Everyone"]
    for role, about in [(None, None), *((tag["name"], tag["description"]) for tag in told["tags"])]:
        if role is not None:
            parts += [f"## {_TITLES[role]}", about]
        for path, methods in told["paths"].items():
            for method, operation in methods.items():
                if _role_of(operation) == role:
                    parts += _operation(f"{method.upper()} {path}", operation)
    return "\n\n".join(parts)


def _role_of(operation: Part) -> str | None:
    tags: list[str] = operation.get("tags", [])
    return tags[-1] if 0 < len(tags) < len(_TITLES) - 1 else None


def _operation(call: str, operation: Part) -> Iterator[str]:
    yield f"### {operation['summary']} {{ #{operation['operationId']} }}"
    yield f"`{call}`"
    yield str(operation["description"])
    parameters = [_resolved(each) for each in operation.get("parameters", ())]
    if parameters:
        rows = [
            [
                f"`{each['name']}`",
                _PLACES[each["in"]],
                _words().type_of(each["schema"]),
                left_out(each["schema"], needed=each.get("required", False)),
                each["description"],
            ]
            for each in parameters
        ]
        yield table(["Parameter", "In", "Type", "Left out", "Meaning"], rows)
    if "requestBody" in operation:
        yield f"Body: {_contents(operation['requestBody']['content'])}."
    yield table(["Status", "Answer"], _answers(operation["responses"]))


def _answers(responses: Part) -> Iterator[list[str]]:
    """A row for every status: its content, or the types of its problems if it is a refusal."""
    for status, response in responses.items():
        found = _resolved(response)
        content = found.get("content", {})
        if status == "default":
            continue
        if int(status) < _REFUSED:
            yield [status, f"{found['description']} {_contents(content)}".strip()]
        else:
            slugs = content.get("application/problem+json", {}).get("examples", {})
            yield [status, ", ".join(f"`{slug}`" for slug in slugs) or found["description"]]


def _contents(content: Part) -> str:
    return " or ".join(
        f"{_words().type_of(each['schema'])} as `{media}`" if "schema" in each else f"`{media}`"
        for media, each in content.items()
    )


def _resolved(part: Part) -> Part:
    while "$ref" in part:
        found: Any = document()
        for step in part["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        part = found
    return part


PARTS: Final[Mapping[str, Callable[[], str]]] = {"operations": _operations, "types": _others, "language": _language}
"""The generated parts of pages, by the names under which pages include them."""
