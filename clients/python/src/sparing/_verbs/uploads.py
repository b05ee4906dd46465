"""Uploads: rows of a file or a data frame, under their declared names."""

import itertools
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Literal, TypedDict, cast

from sparing._calls import Call, blocking, reply_of
from sparing._columns import Columns, declared_columns
from sparing._dataset_replies import described
from sparing._files import NDJSON, PARQUET, Source, content_of, opened_of
from sparing._frames import Frame, is_frame, parquet_of
from sparing._models import UploadReport
from sparing._parts import parts_of
from sparing._records import are_records, ndjson_of, records_of
from sparing._renamed import renamed
from sparing._requests import Content, Keyed, Progress, Request, get, path
from sparing._retry import Repeat

_DEFAULTS = {
    "delimiter": ",",
    "decimal": ".",
    "rows_over_limit": "refuse",
    "unknown_individuals": "as_declared",
    "duplicates": "keep",
}


PART_ROWS: Final = 1_000_000
PartsProgress = Callable[[int, int], object]
"""A function that is called with the numbers of stored parts and of the rows in them."""


class RowOptions(TypedDict, total=False):
    """The options of any upload, in parts or not."""

    content_type: str | None
    delimiter: str
    decimal: Literal[".", ","]
    accept: Sequence[str]
    dry_run: bool
    rows_over_limit: Literal["refuse", "truncate"]
    unknown_individuals: Literal["as_declared", "drop"]
    duplicates: Literal["keep", "drop", "reject"]


class SendOptions(RowOptions, total=False):
    """The options of an upload by one request."""

    idempotency_key: str | None
    progress: Progress | None


class PartOptions(RowOptions, total=False):
    """The options of an upload in parts."""

    rows: int
    run: str | None
    progress: PartsProgress | None


def upload(
    dataset: str,
    table: str,
    data: Frame | Source | None,
    file: Source | None,
    columns: Columns | None,
    options: SendOptions,
) -> Call[UploadReport]:
    """Upload the rows of `data` or `file` under an idempotency key; the schema is read first if columns are checked."""
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


def upload_parts(
    dataset: str,
    table: str,
    data: Frame | Source | None,
    files: Iterable[Source],
    columns: Columns | None,
    options: PartOptions,
) -> Call[UploadReport]:
    """Upload the rows of `data` or `files` in parts, one after the other, under the keys `run-0`, `run-1` and so on."""
    sources = [*files] if data is None else [data, *files]
    if not sources or (data is not None and len(sources) > 1):
        raise ValueError("give data, or files")
    unknown = set(options) - PartOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"upload_parts() takes no {', '.join(sorted(unknown))}")
    rows, progress = options.get("rows", PART_ROWS), options.get("progress")
    if rows < 1:
        raise ValueError(f"rows must be at least 1, got {rows}")
    run, reports = options.get("run") or str(uuid.uuid4()), list[UploadReport]()
    kind, delimiter = options.get("content_type"), options.get("delimiter", ",")
    parts = itertools.chain.from_iterable(parts_of(each, kind, rows, delimiter) for each in sources)
    shared = {name: value for name, value in options.items() if name in RowOptions.__annotations__}
    while (part := (yield from blocking(lambda: next(parts, None)))) is not None:
        content, content_type = part
        own = {"content_type": content_type, "idempotency_key": f"{run}-{len(reports)}"}
        sent = cast("SendOptions", shared | own)
        reports.append((yield from upload(dataset, table, content, None, columns, sent)))
        if progress is not None:
            progress(len(reports), sum(report.rows for report in reports))
    return _merged(reports)


def _merged(reports: Sequence[UploadReport]) -> UploadReport:
    """A report with the sums of some reports."""

    def added(counts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
        total = Counter[str]()
        for each in counts:
            total.update(each)
        return dict(total)

    return UploadReport(
        rows=sum(each.rows for each in reports),
        individuals=sum(each.individuals for each in reports),
        clipped=added(each.clipped for each in reports),
        out_of_domain=added(each.out_of_domain for each in reports),
        nulls=added(each.nulls for each in reports),
        rows_dropped=sum(each.rows_dropped for each in reports),
        individuals_dropped_from=sum(each.individuals_dropped_from for each in reports),
        largest_share_dropped=max((each.largest_share_dropped for each in reports), default=0.0),
        rows_unknown=sum(each.rows_unknown for each in reports),
        rows_repeated=sum(each.rows_repeated for each in reports),
        warnings=tuple(dict.fromkeys(said for each in reports for said in each.warnings)),
        stored=all(each.stored for each in reports),
    )


def _content(
    dataset: str, table: str, source: Frame | Source, columns: Columns | None, options: SendOptions
) -> Call[tuple[Callable[[], Content], str]]:
    """A function that reads the rows under their declared names, and their content type."""
    if is_frame(source) or isinstance(source, Mapping):
        declared = yield from _declared(dataset, table)
        content = yield from blocking(partial(parquet_of, source, columns or {}, declared))
        return lambda: content, PARQUET
    if are_records(source):
        declared = yield from _declared(dataset, table)
        content = yield from blocking(lambda: ndjson_of(records_of(source), columns or {}, declared))
        return lambda: content, NDJSON
    if columns is None:
        return (yield from blocking(partial(content_of, source)))
    opened, inferred, _ = yield from blocking(partial(opened_of, source))
    kind = (options.get("content_type") or inferred).partition(";")[0].strip().lower()
    declared = yield from _declared(dataset, table)
    return (yield from blocking(partial(renamed, opened, kind, columns, declared, options.get("delimiter", ","))))


def _declared(dataset: str, table: str) -> Call[Sequence[str]]:
    registered = yield from described(get(path("datasets", dataset)))
    return declared_columns(registered.tables, table)


def _params(options: SendOptions) -> dict[str, str | int]:
    """The options that are sent in the address, without those at the service's default."""
    stated: dict[str, str | int] = {"dry_run": "true"} if options.get("dry_run") else {}
    accepted = options.get("accept", ())
    if accepted:
        stated["accept"] = accepted if isinstance(accepted, str) else ",".join(accepted)
    for name, default in _DEFAULTS.items():
        value = str(options.get(name, default))
        if value != default:
            stated[name] = value
    return stated
