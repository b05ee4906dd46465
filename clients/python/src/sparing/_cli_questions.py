"""A query on the command line: a JSON document or SQL, with noise and bounds beside it."""

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from sparing import Answer, Client, Condition, Group, Item, Preview, QueryRequest
from sparing._builder import bounded

_NOISE = ("sigma", "rho", "share", "half_width", "scale", "confidence", "weights")
_SWITCHES = ("mechanism", "reduce", "rule", "reuse")
_MEMBERS = frozenset({"version", "from", "select", "where", "group_by", "per_individual", "noise", *_SWITCHES})
_NO_NOISE = "give --sigma, --rho, --share, --half-width or --scale"


class UsageError(Exception):
    """The command line or the document is wrong; nothing was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query that can be asked or previewed, of a document or of SQL."""

    ask: Callable[[str], Answer]  # under an idempotency key
    preview: Callable[[], Preview]


def asked_of(arguments: argparse.Namespace, client: Client, stdin: TextIO) -> Asked:
    """The query of a command line. Raises UsageError for wrong usage, and the client's exceptions for wrong SQL."""
    noise = {name: value for name in _NOISE if (value := getattr(arguments, name)) is not None}
    if arguments.sql is not None:
        if arguments.file is not None:
            raise UsageError("give a file or --sql, not both")
        return _of_sql(arguments, client, noise)
    request: dict[str, Any] = {**request_of(_document(arguments.file, stdin), arguments.dataset)}
    if noise:
        request = {name: value for name, value in request.items() if name not in _NOISE} | noise
    for name in ("mechanism", "l2_clip", "rows"):
        if getattr(arguments, name) is not None:
            request[name] = getattr(arguments, name)
    if arguments.fresh:
        request["reuse"] = False
    if not any(name in request for name in _NOISE):
        raise UsageError(f"{_NO_NOISE}, or a noise in the document")
    queries = client.queries  # which check what is asked
    return Asked(
        ask=lambda key: queries.ask(idempotency_key=key, **request), preview=partial(queries.preview, **request)
    )


def request_of(document: object, dataset: str) -> QueryRequest:
    """The arguments of `client.queries.ask` for a document of the query language. Raises UsageError for any other."""
    asked = _object(document, "the query", _MEMBERS)
    if asked.get("version", 1) != 1:
        raise UsageError("version must be 1, the only version there is")
    bounds = _object(asked.get("per_individual") or {}, "per_individual", frozenset({"l2_clip", "rows"}))
    noise = _object(asked.get("noise") or {}, "noise", frozenset(_NOISE))
    listed = {name: _list(asked[name], name) for name in ("select", "group_by") if name in asked}
    where, keys = asked.get("where"), listed.get("group_by")
    parts: dict[str, Any] = {
        **bounds,
        "select": [Item(item) for item in listed["select"]] if "select" in listed else None,
        "where": None if where is None else Condition(where),
        "from_": asked.get("from"),
        "group_by": None if keys is None else [key if isinstance(key, str) else Group(key) for key in keys],
    }
    given = {name: part for name, part in parts.items() if part is not None}
    switches = {name: asked[name] for name in _SWITCHES if name in asked}
    return {"dataset": dataset, **noise, **given, **switches}  # type: ignore[typeddict-item]


def _of_sql(arguments: argparse.Namespace, client: Client, noise: Mapping[str, Any]) -> Asked:
    if not noise:
        raise UsageError(_NO_NOISE)
    if arguments.mechanism is not None:
        noise = {**noise, "mechanism": arguments.mechanism}
    query = client.dataset(arguments.dataset).sql(arguments.sql).noise(**noise)
    steps = bounded(query, l2_clip=arguments.l2_clip, rows=arguments.rows, reuse=not arguments.fresh)
    return Asked(ask=lambda key: steps.run(idempotency_key=key), preview=steps.preview)


def _document(file: str | None, stdin: TextIO) -> object:
    if file in (None, "-") and stdin.isatty():
        raise UsageError("give a file, --sql, or a query on standard input")
    name = "standard input" if file in (None, "-") else file
    try:
        return json.loads(stdin.read() if file in (None, "-") else Path(str(file)).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise UsageError(f"{name} is not JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8") from None
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from None


def _object(node: object, name: str, members: frozenset[str]) -> Mapping[str, Any]:
    if not isinstance(node, Mapping):
        raise UsageError(f"{name} must be an object")
    for member in node:
        if member not in members:
            raise UsageError(f"{name} has no member {member!r}; it may have {', '.join(sorted(members))}")
    return node


def _list(node: object, name: str) -> list[Any]:
    if not isinstance(node, list):
        raise UsageError(f"{name} must be a list")
    return node
