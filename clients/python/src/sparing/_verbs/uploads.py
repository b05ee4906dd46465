"""Uploads: rows of a file or a data frame, under their declared names."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, TypedDict

from sparing._calls import Call, blocking, reply_of
from sparing._columns import Columns, declared_columns
from sparing._files import PARQUET, Source, content_of, opened_of
from sparing._frames import Frame, is_frame, parquet_of
from sparing._models import Dataset, UploadReport
from sparing._renamed import renamed
from sparing._requests import Content, Keyed, Progress, Request, get, path
from sparing._retry import Repeat

_DEFAULTS = {"delimiter": ",", "rows_over_limit": "refuse", "unknown_individuals": "as_declared", "duplicates": "keep"}


class SendOptions(TypedDict, total=False):
    """The options of an upload."""

    content_type: str | None
    delimiter: str
    dry_run: bool
    rows_over_limit: Literal["refuse", "truncate"]
    unknown_individuals: Literal["as_declared", "drop"]
    duplicates: Literal["keep", "drop", "reject"]
    idempotency_key: str | None
    progress: Progress | None


def upload(
    dataset: str,
    table: str,
    data: Frame | Source | None,
    file: Source | None,
    columns: Columns | None,
    options: SendOptions,
) -> Call[UploadReport]:
    """The rows of `data` or `file` under an idempotency key; where columns are checked, the schema is read before."""
    source = data if file is None else file
    if source is None or (data is not None and file is not None):
        raise ValueError("give data, or file")
    unknown = set(options) - SendOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"upload() takes no {', '.join(sorted(unknown))}")
    content, inferred = yield from _content(dataset, table, source, columns, options)
    content_type, params = options.get("content_type") or inferred, _params(options)
    key = options.get("idempotency_key") or str(uuid.uuid4())
    document = {"table": table, "content_type": content_type, **params}
    request = Request(
        method="POST",
        path=path("datasets", dataset, "tables", table, "rows"),
        repeat=Repeat.KEYED,
        params=params,
        content=content,
        content_type=content_type,
        idempotency_key=key,
        keyed=(Keyed(dataset=dataset, idempotency_key=key, document=document),),
        progress=options.get("progress"),
    )
    return (yield from reply_of(UploadReport, request))


def _content(
    dataset: str, table: str, source: Frame | Source, columns: Columns | None, options: SendOptions
) -> Call[tuple[Callable[[], Content], str]]:
    """How to read the rows under their declared names, and their content type."""
    if is_frame(source) or isinstance(source, Mapping):
        declared = yield from _declared(dataset, table)
        content = yield from blocking(partial(parquet_of, source, columns or {}, declared))
        return lambda: content, PARQUET
    if columns is None:
        return (yield from blocking(partial(content_of, source)))
    opened, inferred, _ = yield from blocking(partial(opened_of, source))
    kind = (options.get("content_type") or inferred).partition(";")[0].strip().lower()
    declared = yield from _declared(dataset, table)
    return (yield from blocking(partial(renamed, opened, kind, columns, declared, options.get("delimiter", ","))))


def _declared(dataset: str, table: str) -> Call[Sequence[str]]:
    registered = yield from reply_of(Dataset, get(path("datasets", dataset)))
    return declared_columns(registered.tables, table)


def _params(options: SendOptions) -> dict[str, str | int]:
    """The options that the address states, those with the service's default left out."""
    stated: dict[str, str | int] = {"dry_run": "true"} if options.get("dry_run") else {}
    for name, default in _DEFAULTS.items():
        value = str(options.get(name, default))
        if value != default:
            stated[name] = value
    return stated
