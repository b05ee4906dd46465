"""Ask, preview, batch."""

import dataclasses
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from sparing._answers import Answer
from sparing._calls import Call, Items, Stream, acknowledged, listing, only, reply_of
from sparing._constants import BATCH_SIZE
from sparing._decode import read
from sparing._errors import APIReplyError, APIStatusError, refusal_of
from sparing._models import Preview, ReleaseRow
from sparing._npz import NPZ
from sparing._progress import BatchProgress, told_of
from sparing._query import QueryRequest, question_json
from sparing._requests import Keyed, delete, get, path, post
from sparing._retry import Repeat

_FORMS: Final = f"application/json, {NPZ}"
"""Of the two the service chooses npz where an answer has more numbers than labels."""


def ask(question: QueryRequest, idempotency_key: str | None) -> Call[Answer]:
    """One query under its key."""
    document = question_json(question)
    key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
    keyed = Keyed(dataset=question["dataset"], idempotency_key=key, document=document)
    asked = post(path("datasets", keyed.dataset, "queries"), document, repeat=Repeat.KEYED)
    reply = yield dataclasses.replace(asked, idempotency_key=key, keyed=(keyed,), accept=_FORMS)
    return dataclasses.replace(read(Answer, reply), idempotency_key=key)


def preview(question: QueryRequest) -> Call[Preview]:
    """Everything public about a query."""
    document = question_json(question)
    where = path("datasets", question["dataset"], "queries", "preview")
    return reply_of(Preview, post(where, document, repeat=Repeat.READ))


def batch(
    questions: Iterable[QueryRequest],
    idempotency_keys: Sequence[str] | None,
    batch_size: int,
    progress: BatchProgress | None,
) -> Stream[Answer | APIStatusError]:
    """Many queries of one dataset, checked at once and asked as the outcomes are consumed."""
    asked = list(questions)
    documents = [question_json(question) for question in asked]
    keys = [str(uuid.uuid4()) for _ in asked] if idempotency_keys is None else list(idempotency_keys)
    if len(keys) != len(asked):
        raise ValueError(f"{len(asked)} queries need as many idempotency keys, not {len(keys)}")
    datasets = sorted({question["dataset"] for question in asked})
    if len(datasets) > 1:
        raise ValueError(f"a batch is of one dataset, not of {', '.join(datasets)}")
    keyed = [
        Keyed(dataset=question["dataset"], idempotency_key=key, document=document)
        for question, key, document in zip(asked, keys, documents, strict=True)
    ]
    return _in_batches(keyed, min(max(batch_size, 1), BATCH_SIZE), told_of(progress))


def _in_batches(
    keyed: Sequence[Keyed], size: int, progress: Callable[[int, int], object] | None
) -> Stream[Answer | APIStatusError]:
    for start in range(0, len(keyed), size):
        part = tuple(keyed[start : start + size])
        queries = [{"idempotency_key": each.idempotency_key, "query": each.document} for each in part]
        asked = post(path("datasets", part[0].dataset, "queries", "batch"), {"queries": queries}, repeat=Repeat.KEYED)
        outcomes = _outcomes_of((yield dataclasses.replace(asked, keyed=part)), len(part))
        yield Items(_outcome(each, outcome) for each, outcome in zip(part, outcomes, strict=True))
        if progress is not None:
            progress(start + len(part), len(keyed))


def _outcomes_of(reply: object, count: int) -> Sequence[object]:
    """The outcomes of a batch. Raises APIReplyError where they are not one for each query."""
    outcomes = reply.get("answers") if isinstance(reply, dict) else None
    if not isinstance(outcomes, list) or len(outcomes) != count:
        raise APIReplyError(f"the reply does not have an outcome for each of {count} queries")
    return outcomes


def _outcome(keyed: Keyed, outcome: object) -> Answer | APIStatusError:
    """The answer or the refusal, with its key."""
    refusal = refusal_of(outcome)
    if refusal is None:
        return dataclasses.replace(read(Answer, outcome), idempotency_key=keyed.idempotency_key)
    refusal.idempotency_key = keyed.idempotency_key
    return refusal


def fetch(query: str) -> Call[Answer]:
    """A release, by the answer's id."""
    return reply_of(Answer, dataclasses.replace(get(path("queries", query)), accept=_FORMS))


def cancel(dataset: str, idempotency_key: str) -> Call[None]:
    """Cancel the query that waits under a key."""
    request = delete(path("datasets", dataset, "queries"), repeat=Repeat.ONCE)
    return acknowledged(dataclasses.replace(request, idempotency_key=idempotency_key))


def releases(page_size: int, dataset: str | None) -> Stream[ReleaseRow]:
    """The analyst's own releases, of all datasets or of one."""
    rows = listing(ReleaseRow, path("queries"), limit=page_size)
    return rows if dataset is None else only(rows, lambda row: row.dataset == dataset)
