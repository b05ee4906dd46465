"""Ask and preview queries, and fetch, cancel and list answers."""

import dataclasses
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from sparing._answer_replies import answer_of
from sparing._answers import Answer
from sparing._calls import Call, Items, Stream, acknowledged, listing, only
from sparing._constants import BATCH_REPLIES_MAX, BATCH_SIZE
from sparing._decode import read
from sparing._documents import Document, WrittenQuery, checked
from sparing._errors import APIReplyError, APIStatusError, InvalidRequestError, misread, refusal_of
from sparing._models import Preview, ReleaseRow
from sparing._npz import NPZ
from sparing._parameters import KNOWN, is_unknown, many_in
from sparing._progress import BatchProgress, told_of
from sparing._query import QueryRequest
from sparing._requests import JSON, Keyed, Request, delete, get, path, post
from sparing._retry import Repeat
from sparing._wire import json_of

_FORMS: Final = f"application/json, {NPZ}"
"""The two forms of an answer, JSON and npz; the service chooses npz for answers too long for labels."""


def ask(question: QueryRequest | WrittenQuery, idempotency_key: str | None) -> Call[Answer]:
    """Ask one query under its idempotency key."""
    document = checked(question)
    keyed = _keyed(document, str(uuid.uuid4()) if idempotency_key is None else idempotency_key)
    asked = post(path("datasets", keyed.dataset, "queries"), repeat=Repeat.KEYED)
    asked = dataclasses.replace(asked, idempotency_key=keyed.idempotency_key, keyed=(keyed,), accept=_FORMS)
    reply = yield from _sent(document, asked)
    return _answered(document, keyed, reply)


def preview(question: QueryRequest | WrittenQuery) -> Call[Preview]:
    """Everything public about a query."""
    document = checked(question)
    previewed = post(path("datasets", document.dataset, "queries", "preview"), repeat=Repeat.READ)
    return read(Preview, (yield from _sent(document, previewed)))


def _sent(document: Document, request: Request) -> Call[object]:
    """The reply to a request, sent with a query as its body: in JSON, or in npz if a model has many parameters.

    Even then the body is JSON, with hashes for the parameters, if this process got answers with all of them before. If
    the service does not know a hash, the numbers are sent.
    """
    many = many_in(document.json)
    if many is None:
        return (yield dataclasses.replace(request, content=json_of(document.json), content_type=JSON))
    places = [(document.dataset, sha256) for sha256 in many.hashes]
    if all(place in KNOWN for place in places):
        try:
            return (yield dataclasses.replace(request, content=json_of(many.by_hash), content_type=JSON))
        except InvalidRequestError as refusal:
            if not is_unknown(refusal):
                raise
        for place in places:
            KNOWN.pop(place, None)
        request = dataclasses.replace(request, keyed=())  # it was announced
    reply = yield dataclasses.replace(request, content=many.npz, content_type=NPZ)
    if request.idempotency_key is not None:  # of a preview nothing is kept
        for place in places:
            KNOWN.add(place)
    return reply


def batch(
    questions: Iterable[QueryRequest | WrittenQuery],
    idempotency_keys: Sequence[str] | None,
    batch_size: int,
    progress: BatchProgress | None,
) -> Stream[Answer | APIStatusError]:
    """Ask many queries of one dataset. All are checked at once, and sent as the outcomes are consumed."""
    asked = [checked(question) for question in questions]
    keys = [str(uuid.uuid4()) for _ in asked] if idempotency_keys is None else list(idempotency_keys)
    if len(keys) != len(asked):
        raise ValueError(f"{len(asked)} queries need as many idempotency keys, not {len(keys)}")
    datasets = sorted({each.dataset for each in asked})
    if len(datasets) > 1:
        raise ValueError(f"a batch is of one dataset, not of {', '.join(datasets)}")
    return _in_batches(asked, keys, min(max(batch_size, 1), BATCH_SIZE), told_of(progress))


def _in_batches(
    documents: Sequence[Document], keys: Sequence[str], size: int, progress: Callable[[int, int], object] | None
) -> Stream[Answer | APIStatusError]:
    for start in range(0, len(documents), size):
        part = documents[start : start + size]
        keyed = tuple(map(_keyed, part, keys[start : start + size]))
        queries = [{"idempotency_key": each.idempotency_key, "query": each.document} for each in keyed]
        request = post(path("datasets", part[0].dataset, "queries", "batch"), {"queries": queries}, repeat=Repeat.KEYED)
        request = dataclasses.replace(request, keyed=keyed, replies=min(len(part), BATCH_REPLIES_MAX))
        outcomes = _outcomes_of((yield request), len(part))
        yield Items(map(_outcome, part, keyed, outcomes))
        if progress is not None:
            progress(start + len(part), len(documents))


def _keyed(document: Document, key: str) -> Keyed:
    return Keyed(dataset=document.dataset, idempotency_key=key, document=document.json)


def _outcomes_of(reply: object, count: int) -> Sequence[object]:
    """The outcomes of a batch. Raises APIReplyError unless there is one for each query."""
    outcomes = reply.get("answers") if isinstance(reply, dict) else None
    if not isinstance(outcomes, list) or len(outcomes) != count:
        raise APIReplyError(f"the reply does not have an outcome for each of {count} queries")
    return outcomes


def _outcome(document: Document, keyed: Keyed, outcome: object) -> Answer | APIStatusError:
    """The answer or the refusal, with its key."""
    refusal = refusal_of(outcome)
    if refusal is None:
        return _answered(document, keyed, outcome)
    refusal.idempotency_key = keyed.idempotency_key
    return refusal


def _answered(document: Document, keyed: Keyed, reply: object) -> Answer:
    """The answer to a query, with its key."""
    answer = dataclasses.replace(answer_of(reply), idempotency_key=keyed.idempotency_key)
    with misread("the reply is not an answer to this query"):
        return document.answered(answer)


def fetch(query: str) -> Call[Answer]:
    """One of the analyst's own answers, by its id."""
    return answer_of((yield dataclasses.replace(get(path("queries", query)), accept=_FORMS)))


def cancel(dataset: str, idempotency_key: str) -> Call[None]:
    """Cancel the query that waits under a key."""
    request = delete(path("datasets", dataset, "queries"), repeat=Repeat.ONCE)
    return acknowledged(dataclasses.replace(request, idempotency_key=idempotency_key))


def releases(page_size: int, dataset: str | None) -> Stream[ReleaseRow]:
    """The analyst's own releases, of all datasets or of one."""
    rows = listing(ReleaseRow, path("queries"), limit=page_size)
    return rows if dataset is None else only(rows, lambda row: row.dataset == dataset)
